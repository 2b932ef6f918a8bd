#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch gives as a view and what as a copy, in programs of exported models that change one or
the other in place: as eager mode, or refused; never other values."""
import re

from torch_support import Case
import torch
import torch.nn.functional as F
from torch import nn

import npu
from support import ROOT, main

f32, cpu, last = torch.float32, torch.device("cpu"), torch.channels_last
einsum, aten = torch.einsum, torch.ops.aten

# Of a tensor [4, 4].
TRACKED = {
    "diagonal": lambda y: y.diagonal(),
    "diagonal above": lambda y: y.diagonal(1),
    "diagonal below": lambda y: y.diagonal(-2),
    "diagonal of three": lambda y: y.view(2, 2, 4).diagonal(1, 0, 2),
    "linalg.diagonal": lambda y: torch.linalg.diagonal(y),
    "unfold": lambda y: y.unfold(0, 2, 2),
    "unfold with a rest": lambda y: y.unfold(1, 3, 3),
    "unfold once": lambda y: y.unfold(0, 3, 2),
    "einsum transposed": lambda y: einsum("ij->ji", y),
    "einsum the same": lambda y: einsum("ij -> ij", y),
    "einsum of dots": lambda y: einsum("...->...", y),
    "einsum moved": lambda y: einsum("...ij->j...i", y.view(2, 2, 4)),
    "einsum implicit": lambda y: einsum("ba", y),
    "einsum implicit dots": lambda y: einsum("b...a", y.view(2, 2, 4)),
    "einsum sum": lambda y: einsum("ij->i", y),
    "einsum sum of one": lambda y: einsum("ij->i", y[:, :1]),
    "meshgrid of one": lambda y: torch.meshgrid(y[0], indexing="ij")[0],
    "reshape": lambda y: y.reshape(-1),
    "reshape copies": lambda y: y.t().reshape(-1),
    "reshape_as": lambda y: y.reshape_as(y),
    "flatten": lambda y: y.flatten(),
    "flatten copies": lambda y: y.t().flatten(),
    "ravel": lambda y: y.ravel(),
    "ravel copies": lambda y: y.t().ravel(),
    "contiguous": lambda y: y.contiguous(),
    "contiguous copies": lambda y: y.t().contiguous(),
    "contiguous columns": lambda y: y[:, 1:3].contiguous(),
    "contiguous rows": lambda y: y[1:3].contiguous(),
    "contiguous last": lambda y: y.view(1, 2, 2, 4).contiguous(memory_format=last),
    "to": lambda y: y.to(f32),
    "to copies": lambda y: y.to(f32, copy=True),
    "to device": lambda y: y.to("cpu"),
    "to device copies": lambda y: y.to("cpu", copy=True),
    "to device and type": lambda y: y.to(cpu, f32, copy=True),
    "to other": lambda y: y.to(y),
    "to other copies": lambda y: y.to(y, copy=True),
    "aten.to.other": lambda y: aten.to.other(y, y, copy=True),
    "to double": lambda y: y.to(torch.float64),
    "double and back": lambda y: y.double().float(),
    "half": lambda y: y.half(),
    "to last": lambda y: y.view(1, 2, 2, 4).to(memory_format=last),
    "type_as": lambda y: y.type_as(y),
    "clone": lambda y: y.clone(),
    "clone of a view": lambda y: y.t().clone(),
    "moveaxis of three": lambda y: y.view(2, 2, 4).moveaxis((0, 1), (1, 2)),
    "moveaxis": lambda y: y.moveaxis(0, 1),
    "movedim": lambda y: y.view(2, 2, 4).movedim((0, 1), (1, 2)),
    "movedim of one": lambda y: y.movedim(0, 1),
    "swapdims": lambda y: y.swapdims(0, 1),
    "swapaxes": lambda y: y.swapaxes(0, 1),
    "atleast_1d": lambda y: torch.atleast_1d(y),
    "atleast_2d": lambda y: torch.atleast_2d(y[0]),
    "atleast_3d": lambda y: torch.atleast_3d(y),
    "atleast_3d of a vector": lambda y: torch.atleast_3d(y[1]),
    "broadcast_tensors": lambda y: torch.broadcast_tensors(y, y[0])[0],
    "tensor_split": lambda y: y.tensor_split(2)[0],
    "chunk": lambda y: y.chunk(2)[1],
    "unsafe_chunk": lambda y: y.unsafe_chunk(2)[1],
    "split": lambda y: y.split(2)[1],
    "split of sizes": lambda y: y.split([1, 3])[1],
    "split_with_sizes": lambda y: aten.split_with_sizes(y, [1, 3])[1],
    "split.sizes": lambda y: aten.split.sizes(y, [1, 3])[1],
    "unbind": lambda y: y.unbind(0)[1],
    "narrow": lambda y: y.narrow(0, 1, 2),
    "real": lambda y: torch.real(y),
    "conj": lambda y: torch.conj(y),
    "positive": lambda y: torch.positive(y),
    "resolve_conj": lambda y: y.resolve_conj(),
    "resolve_neg": lambda y: y.resolve_neg(),
    "view": lambda y: y.view(2, 8),
    "view_as": lambda y: y.view_as(y),
    "expand": lambda y: y.expand(4, 4),
    "expand_as": lambda y: y.expand_as(y),
    "broadcast_to": lambda y: y.broadcast_to(1, 4, 4),
    "unflatten": lambda y: y.unflatten(0, (2, 2)),
    "T": lambda y: y.T,
    "mT": lambda y: y.mT,
    "H": lambda y: y.H,
    "mH": lambda y: y.mH,
    "adjoint": lambda y: y.adjoint(),
    "t": lambda y: y.t(),
    "unsqueeze": lambda y: y.unsqueeze(1),
    "squeeze": lambda y: y.unsqueeze(0).squeeze(),
    "squeeze.dim": lambda y: y.unsqueeze(0).squeeze(0),
    "squeeze.dims": lambda y: y[None, None].squeeze((0, 1)),
    "permute": lambda y: y.permute(1, 0),
    "transpose": lambda y: y.transpose(0, 1),
    "select": lambda y: y.select(0, 1),
    "slice": lambda y: y[1:3, ::2],
    "detach": lambda y: y.detach(),
    "alias": lambda y: aten.alias(y),
    "dropout": lambda y: torch.dropout(y, 0.5, False),
    "alpha_dropout": lambda y: torch.alpha_dropout(y, 0.5, False),
    "feature_dropout": lambda y: torch.feature_dropout(y, 0.5, False),
    "flip of none": lambda y: y.flip(()),
    "roll by none": lambda y: y.roll(0),
    "repeat": lambda y: y.repeat(1, 1),
    "cat": lambda y: torch.cat([y]),
    "pad": lambda y: F.pad(y, (0, 0)),
    "index": lambda y: y[torch.arange(2)],
    "sum of one": lambda y: y[:, :1].sum(1),
}
# Some uses are refused.
OTHERS = {
    "unfold that overlaps": lambda y: y.unfold(1, 2, 1),
    "unfold with gaps": lambda y: y.unfold(0, 1, 3),
    "einsum of a diagonal": lambda y: einsum("ii->i", y),
    "meshgrid": lambda y: torch.meshgrid(y[0], y[1], indexing="ij")[0],
    "meshgrid xy": lambda y: torch.meshgrid(y[0], y[1], indexing="xy")[1],
    "meshgrid of old": lambda y: aten.meshgrid([y[0], y[1]])[1],
    "to contiguous": lambda y: y.t().to(memory_format=torch.contiguous_format),
    "expand to more": lambda y: y.expand(2, 4, 4),
    "broadcast_tensors to more": lambda y: torch.broadcast_tensors(y, y[0])[1],
    "diagonal outside": lambda y: y.diagonal(5),
    "tensor_split at": lambda y: y.tensor_split((1, 3))[1],
    "hsplit": lambda y: y.hsplit(2)[1],
    "view of a type": lambda y: y.view(torch.int32),
    "as_strided": lambda y: y.as_strided((2, 2), (1, 2)),
}


def through(view, x):
    y = x.clone()
    view(y).mul_(3)
    return y + 0


def behind(view, x):
    y = x.clone()
    v = view(y)
    y.mul_(3)
    return v + 0


def both(view, x):
    y = x.clone()
    v = view(y)
    y.mul_(3)
    v.copy_(v * 2)
    y.add_(1)
    return v, y


def given(view, x):
    return view(x).mul_(3) + 0


class Uses(nn.Module):
    def __init__(self, use, view):
        super().__init__()
        self.use, self.view = use, view

    def forward(self, x):
        return self.use(self.view, x)


class Views(Case):
    def differs(self, use, view):
        """Whether the compiler refused it; fails when values are other ones. Also what was called."""
        model, x = Uses(use, view), torch.arange(16.0).view(4, 4) - 5
        want_in, got_in = x.clone(), x.clone()
        try:
            want = model(want_in)
        except RuntimeError:  # nothing can be written there
            return None, set()
        exported = torch.export.export(model, (x.clone(),))
        called = {str(n.target) for n in exported.graph.nodes if n.op == "call_function"}
        try:
            program = npu.compile(exported, dtype="f32")
        except npu.UnsupportedError as error:
            return error, called
        got = program(got_in)
        want = want if isinstance(want, tuple) else (want,)
        got = got if isinstance(got, tuple) else (got,)
        self.agree([g.float() for g in got] + [got_in], [w.float() for w in want] + [want_in])
        return None, called

    def test_views_and_copies(self):
        called = set()
        for name, view in {**TRACKED, **OTHERS}.items():
            for use in (through, behind, both, given):
                with self.subTest(view=name, use=use.__name__):
                    refused, targets = self.differs(use, view)
                    called |= targets
                    if name in TRACKED:
                        self.assertIsNone(refused)
        rows = (ROOT / "toolchain" / "frontend" / "pt2" / "aten_ops.def").read_text()
        known = re.findall(r'^ATEN_(?:OP|CHAIN)\("([\w.]+)"', rows, re.M)
        views = [
            f"{s.name[6:]}.{s.overload_name or 'default'}"
            for s in torch._C._jit_get_all_schemas()
            if s.name.startswith("aten::")
            and any(r.alias_info and not r.alias_info.is_write for r in s.returns)
        ]
        missing = [v for v in views if v in known and f"aten.{v}" not in called]
        self.assertEqual(missing, [], "operators that give views, without a case")

    def test_refusals_name_the_tensor(self):
        for use, text in ((behind, "'unfold' may share memory"), (given, "memory with 'x'")):
            refused, _ = self.differs(use, lambda y: y.unfold(1, 2, 1))
            self.assertIn(text, str(refused))

    def test_reading_alone_is_not_refused(self):
        for view in (lambda y: y.unfold(1, 2, 1), lambda y: y.unfold(0, 1, 3)):
            self.assertIsNone(self.differs(lambda v, x: (v(x) + 1, x * 2), view)[0])
            self.assertIsNone(self.differs(lambda v, x: v(x * 1).relu_() + 1, view)[0])

    def test_no_grad_is_no_copy(self):
        def inside(view, x):
            y = x.clone()
            with torch.no_grad():
                x.mul_(2)
                y.mul_(3)
                z = y[0]
            z.add_(1)
            return y

        self.assertIsNone(self.differs(inside, None)[0])


if __name__ == "__main__":
    main()
