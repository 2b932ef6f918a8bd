# SPDX-License-Identifier: Apache-2.0
"""A Dynamo graph as a functional ATen graph, and parts of that as exported programs.

Dynamo hands over a graph of torch calls whose parameters are inputs. They are put back as
parameters under their own names, the graph is traced by torch.export (the place in the model's
source and its module path stay with each node) and made functional: what it changes in place
becomes outputs.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from dataclasses import dataclass, field
from typing import Any, Iterator, Sequence

import torch
import torch.fx
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import traceback as fx_traceback
from torch.utils import _pytree as pytree


_CHECK = re.compile(r"aten\.(_assert_|sym_constrain_range)")


@dataclass
class Lifted:
    """A tensor of the model that the graph takes as an input."""

    kind: InputKind
    target: str  # "layers.0.weight"
    tensor: torch.Tensor
    persistent: bool | None


@dataclass
class Graph:
    """A functional ATen graph. Values are fx nodes."""

    program: ExportedProgram
    inputs: list[torch.fx.Node]  # what a call brings, in order
    lifted: dict[torch.fx.Node, Lifted] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)  # nodes and constants, as the call returns
    mutated: list[tuple[torch.fx.Node, torch.fx.Node]] = field(default_factory=list)  # what, by
    names: dict[torch.fx.Node, str] = field(default_factory=dict)  # of inputs, for people

    @property
    def nodes(self) -> list[torch.fx.Node]:
        """What is computed, in order. Checks of sizes that are numbers by now are left out."""
        return [
            n
            for n in self.program.graph.nodes
            if n.op == "call_function" and not (_CHECK.match(str(n.target)) and not n.users)
        ]


def static_inputs(gm: torch.fx.GraphModule, examples: Sequence[Any]) -> dict[int, str]:
    """Positions of inputs that are tensors of the model, with the names they have there."""
    found: dict[int, str] = {}
    for i, node in enumerate(n for n in gm.graph.nodes if n.op == "placeholder"):
        example = examples[i] if i < len(examples) else None
        if not isinstance(example, torch.Tensor):
            continue
        flags = node.meta.get("tensor_dict") or {}
        if isinstance(example, torch.nn.Parameter) or "_dynamo_static_input_type" in flags:
            found[i] = _own_name(node, found)
    return found


def _own_name(node: torch.fx.Node, taken: dict[int, str]) -> str:
    """"layers.0.weight" of L['self']._modules['layers']._modules['0']._parameters['weight']."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    text = getattr(source, "name", "")
    text = text() if callable(text) else text
    text = re.sub(r"\._(modules|parameters|buffers)\[['\"]?([^'\"\]]*)['\"]?\]", r".\2", str(text))
    text = re.sub(r"^L\[['\"]\w+['\"]\]", "", text)
    parts = [p for p in re.split(r"\W+", text) if p]
    name = ".".join(parts) or node.name
    used = set(taken.values())
    clash = any(u == name or u.startswith(name + ".") or name.startswith(u + ".") for u in used)
    return node.name if clash else name


def _clean_paths(gm: torch.fx.GraphModule) -> None:
    """Module paths as the model has them: "layers.0" for L['self'].layers[0]."""
    for node in gm.graph.nodes:
        stack = node.meta.get("nn_module_stack")
        if not stack:
            continue
        cleaned = {}
        for key, (path, kind) in stack.items():
            path = re.sub(r"^L(__self__|\[['\"]\w+['\"]\])\.?", "", path)
            path = re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", path).strip(".")
            cleaned[key] = (path, kind)
        node.meta["nn_module_stack"] = cleaned


class _Bound(torch.nn.Module):
    """The graph as a module again: its parameters are its own, sizes that Dynamo left open fixed."""

    def __init__(self, gm: torch.fx.GraphModule, args: Sequence[Any], static: dict[int, str]):
        super().__init__()
        self.traced_graph = gm
        self._args = [None if isinstance(a, torch.Tensor) else a for a in args]
        self._dynamic = [
            i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and i not in static
        ]
        self._static = static
        for i, name in static.items():
            self._put(name, args[i])

    def _put(self, name: str, tensor: torch.Tensor) -> None:
        *path, last = name.split(".")
        owner: torch.nn.Module = self
        for part in path:
            if not hasattr(owner, part):
                owner.add_module(part, torch.nn.Module())
            owner = getattr(owner, part)
        if isinstance(tensor, torch.nn.Parameter):
            owner.register_parameter(last, tensor)
        else:
            owner.register_buffer(last, tensor)

    def forward(self, *tensors: torch.Tensor) -> Any:
        args = list(self._args)
        for i, tensor in zip(self._dynamic, tensors):
            args[i] = tensor
        for i, name in self._static.items():
            owner: Any = self
            for part in name.split("."):
                owner = getattr(owner, part)
            args[i] = owner
        with fx_traceback.preserve_node_meta():
            return torch.fx.Interpreter(self.traced_graph).run(*args)


