# SPDX-License-Identifier: Apache-2.0
"""Where eager mode has the results of a graph, and results put there.

A result may be an input, a parameter or another result, or a view of one; then what is changed in
place in one changes in the other. The graph runs once on fake tensors with the inputs' strides, and
the storages of what comes out say which is which. Results that lie in an input are views of it,
made without computing anything; of results that share a new storage the tensor that they are all
views of is computed; and every new tensor has eager's strides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Sequence

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in its storage."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int  # in elements
    dtype: torch.dtype
    bytes: int  # of the storage
    conj: bool = False
    neg: bool = False

    @classmethod
    def of(cls, x: torch.Tensor) -> Layout:
        """Of a tensor, also a fake one."""
        return cls(
            tuple(int(n) for n in x.shape),
            tuple(int(n) for n in x.stride()),
            int(x.storage_offset()),
            x.dtype,
            int(x.untyped_storage().nbytes()),
            x.is_conj(),
            x.is_neg(),
        )

    @property
    def first_byte(self) -> int:
        """Where the first element begins."""
        return self.offset * self.dtype.itemsize

    @property
    def span(self) -> tuple[int, int]:
        """The first byte and the one behind the last."""
        if 0 in self.size:
            return self.first_byte, self.first_byte
        last = self.offset + sum((n - 1) * s for n, s in zip(self.size, self.stride))
        return self.first_byte, (last + 1) * self.dtype.itemsize

    @property
    def count(self) -> int:
        """Elements that are written."""
        count = 1
        for n, s in zip(self.size, self.stride):
            count *= 1 if n > 1 and s == 0 else n
        return count

    @property
    def dense(self) -> bool:
        """Whether every byte between the first and the last belongs to it."""
        first, end = self.span
        return end - first == self.count * self.dtype.itemsize

    @property
    def whole(self) -> bool:
        """Whether it is all of its storage."""
        return self.dense and self.span == (0, self.bytes)

    @property
    def overlaps(self) -> bool:
        """Whether two of its elements may be the same bytes."""
        end = 0
        for s, n in sorted((s, n) for n, s in zip(self.size, self.stride) if n > 1):
            if s <= end:
                return True
            end += (n - 1) * s
        return False

    def covers(self, other: Layout) -> bool:
        """Whether another tensor in the same storage is a view of this one."""
        first, end = other.span
        return self.dense and self.span[0] <= first and end <= self.span[1]

    def matches(self, x: torch.Tensor) -> bool:
        """Whether a real tensor lies like this."""
        return Layout.of(x) == self

    def new(self, value: torch.Tensor) -> torch.Tensor:
        """A tensor that lies like this in a storage of its own, with a tensor's values."""
        storage = torch.empty(self.bytes, dtype=torch.uint8).untyped_storage()
        made = torch.empty(0, dtype=self.dtype).set_(storage, self.offset, self.size, self.stride)
        into = made
        for dim, (n, s) in enumerate(zip(self.size, self.stride)):
            if n > 1 and s == 0:  # an expanded dimension: the same element again
                into, value = into.narrow(dim, 0, 1), value.narrow(dim, 0, 1)
        into.copy_(value)
        return made


