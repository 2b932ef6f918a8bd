#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention in the forms in which exporters write it, in sizes that fit nothing.

    attention_forms.py --write FOLDER          needs onnx and numpy: one model a form, inputs and expected outputs in case/
    attention_forms.py BIN_DIR FOLDER [NAME]   each model: recognised as it should be, values in f32 and f16

The expected values are computed here by NumPy in f64, by one function that knows nothing of the forms. A form's name says how
many attention nodes it has to become: 'not_...' none, all others one. Inputs are shared: q, k, v [1, 77, 140] are 7 heads of
20 (qg, kg, vg: 6 and 2 heads); qc has 13 rows, qd one; q2, k2, v2 are a batch of two.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

S, H, D = 77, 7, 20
LOWEST = -3.4028234663852886e38


# ---- expected values

def attention(np, q, k, v, heads, kv_heads=None, keep=None, bias=None, scale=None, fill=-float("inf"), cap=0.0, zero=False):
    """q [B, M, heads * D]; keep, bias broadcast to [B, heads, M, S]."""
    kv_heads = kv_heads or heads
    split = lambda x, n: x.astype("f8").reshape(x.shape[0], x.shape[1], n, -1).transpose(0, 2, 1, 3)
    q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
    k, v = (np.repeat(x, heads // kv_heads, axis=1) for x in (k, v))
    s = q @ k.transpose(0, 1, 3, 2) * (scale or 1 / np.sqrt(q.shape[-1]))
    s = cap * np.tanh(s / cap) if cap else s
    s = s if bias is None else s + bias
    if keep is not None:
        keep = np.broadcast_to(keep, s.shape)
        s = np.where(keep, s, fill)
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(-1, keepdims=True))
        p = p / p.sum(-1, keepdims=True)
    if zero:
        p = np.where(keep.any(-1, keepdims=True), p, 0)
    y = (p @ v).transpose(0, 2, 1, 3)
    return y.reshape(y.shape[0], y.shape[1], -1).astype("f4")


# ---- models

class Form:
    """A graph under construction: f("Add", a, b, attr=...) gives the name of the result."""

    def __init__(self, np, onnx, name, opset=18):
        self.np, self.onnx, self.name, self.opset = np, onnx, name, opset
        self.nodes, self.consts, self.inputs, self.outputs = [], [], {}, {}

    def __call__(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [f"t{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def const(self, value, dtype=None):
        array = self.np.array(value, dtype=dtype)
        name = f"c{len(self.consts)}"
        self.consts.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def f(self, value):
        return self.const(value, "f4")

    def ints(self, *values):
        return self.const(values, "i8")

    def give(self, **arrays):
        self.inputs.update(arrays)
        return list(arrays)

    def out(self, name, value):
        self.nodes.append(self.onnx.helper.make_node("Identity", [name], ["y"]))
        self.outputs["y"] = value

    # pieces that forms have in common
    def heads(self, x, n=H, rows=S, batch=1):
        """[B, rows, n * D] -> [B, n, rows, D]"""
        return self("Transpose", self("Reshape", x, self.ints(batch, rows, n, D)), perm=[0, 2, 1, 3])

    def join(self, x, n=H, rows=S, batch=1):
        return self("Reshape", self("Transpose", x, perm=[0, 2, 1, 3]), self.ints(batch, rows, n * D))

    def turned(self, k):
        return self("Transpose", k, perm=[0, 1, 3, 2])

    def save(self, folder):
        h, np = self.onnx.helper, self.np
        dtype = lambda a: h.np_dtype_to_tensor_dtype(a.dtype)
        info = lambda n, a: h.make_tensor_value_info(n, dtype(a), a.shape)
        graph = h.make_graph(self.nodes, self.name, [info(n, a) for n, a in self.inputs.items()],
                             [info(n, a) for n, a in self.outputs.items()], self.consts)
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", self.opset)], ir_version=8 if self.opset < 21 else 10)
        self.onnx.checker.check_model(model)
        case = folder / self.name
        case.mkdir(parents=True, exist_ok=True)
        self.onnx.save(model, case / "model.onnx")
        np.save(case / "out_y.npy", self.outputs["y"])
        for name, array in self.inputs.items():
            np.save(folder / f"in_{name}.npy", array)


class Forms:
    def __init__(self, np, onnx):
        self.np, self.onnx = np, onnx
        rng = np.random.default_rng(7)
        draw = lambda *shape: rng.standard_normal(shape).astype("f4").astype("f2").astype("f4")
        self.q, self.k, self.v = (draw(1, S, H * D) for _ in range(3))
        self.qg, self.kg, self.vg = draw(1, S, 6 * D), draw(1, S, 2 * D), draw(1, S, 2 * D)
        self.qc, self.qd = draw(1, 13, H * D), draw(1, 1, H * D)
        self.q2, self.k2, self.v2 = (draw(2, 9, 2 * D) for _ in range(3))
        self.mask = np.ones((1, S), "i8")
        self.mask[0, 41:] = 0
        self.mask2 = np.array([[1] * 9, [1] * 5 + [0] * 4], "i8")
        self.bias = draw(1, H, S, S)
        self.i, self.j = np.arange(S)[:, None], np.arange(S)[None, :]

    def form(self, name, opset=18):
        return Form(self.np, self.onnx, name, opset)

    def expect(self, *args, **kw):
        return attention(self.np, *args, **kw)

    def all(self):
        for name in sorted(dir(self)):
            if name.startswith("form_"):
                made = getattr(self, name)()
                yield from made if isinstance(made, list) else [made]

    def mha(self, f):
        q, k, v = f.give(q=self.q, k=self.k, v=self.v)
        return f.heads(q), f.heads(k), f.heads(v)

    def form_dynamo(self):
        """Scale on both operands, keys turned between reshapes, a window And a mask by GatherND, IsNaN."""
        np, out = self.np, []
        for fill, name in ((LOWEST, "dynamo_lowest"), (-float("inf"), "dynamo_inf")):
            f = self.form(name)
            q, k, v = self.mha(f)
            f.give(mask=self.mask)
            root = f.f(D ** -0.25)
            k3 = f("Transpose", f("Reshape", k, f.ints(-1, S, D)), perm=[0, 2, 1])
            kt = f("Mul", f("Reshape", k3, f.ints(1, H, D, S)), root)
            grid = np.stack(np.broadcast_arrays(np.zeros((1, 1, 1, S), "i8"), self.j), -1).astype("i8")
            keys = f("GatherND", f("Cast", "mask", to=9), f.const(grid))
            band = abs(self.i - self.j) <= 8
            both = f("And", f.const(band[None, None]), keys)
            score = f("Add", f("MatMul", f("Mul", q, root), kt), f("Where", both, f.f(0.0), f.f(fill)))
            p = f("Softmax", score, axis=-1)
            p = f("Where", f("IsNaN", p), f.f(0.0), p)
            keep = band & (self.mask[0] != 0)
            f.out(f.join(f("MatMul", p, v)), self.expect(self.q, self.k, self.v, H, keep=keep, fill=fill, zero=fill < -1e39))
            out.append(f)
        return out

    def form_eager(self):
        f = self.form("eager")
        q, k, v = self.mha(f)
        f.give(mask=self.mask)
        keys = f("Unsqueeze", f("Cast", "mask", to=9), f.ints(1, 2))
        add = f("Where", keys, f.f(0.0), f.f(LOWEST))
        score = f("Add", f("Mul", f("MatMul", q, f.turned(k)), f.f(D ** -0.5)), add)
        f.out(f.join(f("MatMul", f("Softmax", score, axis=-1), v)), self.expect(self.q, self.k, self.v, H, keep=self.mask[0] != 0))
        return f

    def form_legacy(self):
        """Opset 11: keys transposed at once, Div, (1 - mask) * -10000, operands the other way round."""
        f = self.form("legacy11", 11)
        q, k, v = f.give(q=self.q, k=self.k, v=self.v)
        f.give(mask=self.mask)
        q, v = f.heads(q), f.heads(v)
        kt = f("Transpose", f("Reshape", k, f.ints(1, S, H, D)), perm=[0, 2, 3, 1])
        m = f("Cast", f("Unsqueeze", f("Unsqueeze", "mask", axes=[1]), axes=[2]), to=1)
        low = f("Mul", f.f(-10000.0), f("Sub", f.f(1.0), m))
        score = f("Add", low, f("Div", f("MatMul", q, kt), f.f(D ** 0.5)))
        f.out(f.join(f("MatMul", f("Softmax", score, axis=3), v)),
              self.expect(self.q, self.k, self.v, H, bias=-10000.0 * (1 - self.mask[0])))
        return f

    def form_expanded_mask(self):
        """The mask repeated to [B, 1, S, S] at run time, inverted as floats, selected."""
        f = self.form("expanded_mask")
        q, k, v = f.give(q2=self.q2, k2=self.k2, v2=self.v2)
        f.give(mask2=self.mask2)
        q, k, v = (f.heads(x, 2, 9, 2) for x in (q, k, v))
        m = f("Expand", f("Unsqueeze", "mask2", f.ints(1, 2)), f.ints(2, 1, 9, 9))
        inverse = f("Sub", f.f(1.0), f("Cast", m, to=1))
        low = f("Where", f("Cast", inverse, to=9), f.f(LOWEST), inverse)
        score = f("Add", f("Div", f("MatMul", q, f.turned(k)), f.f(D ** 0.5)), low)
        f.out(f.join(f("MatMul", f("Softmax", score, axis=-1), v), 2, 9, 2),
              self.expect(self.q2, self.k2, self.v2, 2, keep=self.mask2[:, None, None, :] != 0))
        return f

    def form_causal(self):
        """Constants that hide what comes later: added, selected, of Trilu, with a bias beside."""
        np, out = self.np, []
        low = self.j <= self.i
        for name in ("causal_added", "causal_selected", "causal_trilu", "causal_bias"):
            f = self.form(name)
            q, k, v = self.mha(f)
            score = f("MatMul", f("Mul", q, f.f(D ** -0.5)), f.turned(k))
            bias = None
            if name == "causal_added":
                score = f("Add", score, f.f(np.where(low, 0, -10000.0)[None, None]))
            elif name == "causal_selected":
                score = f("Where", f.const(~low), f.f(LOWEST), score)
            elif name == "causal_trilu":
                full = f("ConstantOfShape", f.ints(S, S), value=self.onnx.helper.make_tensor("v", 1, [1], [-float("inf")]))
                score = f("Add", score, f("Trilu", full, f.const(1, "i8"), upper=1))
            else:
                bias = (-0.25 * abs(self.i - self.j))[None, None]
                score = f("Add", score, f.f(np.where(low, bias, -np.inf)))
            f.out(f.join(f("MatMul", f("Softmax", score, axis=-1), v)),
                  self.expect(self.q, self.k, self.v, H, keep=low, bias=bias))
            out.append(f)
        return out

    def form_flat(self):
        """Batch and heads as one dimension; the mask meets the scores where they are two."""
        f = self.form("flat")
        q, k, v = f.give(q2=self.q2, k2=self.k2, v2=self.v2)
        f.give(mask2=self.mask2)
        flat = lambda x: f("Reshape", f.heads(x, 2, 9, 2), f.ints(4, 9, D))
        score = f("MatMul", f("Mul", flat(q), f.f(D ** -0.5)), f("Transpose", flat(k), perm=[0, 2, 1]))
        low = f("Where", f("Unsqueeze", f("Cast", "mask2", to=9), f.ints(1, 2)), f.f(0.0), f.f(-float("inf")))
        score = f("Reshape", f("Add", f("Reshape", score, f.ints(2, 2, 9, 9)), low), f.ints(4, 9, 9))
        y = f("MatMul", f("Softmax", score, axis=-1), flat(v))
        f.out(f.join(f("Reshape", y, f.ints(2, 2, 9, D)), 2, 9, 2),
              self.expect(self.q2, self.k2, self.v2, 2, keep=self.mask2[:, None, None, :] != 0))
        return f

    def form_flat_mask(self):
        """As torch's MultiheadAttention: the mask is repeated for the heads and has their dimension."""
        f = self.form("flat_mask")
        q, k, v = f.give(q2=self.q2, k2=self.k2, v2=self.v2)
        f.give(mask2=self.mask2)
        flat = lambda x: f("Reshape", f.heads(x, 2, 9, 2), f.ints(4, 9, D))
        m = f("Reshape", f("Cast", "mask2", to=9), f.ints(2, 1, 1, 9))
        m = f("Reshape", f("Expand", m, f.ints(2, 2, 1, 9)), f.ints(4, 1, 9))
        low = f("Where", m, f.f(0.0), f.f(-float("inf")))
        score = f("Add", f("MatMul", f("Mul", flat(q), f.f(D ** -0.5)), f("Transpose", flat(k), perm=[0, 2, 1])), low)
        y = f("MatMul", f("Softmax", score, axis=-1), flat(v))
        f.out(f.join(f("Reshape", y, f.ints(2, 2, 9, D)), 2, 9, 2),
              self.expect(self.q2, self.k2, self.v2, 2, keep=self.mask2[:, None, None, :] != 0))
        return f

    def form_grouped(self):
        """Six query heads on two key heads: repeated, or a dimension of their own."""
        np, out = self.np, []
        low = self.j <= self.i
        for name in ("grouped_repeated", "grouped_split", "grouped_node"):
            f = self.form(name, 23 if name == "grouped_node" else 18)
            q, k, v = f.give(qg=self.qg, kg=self.kg, vg=self.vg)
            expected = self.expect(self.qg, self.kg, self.vg, 6, 2, keep=low)
            if name == "grouped_node":
                f.out(f("Attention", q, k, v, q_num_heads=6, kv_num_heads=2, is_causal=1), expected)
                out.append(f)
                continue
            q, k, v = f.heads(q, 6), f.heads(k, 2), f.heads(v, 2)
            mask = f.f(np.where(low, 0, LOWEST)[None, None])
            if name == "grouped_repeated":
                repeat = lambda x: f("Reshape", f("Expand", f("Unsqueeze", x, f.ints(2)), f.ints(1, 2, 3, S, D)), f.ints(1, 6, S, D))
                score = f("Add", f("Mul", f("MatMul", q, f.turned(repeat(k))), f.f(D ** -0.5)), mask)
                y = f("MatMul", f("Softmax", score, axis=-1), repeat(v))
            else:
                q5 = f("Reshape", q, f.ints(1, 2, 3, S, D))
                k5 = f("Transpose", f("Unsqueeze", k, f.ints(2)), perm=[0, 1, 2, 4, 3])
                score = f("Add", f("Mul", f("MatMul", q5, k5), f.f(D ** -0.5)), mask)
                y = f("MatMul", f("Softmax", score, axis=-1), f("Unsqueeze", v, f.ints(2)))
                y = f("Reshape", y, f.ints(1, 6, S, D))
            f.out(f.join(y, 6), expected)
            out.append(f)
        return out

    def form_cross(self):
        f = self.form("cross")
        q, k, v = f.give(qc=self.qc, k=self.k, v=self.v)
        q, k, v = f.heads(q, H, 13), f.heads(k), f.heads(v)
        score = f("Mul", f.f(D ** -0.5), f("MatMul", q, f.turned(k)))
        f.out(f.join(f("MatMul", f("Softmax", score, axis=-1), v), H, 13), self.expect(self.qc, self.k, self.v, H))
        return f

    def form_decode(self):
        """One query; the keys up to a position that is known at run time only."""
        f = self.form("decode")
        position = self.np.array([52], "i8")
        q, k, v = f.give(qd=self.qd, k=self.k, v=self.v)
        f.give(position=position)
        q, k, v = f.heads(q, H, 1), f.heads(k), f.heads(v)
        see = f("LessOrEqual", f.const(self.j, "i8"), f("Unsqueeze", "position", f.ints(1)))
        low = f("Where", see, f.f(0.0), f.f(LOWEST))
        score = f("Add", f("Mul", f("MatMul", q, f.turned(k)), f.f(D ** -0.5)), low)
        f.out(f.join(f("MatMul", f("Softmax", score, axis=-1), v), H, 1),
              self.expect(self.qd, self.k, self.v, H, keep=self.j <= 52))
        return f

    def form_einsum(self):
        f = self.form("einsum")
        q, k, v = f.give(q=self.q, k=self.k, v=self.v)
        q, k, v = (f("Reshape", x, f.ints(1, S, H, D)) for x in (q, k, v))
        p = f("Softmax", f("Div", f("Einsum", q, k, equation="bqhd,bkhd->bhqk"), f.f(D ** 0.5)), axis=-1)
        y = f("Einsum", p, v, equation="bhqk,bkhd->bqhd")
        f.out(f("Reshape", y, f.ints(1, S, H * D)), self.expect(self.q, self.k, self.v, H))
        return f

    def form_pieces(self):
        """Softmax as ReduceMax, Sub, Exp, ReduceSum, Div; scores capped by tanh; casts around it."""
        f = self.form("pieces")
        q, k, v = self.mha(f)
        score = f("Div", f("MatMul", f("Mul", q, f.f(D ** -0.5)), f.turned(k)), f.f(3.0))
        score = f("Cast", f("Mul", f("Tanh", score), f.f(3.0)), to=1)
        e = f("Exp", f("Sub", score, f("ReduceMax", score, f.ints(-1), keepdims=1)))
        p = f("Div", e, f("ReduceSum", e, f.ints(-1), keepdims=1))
        f.out(f.join(f("MatMul", p, v)), self.expect(self.q, self.k, self.v, H, cap=3.0))
        return f

    def form_guarded(self):
        """Rows of which every score is -infinity set to 0, found before the softmax."""
        f = self.form("guarded")
        q, k, v = f.give(q2=self.q2, k2=self.k2, v2=self.v2)
        mask = self.mask2.copy()
        mask[1] = 0
        f.give(mask3=mask)
        q, k, v = (f.heads(x, 2, 9, 2) for x in (q, k, v))
        low = f("Where", f("Unsqueeze", f("Cast", "mask3", to=9), f.ints(1, 2)), f.f(0.0), f.f(-float("inf")))
        score = f("Add", f("Mul", f("MatMul", q, f.turned(k)), f.f(D ** -0.5)), low)
        seen = f("Not", f("Equal", score, f.f(-float("inf"))))
        some = f("Cast", f("ReduceMax", f("Cast", seen, to=6), f.ints(-1), keepdims=1), to=9)
        p = f("Where", f("Not", some), f.f(0.0), f("Softmax", score, axis=-1))
        f.out(f.join(f("MatMul", p, v), 2, 9, 2),
              self.expect(self.q2, self.k2, self.v2, 2, keep=mask[:, None, None, :] != 0, zero=True))
        return f

    def form_bias(self):
        """An added bias of every head, query and key, and a mask of the keys."""
        f = self.form("bias")
        q, k, v = f.give(q2=self.q2, k2=self.k2, v2=self.v2)
        bias = self.bias[:, :2, :9, :9].copy()
        f.give(mask2=self.mask2, bias2=bias)
        q, k, v = (f.heads(x, 2, 9, 2) for x in (q, k, v))
        low = f("Where", f("Unsqueeze", f("Cast", "mask2", to=9), f.ints(1, 2)), f.f(0.0), f.f(-float("inf")))
        score = f("Mul", f("MatMul", q, f.turned(k)), f.f(D ** -0.5))
        score = f("Add", f("Add", "bias2", score), low)
        f.out(f.join(f("MatMul", f("Softmax", score, axis=-1), v), 2, 9, 2),
              self.expect(self.q2, self.k2, self.v2, 2, keep=self.mask2[:, None, None, :] != 0, bias=bias))
        return f

    def form_not(self):
        """Alike, but no attention: the weights are read again; softmax over the queries."""
        np, out = self.np, []
        for name in ("not_read_again", "not_over_queries"):
            f = self.form(name)
            q, k, v = f.give(q2=self.q2, k2=self.k2, v2=self.v2)
            q, k, v = (f.heads(x, 2, 9, 2) for x in (q, k, v))
            score = f("Mul", f("MatMul", q, f.turned(k)), f.f(D ** -0.5))
            p = f("Softmax", score, axis=-1 if name == "not_read_again" else -2)
            y = f("MatMul", p, v)
            split = lambda x: x.astype("f8").reshape(2, 9, 2, D).transpose(0, 2, 1, 3)
            s = split(self.q2) @ split(self.k2).transpose(0, 1, 3, 2) * D ** -0.5
            axis = -1 if name == "not_read_again" else -2
            w = np.exp(s - s.max(axis, keepdims=True))
            w /= w.sum(axis, keepdims=True)
            z = w @ split(self.v2)
            if name == "not_read_again":
                y = f("Add", y, f("ReduceMax", p, f.ints(-1), keepdims=1))
                z = z + w.max(-1, keepdims=True)
            f.out(f.join(y, 2, 9, 2), z.transpose(0, 2, 1, 3).reshape(2, 9, 2 * D).astype("f4"))
            out.append(f)
        return out


# ---- running them

def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(binaries, folder, form, work):
    npuc, npusim = binaries / "bin" / "npuc", binaries / "bin" / "npusim"
    model = form / "model.onnx"
    graph = run(npuc, model, "--stop-after", "attention", "--emit", "graph")
    inputs = work / form.name
    inputs.mkdir()
    for name in re.findall(r"^in %(\w+)", graph, re.M):
        (inputs / f"in_{name}.npy").symlink_to((folder / f"in_{name}.npy").resolve())
    (inputs / "out_y.npy").symlink_to((form / "out_y.npy").resolve())
    found, rest = graph.count(" = attention "), graph.count(" = softmax ")
    wanted = 0 if form.name.startswith("not_") else 1
    if found != wanted or found + rest != 1:
        raise SystemExit(f"{form.name}: {found} attention and {rest} softmax nodes\n{graph}")
    for dtype, rtol, atol, target, more in (("f32", 1e-4, 2e-5, "server", ()), ("f16", 0, 6e-3, "server", ()),
                                            ("f32", 1e-4, 2e-5, "tiny", ()), ("f16", 0, 6e-3, "edge", ()),
                                            ("f32", 1e-4, 2e-5, "server", ("--skip", "attention"))):
        program = work / "p.npu"
        run(npuc, model, "--target", target, "--dtype", dtype, "-q", "-o", program, *more)
        run(npusim, program, "--inputs", inputs, "--expects", inputs, "--rtol", rtol, "--atol", atol)


def main():
    if sys.argv[1:2] == ["--write"]:
        import numpy
        import onnx
        folder = pathlib.Path(sys.argv[2])
        for form in Forms(numpy, onnx).all():
            form.save(folder)
        return
    binaries, folder, only = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    forms = [f for f in sorted(folder.iterdir()) if f.is_dir() and (not only or f.name in only)]
    faults = []
    with tempfile.TemporaryDirectory() as work:
        for form in forms:
            try:
                check(binaries, folder, form, pathlib.Path(work))
            except SystemExit as fault:
                faults.append(f"{form.name}: {fault}")
    if faults or not forms:
        sys.exit("\n".join(faults) or "no forms")
    print(f"{len(forms)} forms agree")


if __name__ == "__main__":
    main()
