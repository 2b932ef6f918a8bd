# SPDX-License-Identifier: Apache-2.0
"""Calls of a program as its exported model is called: nested inputs, keywords, nested outputs."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from .errors import UsageError
from .program import Program


def _fill(args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str], positional: int) -> Any:
    """Arguments by keyword to the places that the model has for them."""
    places = list(args)
    rest = dict(kwargs)
    for name in names[len(places) : positional]:
        if name not in rest:
            break
        places.append(rest.pop(name))
    order = [n for n in names if n in rest] + [n for n in rest if n not in names]
    return tuple(places), {n: rest[n] for n in order}


def adapt(program: Program, exported: ExportedProgram) -> None:
    """Makes a program take and return what the exported model does."""
    signature = exported.graph_signature
    in_spec, out_spec = exported.call_spec.in_spec, exported.call_spec.out_spec
    entry = exported.module_call_graph[0].signature
    names = list(entry.forward_arg_names or []) if entry else []
    wanted = [s for s in signature.input_specs if s.kind == InputKind.USER_INPUT]
    keep = [i for i, s in enumerate(wanted) if isinstance(s.arg, TensorArgument)]
    positional = in_spec.child(0).num_children if in_spec is not None else 0

    def arrange(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        flat, spec = pytree.tree_flatten(_fill(args, kwargs, names, positional))
        if len(flat) != len(wanted):
            raise UsageError(
                f"{len(flat)} inputs given, the exported model takes {len(wanted)}: "
                f"{', '.join(s.arg.name for s in wanted)}"
            )
        if in_spec is not None and spec != in_spec:
            raise UsageError(f"inputs are nested as {spec}, the exported model takes {in_spec}")
        return [flat[i] for i in keep]

    produced = [s for s in signature.output_specs if s.kind == OutputKind.USER_OUTPUT]

    def finish(outputs: list[Any]) -> Any:
        tensors = iter(outputs)
        flat = [
            next(tensors) if isinstance(s.arg, TensorArgument) else getattr(s.arg, "value", None)
            for s in produced
        ]
        return pytree.tree_unflatten(flat, out_spec) if out_spec is not None else tuple(flat)

    program._arrange = arrange
    program._finish = finish