@dataclass(frozen=True)
class View:
    """A tensor in the storage of another."""

    layout: Layout
    start: int  # bytes from the other's first
    same: bool  # it is the other
    differentiable: bool

    def of(self, base: torch.Tensor) -> torch.Tensor:
        """The view."""
        if self.same:
            return base
        x = base.detach() if base.requires_grad and not self.differentiable else base
        x = x.conj() if x.is_conj() else x
        x = torch._neg_view(x) if x.is_neg() else x
        at = Layout.of(x).first_byte + self.start
        if x.dtype != self.layout.dtype:
            size, new = x.dtype.itemsize, self.layout.dtype.itemsize
            whole = x.untyped_storage().nbytes() // max(size, new) * max(size, new)
            x = x.as_strided((whole // size,), (1,), 0).view(self.layout.dtype)
        x = x.as_strided(self.layout.size, self.layout.stride, at // self.layout.dtype.itemsize)
        x = x.conj() if self.layout.conj else x
        return torch._neg_view(x) if self.layout.neg else x


@dataclass
class Result:
    """Where one result is. `source`: "input", "constant" (of the graph), "computed", "result" (an
    earlier one), each at `index`; or "value", which is no tensor and the same in every call."""

    source: str
    index: Any
    view: View | None = None


@dataclass
class Places:
    """Where all results are, and what has to be computed for them."""

    gm: torch.fx.GraphModule  # the graph, with what is computed as its results
    results: list[Result]
    computed: list[Layout]
    differentiable: list[bool]  # of those
    changed: list[int]  # inputs that the graph changes in place

    def put(self, values: Sequence[torch.Tensor], others: Iterable[Any]) -> list[torch.Tensor]:
        """Computed values as eager mode has them, each in a storage that no other tensor is in."""
        taken = _starts(others)
        placed = []
        for value, layout in zip(values, self.computed):
            storage = value.untyped_storage().data_ptr()
            if storage in taken or not layout.matches(value):
                value = layout.new(value)
            taken |= _starts([value])
            placed.append(value)
        return placed

    def tangled(self, args: Sequence[Any]) -> tuple[int, int] | None:
        """An input that is changed in place and another one that lies in the same bytes."""
        spans = {i: _bytes_of(a) for i, a in enumerate(args) if isinstance(a, torch.Tensor)}
        for i in self.changed:
            for other, (first, end) in spans.items():
                if other != i and first < spans[i][1] and spans[i][0] < end:
                    return i, other
        return None

    def gather(self, args: Sequence[Any], computed: Sequence[torch.Tensor]) -> list[Any]:
        """The results of a call."""
        made: list[Any] = []
        for r in self.results:
            if r.source == "value":
                made.append(r.index)
                continue
            if r.source == "constant":
                base = _attribute(self.gm, r.index)
            else:
                base = {"input": args, "computed": computed, "result": made}[r.source][r.index]
            made.append(r.view.of(base) if r.view else base)
        return made


def _starts(tensors: Iterable[Any]) -> set[int]:
    """Where the storages of tensors begin."""
    return {x.untyped_storage().data_ptr() for x in tensors if isinstance(x, torch.Tensor)} - {0}


def apart(values: Iterable[torch.Tensor], others: Iterable[Any]) -> list[torch.Tensor]:
    """Values, those in the storage of another tensor as copies."""
    held = _starts(others)
    return [v.clone() if v.untyped_storage().data_ptr() in held else v for v in values]


def _bytes_of(x: torch.Tensor) -> tuple[int, int]:
    first, end = Layout.of(x).span
    start = x.untyped_storage().data_ptr()
    return start + first, start + end


def _attribute(gm: torch.nn.Module, target: str) -> Any:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value


def _fake(x: torch.Tensor) -> torch.Tensor:
    """A tensor that lies like x in a storage of its own; called under a fake mode."""
    if x.layout != torch.strided:
        raise NotImplementedError(f"a tensor with layout {x.layout}")
    layout = Layout.of(x)
    flat = torch.empty(-(-layout.bytes // x.dtype.itemsize), dtype=x.dtype, device=x.device)
    with torch.no_grad():
        made = flat.as_strided(layout.size, layout.stride, layout.offset).detach()
        made = made.conj() if layout.conj else made
        made = torch._neg_view(made) if layout.neg else made
    return made.requires_grad_(x.requires_grad)


class _Run(torch.fx.Interpreter):
    """A run on fake tensors that keeps the value of every node."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.constants: dict[str, torch.Tensor] = {}
        self._versions: dict[torch.fx.Node, int] = {}  # of values, as last seen

    def run_node(self, n: torch.fx.Node) -> Any:
        """A node; what it changes in place must not overlap itself: torch.export would sum up the
        changes of elements that are the same bytes."""
        used = [self.env[m] for m in n.all_input_nodes if m.op != "get_attr"]
        before = [(x, x._version) for x in used if isinstance(x, torch.Tensor)]
        result = super().run_node(n)
        changed = [x for x, version in before if x._version != version]
        if any(Layout.of(x).overlaps for x in changed):
            raise NotImplementedError(f"{n.name} changes elements that lie in the same memory")
        if changed:
            self._check_seen(n, {_storage(x) for x in changed})
        if isinstance(result, torch.Tensor):
            self._versions[n] = result._version
        return result

    def _check_seen(self, n: torch.fx.Node, storages: set[int]) -> None:
        """A change must be counted by all that lie in the same storage: what x.data changes is not
        by x, and torch.export drops it."""
        for node, version in self._versions.items():
            x = self.env[node]
            if _storage(x) not in storages:
                continue
            if x._version == version:
                raise NotImplementedError(f"{n.name} changes {node.name} through its .data")
            self._versions[node] = x._version

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A constant of the graph, faked once."""
        value = super().get_attr(target, args, kwargs)
        if not isinstance(value, torch.Tensor):
            return value
        if target not in self.constants:
            self.constants[target] = _fake(value)
        return self.constants[target]


_Value = tuple[torch.fx.Node, torch.Tensor]


def _storage(x: torch.Tensor) -> int:
    return int(x.untyped_storage()._cdata)


def _base(members: Sequence[_Value], first: _Value) -> _Value:
    """What is computed for results that share a new storage: one of them that holds the others,
    or `first`, the value that made the storage, when that is no more work or holds them all."""
    layouts = [Layout.of(x) for _, x in members]
    whole = Layout.of(first[1])
    holding = [
        (m, own)
        for m, own in zip(members, layouts)
        if len(members) == 1 or all(o is own or own.covers(o) for o in layouts)
    ]
    if all(whole.covers(o) for o in layouts):
        if not holding or holding[0][1].count >= whole.count:
            return first
    if not holding:
        raise NotImplementedError("results share memory, and none holds the others")
    return holding[0][0]


def _view(x: torch.Tensor, base: torch.Tensor) -> View:
    layout = Layout.of(x)
    return View(layout, layout.first_byte - Layout.of(base).first_byte, x is base, x.requires_grad)


def _with_results(
    gm: torch.fx.GraphModule, results: Sequence[torch.fx.Node]
) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.graph_copy(gm.graph, copies)
    graph.output(tuple(copies[n] for n in results))
    return torch.fx.GraphModule(gm, graph)


def _run_fake(
    gm: torch.fx.GraphModule, args: Sequence[Any]
) -> tuple[_Run, list[Any], list[int]]:
    """A run, its inputs and the positions of those that it changes in place."""
    grad = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(grad), FakeTensorMode():
        inputs = [_fake(a) if isinstance(a, torch.Tensor) else a for a in args]
        tensors = [(i, x) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
        before = [(_storage(x), Layout.of(x), x._version) for _, x in tensors]
        run = _Run(gm)
        run.run(*inputs)
    changed = []
    for (i, x), (storage, layout, version) in zip(tensors, before):
        if (_storage(x), Layout.of(x)) != (storage, layout):
            raise NotImplementedError("the shape or place of an input is changed in place")
        if x._version != version:
            changed.append(i)
    return run, inputs, changed


def find_places(gm: torch.fx.GraphModule, args: Sequence[Any]) -> Places:
    """Where the results of a call with these arguments are."""
    run, inputs, changed = _run_fake(gm, args)
    owners: dict[int, tuple[str, Any, torch.Tensor]] = {}  # of storages
    for i, x in enumerate(inputs):
        if isinstance(x, torch.Tensor):
            owners[_storage(x)] = ("input", i, x)
    for target, x in run.constants.items():
        owners.setdefault(_storage(x), ("constant", target, x))
    nodes = [(n, run.env[n]) for n in gm.graph.nodes if isinstance(run.env.get(n), torch.Tensor)]
    outputs = next(n for n in gm.graph.nodes if n.op == "output").args[0]
    new: dict[int, list[_Value]] = {}
    for o in outputs:
        x = run.env.get(o) if isinstance(o, torch.fx.Node) else None
        if isinstance(x, torch.Tensor) and _storage(x) not in owners:
            new.setdefault(_storage(x), []).append((o, x))
    bases: list[_Value] = []
    for storage, members in new.items():
        first = next(v for v in nodes if _storage(v[1]) == storage)
        node, x = _base(members, first)
        owners[storage] = ("computed", len(bases), x)
        bases.append((node, x))
    results: list[Result] = []
    seen: dict[int, int] = {}  # by the fake tensor's id
    for i, o in enumerate(outputs):
        x = run.env.get(o) if isinstance(o, torch.fx.Node) else o
        if not isinstance(x, torch.Tensor):
            results.append(Result("value", x))
        elif id(x) in seen:
            results.append(Result("result", seen[id(x)]))
        else:
            source, index, base = owners[_storage(x)]
            results.append(Result(source, index, _view(x, base)))
            seen[id(x)] = i
    return Places(
        _with_results(gm, [n for n, _ in bases]),
        results,
        [Layout.of(x) for _, x in bases],
        [x.requires_grad for _, x in bases],
        changed,
    )