def trace(gm: torch.fx.GraphModule, args: Sequence[Any], static: dict[int, str]) -> Graph:
    """The functional graph of a call with these arguments; every size in it is a number."""
    _clean_paths(gm)
    bound = _Bound(gm, args, static).eval()
    tensors = tuple(args[i] for i in bound._dynamic)
    with torch.no_grad(), quiet():
        graph = functional(torch.export.export(bound, tensors, strict=False))
    for node, i in zip(graph.inputs, bound._dynamic):
        graph.names[node] = input_name(gm, i)
    return graph


def input_name(gm: torch.fx.GraphModule, place: int) -> str:
    """Name of an input for people: "x" of forward's x, which Dynamo calls "l_x_"."""
    name = [n.name for n in gm.graph.nodes if n.op == "placeholder"][place]
    return re.sub(r"^[lL]_(.*?)_*$", r"\1", name) or name


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without torch's warnings of its own use of itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def functional(exported: ExportedProgram) -> Graph:
    """An exported program without in-place operations, its inputs and outputs sorted."""
    program = exported.run_decompositions({})
    by_name = {n.name: n for n in program.graph.nodes}
    graph = Graph(program, [])
    targets: dict[str, torch.fx.Node] = {}
    for spec in program.graph_signature.input_specs:
        node = by_name[spec.arg.name]
        if spec.kind == InputKind.USER_INPUT:
            graph.inputs.append(node)
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            name = spec.target or ""
            table = program.state_dict if name in program.state_dict else program.constants
            graph.lifted[node] = Lifted(spec.kind, name, table[name], spec.persistent)
            targets[name] = node
        else:
            raise NotImplementedError(f"inputs of kind {spec.kind.name}")
    results = next(n for n in program.graph.nodes if n.op == "output").args[0]
    for spec, value in zip(program.graph_signature.output_specs, results):
        if spec.kind == OutputKind.USER_OUTPUT:
            graph.outputs.append(value)
        elif spec.kind == OutputKind.USER_INPUT_MUTATION:
            graph.mutated.append((by_name[spec.target or ""], value))
        elif spec.kind.name in ("BUFFER_MUTATION", "PARAMETER_MUTATION"):
            graph.mutated.append((targets[spec.target or ""], value))
        else:
            raise NotImplementedError(f"outputs of kind {spec.kind.name}")
    return graph


def is_tensor(node: torch.fx.Node) -> bool:
    """Whether a node's value is one tensor."""
    return isinstance(node.meta.get("val"), torch.Tensor)


def part_program(
    graph: Graph,
    nodes: Sequence[torch.fx.Node],
    inputs: Sequence[torch.fx.Node],
    outputs: Sequence[torch.fx.Node],
) -> ExportedProgram:
    """Some nodes of a graph as an exported program of their own, with their names and places.

    inputs: values from outside, in the order of the program's inputs; tensors of the model that
    are not among them become its parameters.
    """
    part, copies = torch.fx.Graph(), {}
    root: dict[str, Any] = {}
    used = {n for x in nodes for n in x.all_input_nodes} | set(outputs)
    own = [n for n in graph.lifted if n in used and n not in inputs]
    for node in [*own, *inputs]:
        copies[node] = part.placeholder(graph.names.get(node, node.name))
        copies[node].meta = dict(node.meta)
    for node in nodes:
        for sub in node.all_input_nodes:  # graphs of a control flow operator
            if sub.op == "get_attr" and sub not in copies:
                copies[sub] = part.node_copy(sub)
                root[str(sub.target)] = getattr(graph.program.graph_module, str(sub.target))
        copies[node] = part.node_copy(node, lambda n: copies[n])
    part.output(tuple(copies[n] for n in outputs))

    in_args = [TensorArgument(name=copies[n].name) for n in inputs]
    out_args = [TensorArgument(name=copies[n].name) for n in outputs]
    specs = [
        InputSpec(
            lifted.kind, TensorArgument(name=copies[n].name), lifted.target, lifted.persistent
        )
        for n, lifted in ((n, graph.lifted[n]) for n in own)
    ]
    specs += [InputSpec(InputKind.USER_INPUT, a, None) for a in in_args]
    signature = ExportGraphSignature(
        input_specs=specs,
        output_specs=[OutputSpec(OutputKind.USER_OUTPUT, a, None) for a in out_args],
    )
    call = ModuleCallSignature(
        inputs=list(in_args),
        outputs=list(out_args),
        in_spec=pytree.tree_structure((tuple(range(len(in_args))), {})),
        out_spec=pytree.tree_structure(tuple(range(len(out_args)))),
        forward_arg_names=[a.name for a in in_args],
    )
    state = {n.target: n.tensor for n in (graph.lifted[o] for o in own)}
    kept = {k: v for k, v in state.items() if k in graph.program.state_dict}
    return ExportedProgram(
        root=torch.fx.GraphModule(root, part),
        graph=part,
        graph_signature=signature,
        state_dict=kept,
        range_constraints=graph.program.range_constraints,
        module_call_graph=[ModuleCallEntry(fqn="", signature=call)],
        constants={k: v for k, v in state.items() if k not in kept},
        verifiers=graph.program.verifiers,
    )
