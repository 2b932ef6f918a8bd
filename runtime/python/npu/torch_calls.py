# SPDX-License-Identifier: Apache-2.0
"""Calls of a program as its exported model is called: nested inputs, keywords, nested outputs.

A model that changes its buffers or inputs in place is made functional first: buffers become inputs
and outputs of the program, whose values are kept between calls as its states.
"""

from __future__ import annotations

import re
from typing import Any

import torch
import torch.fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from .errors import UsageError
from .program import Program
from .tensors import is_torch, kind_of
from .torch_graph import Graph, functional, part_program, quiet


def _changes(exported: ExportedProgram) -> bool:
    """Whether anything that the model is given or has is changed in place."""
    if any(s.kind != OutputKind.USER_OUTPUT for s in exported.graph_signature.output_specs):
        return True
    schemas = (getattr(n.target, "_schema", None) for n in exported.graph.nodes)
    return any(s.is_mutable for s in schemas if s is not None)


def _store(into: Any, value: Any) -> None:
    """The new value of an input that the model changes."""
    if is_torch(into):
        into.copy_(torch.as_tensor(value))
    else:
        into[...] = value


class Calling:
    """How an exported program is called; `program` is what has to be compiled."""

    def __init__(self, exported: ExportedProgram) -> None:
        signature = exported.graph_signature
        entry = exported.module_call_graph[0].signature
        self.in_spec, self.out_spec = exported.call_spec.in_spec, exported.call_spec.out_spec
        self.names = list(entry.forward_arg_names or []) if entry else []
        self.wanted = [s for s in signature.input_specs if s.kind == InputKind.USER_INPUT]
        self.keep = [i for i, s in enumerate(self.wanted) if isinstance(s.arg, TensorArgument)]
        self.outputs = [
            (isinstance(s.arg, TensorArgument), getattr(s.arg, "value", None))
            for s in signature.output_specs
            if s.kind == OutputKind.USER_OUTPUT
        ]
        self.states: dict[str, Any] = {}
        self.changed_inputs: list[int] = []  # places among the tensors given
        self.program = self._functional(exported) if _changes(exported) else exported

    def _functional(self, exported: ExportedProgram) -> ExportedProgram:
        with torch.no_grad(), quiet():
            graph: Graph = functional(exported)
        if not graph.mutated:
            return exported
        tensors = [graph.inputs[i] for i in self.keep]
        buffers = [(what, by) for what, by in graph.mutated if what in graph.lifted]
        inputs = [(what, by) for what, by in graph.mutated if what not in graph.lifted]
        self.changed_inputs = [tensors.index(what) for what, _ in inputs]
        for what, _ in buffers:
            lifted = graph.lifted[what]
            self.states[lifted.target] = lifted.tensor.detach().clone()
            graph.names[what] = re.sub(r"\W", "_", lifted.target)
        results = [o for o in graph.outputs if isinstance(o, torch.fx.Node)]
        results += [by for _, by in [*buffers, *inputs]]
        return part_program(graph, graph.nodes, [*tensors, *(w for w, _ in buffers)], results)

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
        return [flat[i] for i in self.keep]

    def __call__(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the program; a hook of Program."""
        given = self._flat(args, kwargs)
        states = program.states.kept
        results = program._run([*given, *states.values()], kind_of(given))
        if results is None:
            return None
        tensors = iter(results)
        flat = [next(tensors) if is_tensor else value for is_tensor, value in self.outputs]
        for name in states:
            states[name] = next(tensors)
        for place in self.changed_inputs:
            _store(given[place], next(tensors))
        return tuple(flat) if self.out_spec is None else pytree.tree_unflatten(flat, self.out_spec)

    def attach(self, program: Program) -> None:
        """Makes a program take and return what the exported model does."""
        program._calling = self
        program.states.keep(self.states)
