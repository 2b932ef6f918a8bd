#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases beside it: small modules exported by torch 2.13, plain and after run_decompositions(), with eager's outputs.

    export.py [CASE...]          (torch and numpy are needed; weights are seeded)

A case is a folder: model.pt2, model.core.pt2, inputs/, expects/, case.json (as in tests/data/reports; `options` go to npuc).
Archives are rewritten: no sample inputs, and places in the source only where a case is about them, with made-up folders.
"""
import copy
import io
import json
import logging
import pathlib
import re
import shutil
import struct
import sys
import warnings
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
HERE = pathlib.Path(__file__).resolve().parent
R = torch.randn


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Mutating(nn.Module):
    """Writes into buffers, through views of them too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("cache", torch.ones(1, 4, 3))
        self.lin = nn.Linear(3, 3)

    def forward(self, x, pos):
        self.count.add_(1)
        self.cache.index_copy_(1, pos, self.lin(x)[None])
        self.cache[:, 0].mul_(2)
        return self.cache.sum(1) + self.count


class Layer(nn.Module):
    """A transformer's layer whose keys and values are kept in buffers."""

    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.norm = nn.RMSNorm(dim, eps=1e-6)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.register_buffer("k", torch.zeros(1, heads, length, dim // heads))
        self.register_buffer("v", torch.zeros(1, heads, length, dim // heads))

    def forward(self, x, at):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        self.k.index_copy_(2, at, k)
        self.v.index_copy_(2, at, v)
        mask = torch.arange(self.k.shape[2])[None, :] <= at[:, None]
        y = F.scaled_dot_product_attention(q, self.k, self.v, attn_mask=mask)
        return x + self.out(y.transpose(1, 2).reshape(b, t, c))


class Decoder(nn.Module):
    """Token for token; where it is it knows itself."""

    def __init__(self, vocab=24, dim=16, heads=2, length=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, length) for _ in range(1))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))
        self.register_buffer("seen", torch.full((1,), 3.0))

    def forward(self, token):
        x = self.embed(token)
        for layer in self.layers:
            x = layer(x, self.at)
        self.at.add_(1)
        self.seen.add_(1)
        return F.linear(x, self.embed.weight)


class Tied(nn.Module):
    """Shared and strided storages."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 4)
        self.l = nn.Linear(4, 10, bias=False)
        self.l.weight = self.e.weight
        self.register_buffer("t", torch.arange(24.0).reshape(6, 4).t())
        self.register_buffer("part", torch.arange(100.0)[3:50:7])
        self.register_buffer("wide", torch.tensor([[2.0]]).expand(3, 4))
        self.register_buffer("box", torch.arange(60.0).reshape(3, 4, 5).permute(2, 0, 1)[1:4], persistent=False)

    def forward(self, i):
        return self.l(self.e(i)), self.t * 2, self.part + 1, self.wide + 1, self.box * 3


class Dynamic(nn.Module):
    """Sizes that are open, some in terms of others."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 6)

    def forward(self, x, y):
        b, t = x.shape[0], x.shape[1]
        q = self.l(x).view(b, t, 2, 3).transpose(1, 2)
        z = torch.cat([x, y], 1)
        return q.reshape(b * 2, t * 3), z.mean(1), torch.arange(t)[None] + torch.zeros(b, 1), F.pad(x, (0, 0, 0, t))


class Places(nn.Module):
    """Two named layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Loop(nn.Module):
    """A loop whose count is known."""

    def forward(self, x):
        return torch._higher_order_ops.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 1.5 + i), (torch.tensor(0), x))


class Images(nn.Module):
    """Convolutions, pools and normalisations of images."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(4, 6, 3, stride=(2, 1), padding=(1, 2), groups=2)
        self.b = nn.Conv2d(4, 3, (3, 4), padding="same", dilation=2)
        self.c = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.d = nn.Conv1d(9, 4, 3, stride=2, padding=2, dilation=2)
        self.n = nn.BatchNorm2d(6)
        self.g = nn.GroupNorm(2, 4)
        self.i = nn.InstanceNorm2d(4, affine=True)
        for norm in (self.n, self.g, self.i):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
        self.n.running_mean.normal_()
        self.n.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return (self.n(self.a(x)), self.b(x), self.c(x), self.d(x.mean(1)), self.g(x), self.i(x), F.max_pool2d(x, 3, 2, 1),
                F.max_pool2d(x, 3, 2, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, True, False),
                F.avg_pool2d(x, 3, 2, 1, True), F.adaptive_avg_pool2d(x, (4, 7)), F.adaptive_max_pool2d(x, (3, 4)),
                F.interpolate(x, scale_factor=2), F.interpolate(x, size=(7, 5), mode="bilinear"),
                F.interpolate(x, size=(7, 11), mode="bicubic", align_corners=True), F.pixel_shuffle(x, 2),
                F.unfold(x, (2, 3), padding=1))


def in_place(x):
    b = x.clone()
    b[:, 1:3] = 0
    c = b.view(-1)
    c[0] += 5
    b.transpose(0, 1)[0].relu_()
    b[::2, 1] *= 3
    b.add_(1)
    c[3:5].copy_(torch.ones(2))
    b[0].zero_()
    return b * 2, c


def elementwise(x, y, p):
    return (torch.atan2(x, y), F.gelu(x), F.gelu(x, approximate="tanh"), F.elu(x, 1.7), F.silu(x), F.hardswish(x), F.mish(x),
            F.softplus(x, 2.0), F.logsigmoid(x), F.softshrink(x), F.hardshrink(x), F.leaky_relu(x), F.glu(x, 1), 2 - x, 1 / p,
            torch.div(x, p, rounding_mode="floor"), x % p, torch.fmod(x, p), p**2.7, p**y, 2.5**x, x.clamp(-0.5, 0.5),
            torch.where(x > 0, x, y), x.masked_fill(x > 0, -1e9), torch.addcmul(x, y, p, value=0.5), torch.lerp(x, y, 0.3),
            torch.logaddexp(x, y), torch.round(x, decimals=1), torch.isfinite(x / p), (x > 0) & ~(y > 0), torch.asin(p - 1))


def integers(i, j):
    return (i / j, i // j, i % j, torch.fmod(i, j), i**3, i == j, i < 1, i & j, i | j, i ^ j, ~i, i << j, i >> j, i.sum(0),
            (i > 0).sum(1), i.cumsum(1), i.float().mean(), torch.maximum(i, j), i.to(torch.bool), F.one_hot(j, 6))


def reductions(x):
    return (x.sum(), x.sum((0, 2), keepdim=True), x.mean(-1), x.prod(1), x.amax((1, 2)), *x.max(1), *x.min(-1, keepdim=True),
            x.argmax(), x.argmin(1), (x > 1).any(1), (x > -2).all(), x.var(1), x.std(-1, correction=0),
            *torch.var_mean(x, (1, 2)), torch.logsumexp(x, (1, 2)), x.norm(dim=1), torch.linalg.vector_norm(x, ord=3, dim=-1),
            F.softmax(x, 1), F.log_softmax(x, -1), F.layer_norm(x, (3, 4)), F.rms_norm(x, (4,)))


def views(x):
    return (x.view(6, 16), x.permute(0, 2, 3, 1).reshape(2, -1), x.flatten(1, 2), x.unflatten(3, (4, 1)), x[:, :, None],
            x.movedim(1, 3), x[1], x[:, 1:3, ::2], x[:1].expand(4, 3, 4, 4), x.repeat(1, 2, 1, 1), x.repeat_interleave(2, 1),
            torch.stack([x, x * 2], 2), torch.cat([x, x[:, :1]], 1), *x.split([1, 2], 1), *x.chunk(2, 3), *x.unbind(1)[:2],
            x.flip(1, 3), torch.roll(x, (1, -1), (2, 3)), F.pad(x, (1, 2, 1, 1), mode="reflect"), F.pad(x, (1, 0), value=2.0),
            x.tril(), x.triu(1), torch.diagonal(x, 1, 2, 3), x.unfold(3, 2, 2))


def indices(x, i, j, u):
    return (x[i[:2]], x[:, i], x[i, :, j], x[:, i[:, None], j], x.gather(1, i[None, :, None].expand(3, 3, 5)),
            torch.index_put(x, (i[:2],), u[:1, :1]), x.index_copy(1, i, u), x.index_add(1, i, u), x.index_fill(2, j, 2.0),
            x.scatter(1, i[None, :, None].expand(3, 3, 5), u), x.slice_scatter(u[:, :2], 1, 0, 4, 2),
            x.select_scatter(u[:, 0], 1, -1), F.embedding(i, u[0]))


def attention(q, k, v, mask, bias):
    s = F.scaled_dot_product_attention
    return (s(q, k, v), s(q, k, v, attn_mask=mask), s(q, k, v, attn_mask=bias, scale=0.3), s(q, q, q, is_causal=True),
            s(q, k[:, :2], v[:, :2], enable_gqa=True))


def order(x, long, w):
    """Sorting by all pairs, and of a long row one by one, with equal and infinite elements."""
    equal = (x * 2).round()
    masked = torch.where(long > 1, long, -float("inf"))
    return (*torch.sort(x, descending=True), *torch.sort(equal, dim=0, stable=True), *torch.topk(x, 3, dim=1, largest=False), x.argsort(-1),
            *torch.topk(masked, 5), torch.cdist(x[0].t(), x[1].t()), torch.cdist(x[0], x[1], p=1.0),
            torch.einsum("bij,bkj,jl->bil", x, x, w), torch.bmm(x, w[None].expand(2, 5, 3)))


def order_odd(x, long, one):
    """Orders and running sums of what is not a number, and of infinities."""
    return (*torch.sort(x, stable=True), *torch.sort(x, dim=0, descending=True, stable=True), torch.topk(x, 2)[0],
            torch.topk(x, 2, largest=False)[0], *torch.topk(one[:, :50], 3), *torch.topk(one[:, :50], 50, largest=False),
            x.argsort(stable=True), torch.topk(long, 60)[0], torch.topk(long, 60, largest=False)[0], *torch.topk(one, 4),
            *torch.topk(one, 4, largest=False), x.cumsum(1), x.cumsum(0))


def edges(x, y, a, b, i, j, u, base):
    """Elements where a function overflows, is not a number, or depends on the sign of a zero."""
    return (x ** (1 / 3), x**1.5, x**y, x**3.0, (-2.0) ** y, x**-1.0, torch.fmax(x, y), torch.fmin(x, y), F.hardshrink(x), F.softshrink(x),
            F.threshold(x, 1.0, 7.0), torch.fmod(a, b), torch.floor_divide(a, b), torch.div(a, b, rounding_mode="floor"), a // 0.1, a % b,
            i // j, i.argmin(), torch.asinh(base), torch.acosh(base), torch.signbit(torch.nan_to_num(x)), torch.atan2(x, y),
            base.abs() ** 1e-39, u.clamp(-1, 2), u.clamp_min(-1), u.clamp(1, 5))


def filled(x, mask):
    """Rows filled with numbers that halves cannot hold."""
    return (x.masked_fill(mask, -1e9).softmax(-1), torch.where(mask, -1e9, x * 0.5).softmax(-1), (torch.where(mask, x, 1e6) > 1e4).float())


def nearest(row, image, ints):
    """The elements that nearest takes are computed in floats of 32 bits."""
    def up(v, scale, mode="nearest"):
        return F.interpolate(v, scale_factor=scale, mode=mode)
    return (up(image, (1.0, 0.6)), up(image, (2.1, 1.05)), up(image, (0.6, 0.6), "nearest-exact"), up(image, 2.0, "nearest-exact"), up(row, 0.6),
            up(row, 1.05), up(row, 2.05), up(row, 1.7, "nearest-exact"), F.interpolate(row, 7), F.interpolate(image, (7, 13)), up(ints, (1.0, 0.6)))


def long_rows(x, i):
    """More elements than one instruction reduces: 8 of the input, the rest zeros."""
    x, i = (torch.cat([F.pad(v[:, :4], (5, 65526)), F.pad(v[:, 4:], (0, 4462))], 1) for v in (x, i))
    return x.argmax(-1), x.argmin(), x.max(-1)[1], i.argmin(-1, keepdim=True)


def branches(x):
    return torch.cond(x.sum() > 0, lambda v: (v * 2, v + 1), lambda v: (v - 1, v.sin()), (x,))


def edge_inputs():
    inf, nan = float("inf"), float("nan")
    pairs = torch.cartesian_prod(torch.tensor([nan, -inf, -8.0, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, inf]),
                                 torch.tensor([nan, -inf, -2.0, -1.5, -0.0, 0.0, 0.3, 1.0, 3.0, inf])).t().contiguous()
    a = torch.tensor([1e10, 1e6, 5.0, 6.0, -1.0, inf, -7.5, 7.5, 0.0, 3.0, nan, -6.0, 1.0])
    b = torch.tensor([3.0, 0.1, inf, 0.1, inf, 2.0, 2.0, -2.0, 3.0, 0.0, 1.0, -0.1, -inf])
    i, j = torch.tensor([5, -(2**63), 3, -(2**63), 2**63 - 1, -7]), torch.tensor([3, 3, -2, -1, 2, 7])
    base = torch.tensor([2e19, -3e38, 1e-6, -1e-6, 0.0, 1.0, 1.001, 2.0, -5.0, 1e10, inf, nan, -inf])
    return (*pairs, a, b, i, j, torch.tensor([0, 1, 7], dtype=torch.uint8), base)


def long_inputs():
    x, i = R(3, 8).abs(), torch.zeros(2, 8, dtype=torch.int64)
    x[0, [5, 7]], x[1, [3, 6]], x[2, 4], x[0, 2] = 9.0, 9.0, float("nan"), -1.0
    i[0, 6], i[1, [1, 5]] = -(2**63), -4
    return x, i


def order_inputs():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[3, nan, 1, 2, inf], [nan, nan, -inf, inf, nan], [1, 2, inf, 4, 5], [0, 1, 2, -inf, 0]])
    long = R(1, 3000)
    long[0, [7, 100, 1500]], long[0, [5, 200]], long[0, 30] = nan, inf, -inf
    few = torch.full((1, 3000), nan)
    few[0, 1000:1030], few[0, 2000:2020] = R(30), inf
    one = R(1, 3000)
    one[0, 7], one[0, 3], one[0, 30] = nan, inf, -inf
    return x, torch.cat([long, few]), one


