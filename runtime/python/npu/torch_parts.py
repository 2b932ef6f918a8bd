# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a graph the NPU runs, and the run of such a graph.

Every node is on the NPU until the compiler refuses it by name. Nodes get levels: at least those of
their inputs, one more where the side changes; so each level is one program or one stretch of eager
nodes, and levels in order are a schedule. Compiling goes on until no program is refused.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Sequence

import torch
import torch.fx
from torch.export import ExportedProgram

from .errors import Error, UnsupportedNode
from .program import Program
from .tensors import BY_TORCH
from .torch_alias import Layout, Places, apart
from .torch_graph import Graph, is_tensor, part_program

Compile = Callable[[ExportedProgram], Program]

_ROUNDS = 16
# What is worth no program of its own: nothing is computed.
_VIEWS = {
    "alias", "clone", "detach", "expand", "flatten", "lift_fresh_copy", "permute", "reshape",
    "select", "slice", "split", "squeeze", "t", "transpose", "unsqueeze", "unflatten", "view",
    "_to_copy", "_unsafe_view",
}  # fmt: skip


def op_name(node: torch.fx.Node) -> str:
    """"aten.add.Tensor"."""
    return str(node.target) if not callable(node.target) else _callable_name(node.target)


def _callable_name(target: Any) -> str:
    text = str(target)
    return text if "." in text and " " not in text else getattr(target, "__name__", text)


def module_path(node: torch.fx.Node) -> str:
    """Path of the innermost module whose forward() has this node."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [str(path) for path, _ in stack.values()]
    return paths[-1] if paths else ""


def source_place(node: torch.fx.Node) -> tuple[str, int] | None:
    """File and line of the model's source that a node comes from."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return (found[-1][0], int(found[-1][1])) if found else None


def _is_view(node: torch.fx.Node) -> bool:
    parts = op_name(node).split(".")
    return node.target is operator.getitem or (len(parts) > 1 and parts[1] in _VIEWS)


def _never(node: torch.fx.Node) -> str | None:
    """Why a node can never be on the NPU, before the compiler is asked: only whole graphs of
    tensors of known types can become programs."""
    value = node.meta.get("val")
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    if node.target is not operator.getitem and not isinstance(values[0], torch.Tensor):
        return f"its value is {type(value).__name__}, not a tensor"
    values += [used.meta.get("val") for used in node.all_input_nodes]
    for v in values:
        name = str(v.dtype).removeprefix("torch.") if isinstance(v, torch.Tensor) else ""
        if name and name not in BY_TORCH:
            return f"{name} has no counterpart on the NPU"
    return None


@dataclass
class Part:
    """A program of a level, or why there is none."""

    nodes: list[torch.fx.Node]
    inputs: list[torch.fx.Node]
    outputs: list[torch.fx.Node]
    program: Program | None = None

    def run(self, env: dict[torch.fx.Node, Any]) -> None:
        """Computes its outputs from the values of its inputs."""
        if self.program is None:
            for used in self.inputs:  # torch's operators ask how their inputs lie
                if is_tensor(used) and env[used].stride() != used.meta["val"].stride():
                    env[used] = Layout.of(used.meta["val"]).new(env[used])
            for node in self.nodes:
                args, kwargs = torch.fx.node.map_arg(
                    (node.args, node.kwargs), lambda n: env[n]
                )
                target: Any = node.target
                env[node] = target(*args, **kwargs)
            return
        results = self.program._run([env[n] for n in self.inputs], "torch")
        for node, value in zip(self.outputs, results or ()):
            wanted = node.meta["val"].dtype
            env[node] = value if value.dtype == wanted else value.to(wanted)


@dataclass
class Plan:
    """A graph cut into parts; call it with the graph's inputs."""

    graph: Graph
    parts: list[Part]
    refused: list[UnsupportedNode] = field(default_factory=list)
    constants: dict[torch.fx.Node, Any] = field(default_factory=dict)

    @property
    def programs(self) -> list[Program]:
        """What runs on the NPU."""
        return [p.program for p in self.parts if p.program is not None]

    def __call__(self, inputs: Sequence[Any], places: Places) -> list[torch.Tensor]:
        """What is computed, in the places that it has, and changes inputs."""
        env: dict[torch.fx.Node, Any] = dict(self.constants)
        env.update(zip(self.graph.inputs, inputs))
        for node, lifted in self.graph.lifted.items():
            env[node] = lifted.tensor
        for part in self.parts:
            part.run(env)
        others = [*inputs, *(t.tensor for t in self.graph.lifted.values())]
        results = places.put([env[o] for o in self.graph.outputs], others)
        changes = apart([env[by] for _, by in self.graph.mutated], others)
        for (changed, _), value in zip(self.graph.mutated, changes):
            env[changed].copy_(value)
        return results


