# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="npu").

Dynamo's graph becomes a program when it is first called, one for each set of input shapes.
Parameters are constants of the program; when one is changed, the graph is compiled again. What
the compiler does not take runs in eager mode, with a warning that names it; so does training.

    model = torch.compile(model, backend="npu")
    model = torch.compile(model, backend="npu", mode="max-autotune")
    model = torch.compile(model, backend="npu", options={"target": "edge", "dtype": "f16"})
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Sequence

import torch
import torch._dynamo.config
import torch.fx
from torch._dynamo.callback import callback_handler

from .errors import GraphBreakWarning, UnsupportedError, UnsupportedNode, UnsupportedWarning
from .errors import UsageError
from .torch_alias import Layout, Places, find_places
from .torch_graph import Graph, input_name, quiet, static_inputs, trace
from .torch_parts import Plan, plan, source_place
from .torch_settings import Settings

_NUMBERS_MAX = 8  # values of a number for which a graph is compiled


def _warn(warning: UnsupportedWarning, place: tuple[str, int] | None) -> None:
    """Warns at a place in the model's source, when it is known."""
    if place:
        warnings.warn_explicit(warning, None, *place)
    else:
        warnings.warn(warning, stacklevel=3)


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _refused_text(nodes: Sequence[UnsupportedNode], programs: int) -> str:
    rest = f"; the rest is {_count(programs, 'program')} for the NPU" if programs else ""
    run = "runs" if len(nodes) == 1 else "run"
    lines = [f"{_count(len(nodes), 'node')} {run} in eager mode{rest}:"]
    for n in nodes[:16]:
        where = f" in {n.module}" if n.module else ""
        lines.append(f"  {n.name} ({n.op}){where}: {n.reason}")
    if len(nodes) > 16:
        lines.append(f"  and {len(nodes) - 16} more")
    return "\n".join(lines)


def _warn_refused(made: Plan) -> None:
    if made.refused:
        text = _refused_text(made.refused, len(made.programs))
        first = next(n for n in made.graph.nodes if n.name == made.refused[0].name)
        _warn(UnsupportedWarning(text, made.refused), source_place(first))


def _warn_break(gm: torch.fx.GraphModule) -> None:
    reason = getattr(gm, "compile_subgraph_reason", None)
    if reason is None or not getattr(reason, "graph_break", False):
        return
    frame = reason.user_stack[-1] if reason.user_stack else None
    where = f" at {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""
    text = str(reason.reason).strip().split("\n")[0]
    _warn(
        GraphBreakWarning(f"graph break{where}, Python runs what follows: {text}"),
        (frame.filename, frame.lineno or 1) if frame else None,
    )


def _trains(gm: torch.fx.GraphModule) -> str | None:
    """The node that makes the graph one of training, by its arguments."""
    for node in gm.graph.nodes:
        name = getattr(node.target, "__name__", str(node.target))
        place = {"dropout": 2, "batch_norm": 5}.get(name)
        if node.op == "call_function" and place is not None:
            flag = node.kwargs.get("training")
            if flag is None and len(node.args) > place:
                flag = node.args[place]
            if flag is True:
                return f"{node.name} ({name})"
    return None


class _Recomputed(torch.autograd.Function):
    """Outputs of the NPU whose gradients come from running the graph again in eager mode."""

    @staticmethod
    def forward(ctx: Any, owner: CompiledGraph, ready: Ready, *args: Any) -> Any:
        ctx.random = torch.get_rng_state()
        outputs = owner.compute(ready, args)
        ctx.owner, ctx.gm = owner, ready.places.gm
        # What nothing is computed of may be changed before the gradients are asked for.
        idle = owner.idle(ready, args)
        saved = [isinstance(a, torch.Tensor) and i not in idle for i, a in enumerate(args)]
        ctx.constants = [None if kept else a for a, kept in zip(args, saved)]
        ctx.save_for_backward(*(a for a, kept in zip(args, saved) if kept))
        ctx.mark_non_differentiable(
            *(o for o, flows in zip(outputs, ready.places.differentiable) if not flows)
        )
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.owner.leave("training: gradients were asked for, the graph runs in eager mode from here on")
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if c is None else c for c in ctx.constants]
        inputs = [
            a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a
            for a in args
        ]
        with torch.enable_grad(), torch.random.fork_rng(devices=()):
            torch.set_rng_state(ctx.random)  # the random numbers of the forward pass once more
            outputs = ctx.gm(*inputs)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads)
            if o.requires_grad and g is not None
        ]
        wanted = [i for i, a in enumerate(inputs) if isinstance(a, torch.Tensor) and a.requires_grad]
        found = torch.autograd.grad(
            [o for o, _ in pairs],
            [inputs[i] for i in wanted],
            [g for _, g in pairs],
            allow_unused=True,
        )
        result: list[Any] = [None] * (len(inputs) + 2)
        for i, g in zip(wanted, found):
            result[i + 2] = g
        return tuple(result)