def cases():
    """name -> (module, inputs, extra): extra may hold dynamic, options, state, written, places, steps (tokens of a decoder)."""
    x = R(2, 4, 3, 4)
    ix, jx = torch.tensor([2, 0, 1]), torch.tensor([3, 1, 0])
    mask = R(6, 7) > 0
    mask[2] = False
    batch, length = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("length", min=2, max=16)
    dynamic = {"x": {0: batch, 1: length}, "y": {0: batch, 1: 2 * length}}
    return {
        "attention": (Call(attention), (R(2, 4, 6, 8), R(2, 4, 7, 8), R(2, 4, 7, 8), mask, R(2, 1, 6, 7)), {}),
        "branches": (Call(branches), (R(3),), {}),
        "dynamic": (Dynamic(), (R(2, 4, 8), R(2, 8, 8)), {"dynamic": dynamic, "options": ["--shape=x=2,4,8"]}),
        "elementwise": (Call(elementwise), (x, R(2, 4, 3, 4), torch.rand(2, 4, 3, 4) + 0.5), {}),
        "images": (Images(), (R(1, 4, 9, 8),), {}),
        "in-place": (Call(in_place), (R(4, 4),), {}),
        "indices": (Call(indices), (R(3, 4, 5), ix, jx, R(3, 3, 5)), {}),
        "input-written": (Call(lambda a, b: a.add_(b) * 2), (R(2, 3), R(2, 3)), {"written": [0]}),
        "integers": (Call(integers), (torch.randint(-9, 9, (3, 4)), torch.randint(1, 5, (3, 4))), {}),
        "loop": (Loop(), (R(3),), {}),
        "mutating": (Mutating(), (R(1, 3), torch.tensor([2])), {"state": ["count", "cache"]}),
        "decoder": (Decoder(), (torch.tensor([[5]]),),
                    {"state": ["at", "seen", "layers.0.k", "layers.0.v"], "steps": [5, 11, 2, 2, 23, 0, 7, 19]}),
        "places": (Places(), (R(2, 8),), {"places": True}),
        "filled": (Call(filled), (R(4, 8), torch.tensor([[False], [True], [False], [True]]) | (torch.arange(8) > 5)), {}),
        "nearest": (Call(nearest), (R(1, 2, 10), R(1, 2, 3, 10), torch.randint(0, 9, (1, 1, 3, 10), dtype=torch.uint8)), {}),
        "long-rows": (Call(long_rows), long_inputs(), {}),
        "edges": (Call(edges), edge_inputs(), {}),
        "order-odd": (Call(order_odd), order_inputs(), {}),
        "order": (Call(order), (R(2, 4, 5), R(1, 3000), R(5, 3)), {}),
        "recurrent": (nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True), (R(2, 3, 5),), {}),
        "gru": (nn.GRU(5, 4), (R(3, 2, 5), R(1, 2, 4)), {}),
        "reductions": (Call(reductions), (x,), {}),
        "tied": (Tied(), (torch.tensor([[1, 2]]),), {}),
        "views": (Call(views), (R(2, 3, 4, 4),), {}),
    }