def _levels(
    nodes: Sequence[torch.fx.Node], eager: Iterable[torch.fx.Node]
) -> dict[int, list[torch.fx.Node]]:
    """Nodes by level: even ones are for the NPU, odd ones for torch."""
    away = set(eager)
    level: dict[torch.fx.Node, int] = {}
    for node in nodes:
        producer = node.args[0] if node.target is operator.getitem else None
        if isinstance(producer, torch.fx.Node) and producer in level:
            level[node] = level[producer]
            continue
        parity = 1 if node in away else 0
        found = -parity
        for used in node.all_input_nodes:
            if used in level:
                found = max(found, level[used] + (level[used] % 2 != parity))
        level[node] = found
    grouped: dict[int, list[torch.fx.Node]] = {}
    for node in nodes:
        grouped.setdefault(level[node], []).append(node)
    return dict(sorted(grouped.items()))


def _part(graph: Graph, nodes: list[torch.fx.Node]) -> Part:
    inside = set(nodes)
    changed = {what for what, _ in graph.mutated}
    inputs: dict[torch.fx.Node, None] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            constant = used in graph.lifted and used not in changed
            if used not in inside and not constant and used.op != "get_attr":
                inputs[used] = None
    kept = {o for o in graph.outputs if isinstance(o, torch.fx.Node)}
    kept |= {by for _, by in graph.mutated}
    outputs = [
        n
        for n in nodes
        if is_tensor(n) and (n in kept or any(user not in inside for user in _users(n)))
    ]
    return Part(nodes, list(inputs), outputs)


def _users(node: torch.fx.Node) -> list[torch.fx.Node]:
    return [u for u in node.users if u.op != "output"]


def faults_of(error: Error, nodes: Sequence[torch.fx.Node]) -> dict[torch.fx.Node, str]:
    """Nodes that an error of the compiler names, with what it says of each."""
    by_name = {n.name: n for n in nodes}
    found: dict[torch.fx.Node, str] = {}
    for block in re.split(r"\n(?=error: )", "error: " + str(error)):
        reason = block.split("\n")[0].removeprefix("error: ")
        for name in re.findall(r"node '([^']+)'", block):
            if name in by_name:
                found.setdefault(by_name[name], reason)
    return found


def _compile_part(
    graph: Graph, part: Part, compile_program: Compile
) -> dict[torch.fx.Node, str]:
    """Gives the part its program, or says what keeps it from having one."""
    try:
        exported = part_program(graph, part.nodes, part.inputs, part.outputs)
        part.program = compile_program(exported)
        return {}
    except Error as error:
        found = faults_of(error, part.nodes)
        return found or {n: str(error).split("\n")[0] for n in part.nodes}


def plan(graph: Graph, compile_program: Compile) -> Plan:
    """Cuts a graph into parts and compiles those for the NPU."""
    nodes = graph.nodes
    refused: dict[torch.fx.Node, str] = {}
    for node in nodes:
        reason = _never(node)
        if reason:
            refused[node] = reason
    done: dict[tuple[str, ...], Part] = {}
    parts: list[Part] = []
    for attempt in range(_ROUNDS + 1):
        if attempt == _ROUNDS:
            refused.update({n: "too many attempts to compile the rest" for n in nodes})
        parts, fresh = [], {}
        for level, members in _levels(nodes, refused).items():
            part = _part(graph, members)
            parts.append(part)
            if level % 2 or not part.outputs or all(_is_view(n) for n in members):
                continue
            key = tuple(n.name for n in members) + tuple(n.name for n in part.outputs)
            if key in done:
                parts[-1] = done[key]
                continue
            faults = _compile_part(graph, part, compile_program)
            fresh.update(faults)
            if not faults:
                done[key] = part
        if not fresh:
            break
        refused.update(fresh)
    named = [
        UnsupportedNode(n.name, op_name(n), module_path(n), r) for n, r in refused.items()
    ]
    modules = graph.program.graph_module
    graphs = {
        n: getattr(modules, str(n.target)) for n in modules.graph.nodes if n.op == "get_attr"
    }
    return Plan(graph, parts, named, graphs)