def _version(tensor: torch.Tensor) -> tuple[int, int]:
    try:
        return tensor.data_ptr(), tensor._version
    except RuntimeError:  # made in inference mode: nobody counts
        return tensor.data_ptr(), 0


def _number_inputs(gm: torch.fx.GraphModule) -> list[int]:
    """Positions of inputs that are Python's numbers: Dynamo brings a float that changes as a tensor
    of which only item() is taken. The graph takes the number itself from here on."""
    found = []
    places = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for i, node in enumerate(places):
        if not node.users or any((u.op, u.target) != ("call_method", "item") for u in node.users):
            continue
        found.append(i)
        for user in list(node.users):
            user.replace_all_uses_with(node)
            gm.graph.erase_node(user)
    if found:
        gm.recompile()
    return found


@dataclass
class Ready:
    """What a call with inputs of some shapes and strides does."""

    places: Places
    plan: Plan | None  # None: nothing is computed, all results are views of inputs


def _key(args: Sequence[Any]) -> Any:
    """What `Ready` depends on."""
    return torch.is_grad_enabled(), *(
        (tuple(a.shape), a.stride(), a.dtype, a.requires_grad, a.is_conj(), a.is_neg())
        if isinstance(a, torch.Tensor) and a.layout == torch.strided
        else repr(a.layout if isinstance(a, torch.Tensor) else a)
        for a in args
    )


class CompiledGraph:
    """What Dynamo calls instead of the graph."""

    def __init__(self, gm: torch.fx.GraphModule, examples: Sequence[Any], settings: Settings):
        self.gm = gm
        self.settings = settings
        self.static = static_inputs(gm, examples)
        self.numbers = _number_inputs(gm)
        self.plans: dict[Any, Ready] = {}
        self.versions: dict[int, tuple[int, int]] = {}
        self.eager = False
        self.trains = _trains(gm)
        self._changes: dict[int, int] = {}

    def leave(self, why: str) -> None:
        """Eager mode from here on."""
        if not self.eager:
            self.eager = True
            nodes = [n for n in self.gm.graph.nodes if n.op == "call_function"]
            _warn(UnsupportedWarning(why), source_place(nodes[0]) if nodes else None)

    def __call__(self, *args: Any) -> Any:
        if self.numbers:
            args = tuple(a.item() if i in self.numbers else a for i, a in enumerate(args))
        if not self.eager and torch.is_grad_enabled():
            differentiable = [
                i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad
            ]
            if self.trains and differentiable:
                self.leave(f"training: {self.trains} trains, the graph runs in eager mode")
            elif any(i not in self.static for i in differentiable):
                self.leave("training: an input requires gradients, the graph runs in eager mode")
            elif differentiable:
                ready = self.ready_for(args)
                if ready is not None and not ready.places.changed:
                    run: Any = _Recomputed.apply
                    computed = run(self, ready, *args) if ready.plan else ()
                    return ready.places.gather(args, computed)
                if ready is not None:
                    self.leave(
                        "the graph changes tensors in place while gradients are recorded, and runs "
                        "in eager mode; torch.no_grad() around the call puts it on the NPU"
                    )
        if self.eager:
            return self.gm(*args)
        return self.run_plan(args)

    def run_plan(self, args: Sequence[Any]) -> Any:
        """The call on the NPU."""
        ready = self.ready_for(args)
        if ready is None or self._tangled(ready.places, args):
            return self.gm(*args)
        return ready.places.gather(args, self.compute(ready, args))

    def _tangled(self, places: Places, args: Sequence[Any]) -> bool:
        """Whether an input that is changed shares memory with another: eager from here on."""
        both = places.tangled(args)
        if both is not None:
            changed, other = (input_name(self.gm, i) for i in both)
            self.leave(
                f"input '{changed}' is changed in place and shares memory with '{other}', the graph "
                "runs in eager mode"
            )
        return both is not None

    def compute(self, ready: Ready, args: Sequence[Any]) -> Sequence[torch.Tensor]:
        """What a call computes; inputs are changed."""
        if ready.plan is None:
            return ()
        with torch.no_grad():
            return ready.plan([args[i] for i in self._dynamic(args)], ready.places)

    def idle(self, ready: Ready, args: Sequence[Any]) -> set[int]:
        """Inputs that nothing is computed of: at most, results are views of them."""
        nodes = ready.plan.graph.inputs if ready.plan else []
        return {i for i, node in zip(self._dynamic(args), nodes) if not node.users}

    def _dynamic(self, args: Sequence[Any]) -> list[int]:
        return [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and i not in self.static]

    def _forget_changed(self, args: Sequence[Any]) -> None:
        """A tensor of the model that changes once is compiled in again; one that does so twice is
        an input from then on."""
        now = {i: _version(args[i]) for i in self.static}
        changed = [i for i in now if i in self.versions and self.versions[i] != now[i]]
        self.versions = now
        if changed:
            self.plans.clear()
        for i in changed:
            self._changes[i] = self._changes.get(i, 0) + 1
        self._release(i for i in changed if self._changes[i] > 1)

    def _release(self, places: Iterable[int]) -> None:
        """These tensors of the model are inputs from here on."""
        for i in places:
            del self.static[i]
            del self.versions[i]
            self.plans.clear()

    def ready_for(self, args: Sequence[Any]) -> Ready | None:
        """What a call with arguments like these does; None when the graph cannot be exported."""
        self._forget_changed(args)
        key = _key(args)
        if key not in self.plans and not self.eager:
            if self.numbers and len(self.plans) >= _NUMBERS_MAX:
                self.leave(
                    f"a number of the graph has more than {_NUMBERS_MAX} values, each a program of "
                    "its own; the graph runs in eager mode. A tensor instead stays on the NPU"
                )
                return None
            made = self._make(args)
            if made is None:
                return None
            self.plans[key] = made
        return self.plans.get(key)

    def _trace(self, gm: torch.fx.GraphModule, args: Sequence[Any]) -> Graph:
        """The functional graph; tensors of the model that it changes are inputs of it."""
        with torch.inference_mode(False):
            graph = trace(gm, args, self.static)
            names = {graph.lifted[w].target for w, _ in graph.mutated if w in graph.lifted}
            changed = [i for i, name in self.static.items() if name in names]
            if changed:
                self._release(changed)
                graph = trace(gm, args, self.static)
        for node in graph.nodes:
            if node.target is torch.ops.aten.as_strided.default:
                source = node.all_input_nodes[0]
                if source.op != "placeholder" and not Layout.of(source.meta["val"]).whole:
                    raise NotImplementedError("as_strided of a view")
        return graph

    def _make(self, args: Sequence[Any]) -> Ready | None:
        plain = [int(a) if isinstance(a, torch.SymInt) else a for a in args]
        try:
            with quiet():
                places = find_places(self.gm, plain)
            if self._tangled(places, plain):
                return None
            if not places.computed and not places.changed:
                return Ready(places, None)
            graph = self._trace(places.gm, plain)
        except Exception as error:  # whatever torch.export raises: the model must still run
            if not self.settings.fallback:
                raise
            first = (str(error).strip().splitlines() or [""])[0]
            self.leave(
                "the graph cannot be traced and runs in eager mode: "
                f"{type(error).__name__}: {first}"
            )
            return None
        made = plan(graph, self.settings.compile)
        if made.refused and not self.settings.fallback:
            raise UnsupportedError(_refused_text(made.refused, 0))
        _warn_refused(made)
        return Ready(places, made)