def made_up(trace):
    """Stack traces with folders that are nobody's."""
    def folder(match):
        path = match[1]
        if "/torch/" in path:
            return 'File "/opt/python/site-packages/torch/' + path.split("/torch/")[-1] + '"'
        return 'File "/secret/project/modeling.py"' if path.startswith("/") else match[0]
    return re.sub(r'File "([^"]*)"', folder, trace)


def strip(graph, places):
    for node in graph["nodes"]:
        old = node["metadata"]
        node["metadata"] = {}
        if places:
            node["metadata"] = {"nn_module_stack": old["nn_module_stack"], "stack_trace": made_up(old["stack_trace"])}
        for argument in node["inputs"]:
            if "as_graph" in argument["arg"]:
                strip(argument["arg"]["as_graph"]["graph"], places)


def rewrite(path, places):
    """The archive without sample inputs and machine's paths, entries stored and aligned as torch does."""
    old = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = old.read(name)
            if "/sample_inputs/" in name or "/.data/" in name:
                continue
            if name.endswith("models/model.json"):
                model = json.loads(data)
                strip(model["graph_module"]["graph"], places)
                model["guards_code"] = []
                model["graph_module"]["module_call_graph"] = []
                data = json.dumps(model).encode()
            info = zipfile.ZipInfo("model/" + name.split("/", 1)[1])
            start = new.fp.tell() + 30 + len(info.filename.encode())
            info.extra = struct.pack("<2sH", b"FB", (-start - 4) % 64) + b"Z" * ((-start - 4) % 64)
            new.writestr(info, data)


