# SPDX-License-Identifier: Apache-2.0
"""Calls of a program as its exported model is called: nested inputs, keywords, nested outputs.

Buffers that the model changes are states of the program. An input that it changes leaves the
program as the output NAME.out, and is stored into what the caller gave.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from .errors import UsageError
from .program import Program
from .tensors import is_torch, kind_of


def _store(into: Any, value: Any) -> None:
    """The new value of an input that the model changes."""
    if is_torch(into):
        into.copy_(torch.as_tensor(value))
    else:
        into[...] = value


def _check_constant(name: str, given: Any, exported: Any) -> None:
    """An argument that is no tensor was compiled in."""
    if type(given) is not type(exported) or given != exported:
        raise UsageError(
            f"argument '{name}' is {given!r}, the model was exported with {exported!r}: export it "
            "once more for another value"
        )


_NUMBERS: dict[type, type] = {SymIntArgument: int, SymFloatArgument: float, SymBoolArgument: bool}


def _number(kind: type, value: Any) -> Any:
    """A result that is Python's number: the program has it as a tensor of one element."""
    return kind(value.item() if hasattr(value, "item") else value[()])


class Calling:
    """How an exported program is called."""

    def __init__(self, exported: ExportedProgram) -> None:
        signature = exported.graph_signature
        entry = exported.module_call_graph[0].signature
        self.in_spec, self.out_spec = exported.call_spec.in_spec, exported.call_spec.out_spec
        self.names = list(entry.forward_arg_names or []) if entry else []
        self.wanted = [s for s in signature.input_specs if s.kind == InputKind.USER_INPUT]
        self.keep = [i for i, s in enumerate(self.wanted) if isinstance(s.arg, TensorArgument)]
        self.outputs = [  # whether the program computes it, as which number, a constant's value
            (
                isinstance(s.arg, (TensorArgument, *_NUMBERS)),
                _NUMBERS.get(type(s.arg)),
                getattr(s.arg, "value", None),
            )
            for s in signature.output_specs
            if s.kind == OutputKind.USER_OUTPUT
        ]

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors of a call in the order of the program's inputs."""
        places, rest = list(args), dict(kwargs)
        positional = self.in_spec.child(0).num_children if self.in_spec is not None else 0
        for name in self.names[len(places) : positional]:  # positional ones given by name
            if name not in rest:
                break
            places.append(rest.pop(name))
        order = [n for n in self.names if n in rest] + [n for n in rest if n not in self.names]
        flat, spec = pytree.tree_flatten((tuple(places), {n: rest[n] for n in order}))
        if len(flat) != len(self.wanted):
            raise UsageError(
                f"{len(flat)} inputs given, the exported model takes {len(self.wanted)}: "
                f"{', '.join(s.arg.name for s in self.wanted)}"
            )
        if self.in_spec is not None and spec != self.in_spec:
            raise UsageError(f"inputs are nested as {spec}, the exported model takes {self.in_spec}")
        for spec, value in zip(self.wanted, flat):
            if not isinstance(spec.arg, TensorArgument):
                _check_constant(spec.arg.name, value, getattr(spec.arg, "value", None))
        return [flat[i] for i in self.keep]

    def __call__(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the program; a hook of Program."""
        given = self._flat(args, kwargs)
        results = program._run(given, kind_of(given))
        if results is None:
            return None
        found = dict(zip((t.name for t in program.outputs), results))
        flat: list[Any] = []
        for i, (computed, number, constant) in enumerate(self.outputs):
            value = found[f"out{i}"] if computed else constant
            flat.append(_number(number, value) if number else value)
        for place, value in zip(self.keep, given):
            changed = found.get(f"{self.wanted[place].arg.name}.out")
            if changed is not None:
                _store(value, changed)
        return tuple(flat) if self.out_spec is None else pytree.tree_unflatten(flat, self.out_spec)

    def attach(self, program: Program) -> None:
        """Makes a program take and return what the exported model does."""
        program._calling = self