def _raises(text: str) -> Callable[..., Any]:
    def call(*_: Any) -> Any:
        raise UsageError(text)

    return call


def npu_backend(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend: what torch.compile(backend="npu") calls with each graph."""
    try:
        settings = Settings.of(mode, options)
    except UsageError as error:  # Dynamo would wrap what is raised here
        return _raises(str(error))
    _warn_break(gm)
    return CompiledGraph(gm, example_inputs, settings).__call__


# ---- recurrent modules -----------------------------------------------------------------------
#
# Dynamo leaves whole modules with nn.LSTM, GRU or RNN to Python without a word, unless allow_rnn is
# set. That setting is everybody's, so it is changed while Dynamo traces for this backend only.


def _is_ours(backend: Any) -> bool:
    while backend is not None:
        if backend is npu_backend or getattr(backend, "func", None) is npu_backend:
            return True
        inner = getattr(backend, "_torchdynamo_orig_backend", None)
        backend = inner if inner is not None else getattr(backend, "compiler_fn", None)
    return False


def _traced_for_npu() -> bool:
    """Whether the compilation that a callback is told of is for this backend."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_compile" and "compiler_fn" in frame.f_locals:
            return _is_ours(frame.f_locals["compiler_fn"])
        frame = frame.f_back  # type: ignore[assignment]
    return False


_allowed_before: list[bool] = []  # allow_rnn as it was, while Dynamo traces for this backend


def _trace_starts(_: Any) -> None:
    if _traced_for_npu():
        _allowed_before.append(torch._dynamo.config.allow_rnn)
        torch._dynamo.config.allow_rnn = True


def _trace_ends(_: Any) -> None:
    if _allowed_before:
        torch._dynamo.config.allow_rnn = _allowed_before.pop()


_clear_callbacks = callback_handler.clear


def _watch_traces() -> None:
    """Also after torch._dynamo.reset(), which clears callbacks."""
    _clear_callbacks()
    callback_handler.register_start_callback(_trace_starts)
    callback_handler.register_end_callback(_trace_ends)


callback_handler.register_start_callback(_trace_starts)
callback_handler.register_end_callback(_trace_ends)
callback_handler.clear = _watch_traces  # type: ignore[method-assign]


def register() -> None:
    """Makes "npu" a name that torch.compile knows; an installed package needs no call."""
    from torch._dynamo.backends.registry import register_backend

    register_backend(npu_backend, name="npu")