def save_arrays(folder, names, tensors):
    entries = []
    folder.mkdir()
    for name, tensor in zip(names, tensors):
        file = folder / (name.replace("/", "_") + ".npy")
        np.save(file, tensor.detach().contiguous().numpy())
        entries.append({"name": name, "file": f"{folder.name}/{file.name}"})
    return entries


def write(name, module, inputs, extra):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    module.eval()
    program = torch.export.export(copy.deepcopy(module), tuple(t.clone() for t in inputs), dynamic_shapes=extra.get("dynamic"))
    eager, own = copy.deepcopy(module), [t.clone() for t in inputs]
    with torch.no_grad():
        out = torch.utils._pytree.tree_leaves(eager(*own))
    names = [f"out{k}" for k in range(len(out))]
    arguments = list(program.graph_signature.user_inputs)
    buffers = dict(eager.named_buffers())
    for state in extra.get("state", []):
        names.append(state)
        out.append(buffers[state])
    for k in extra.get("written", []):
        names.append(arguments[k] + ".out")
        out.append(own[k])
    if "steps" in extra:
        decoder, tokens = copy.deepcopy(module), torch.tensor(extra["steps"])
        with torch.no_grad():
            logits = torch.stack([decoder(token.view(1, 1)) for token in tokens])
        np.save(folder / "tokens.npy", tokens.numpy())
        np.save(folder / "logits.npy", logits.numpy())
    forms = {"model.pt2": program}
    if name not in ("loop",):
        forms["model.core.pt2"] = program.run_decompositions()
    for file, form in forms.items():
        torch.export.save(form, folder / file)
        rewrite(folder / file, extra.get("places", False))
    case = {"name": name, "kind": "value", "models": list(forms), "rtol": 1e-4, "atol": 2e-5,
            "inputs": save_arrays(folder / "inputs", arguments, inputs),
            "outputs": save_arrays(folder / "expects", names, out), "options": extra.get("options", [])}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def main():
    for name in cases():
        torch.manual_seed(20)
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        write(name, *cases()[name])
        print(name, sum(f.stat().st_size for f in (HERE / name).rglob("*") if f.is_file()))


if __name__ == "__main__":
    main()
