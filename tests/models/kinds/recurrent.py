# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM in all their forms: directions, initial states, lengths of sequences, peepholes, clip, layouts, activations.

The right values are this file's own, in f64, step by step as the operators' definitions read; cross_check() compares them
with ONNX Runtime where it has the form.
"""
import numpy as np
from onnx import TensorProto

from build import Model, numbers

HALF = {"rtol": 0, "atol": 1.5e-2}
STEPS, BATCH, IN, HIDDEN = 6, 3, 5, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def sigmoid(x, *_):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "sigmoid": sigmoid, "tanh": lambda x, a, b: np.tanh(x), "relu": lambda x, a, b: np.maximum(x, 0),
    "affine": lambda x, a, b: a * x + b, "leakyrelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a, b: np.where(x >= a, x, 0), "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1), "elu": lambda x, a, b: np.where(x < 0, a * (np.exp(x) - 1), x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)), "softplus": lambda x, a, b: np.log1p(np.exp(x)),
}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
# alpha and beta where the node gives none
CONSTANTS = {"affine": (1, 0), "leakyrelu": (.01, 0), "thresholdedrelu": (1, 0), "scaledtanh": (1, 1), "hardsigmoid": (.2, .5), "elu": (1, 0)}


class Cell:
    """One direction of a node."""

    def __init__(self, op, d, w, r, bias, peephole, attributes):
        self.op, self.n = op, r.shape[-1]
        self.w, self.r = w[d].astype(np.float64), r[d].astype(np.float64)
        gates = GATES[op] * self.n
        self.wb, self.rb = (bias[d, :gates], bias[d, gates:]) if bias is not None else (np.zeros(gates), np.zeros(gates))
        self.p = None if peephole is None else peephole[d].astype(np.float64)
        count = len(DEFAULTS[op])
        names = attributes.get("activations", DEFAULTS[op] * 2)[d * count:d * count + count]
        self.clip = attributes.get("clip", np.inf)
        self.linear = attributes.get("linear_before_reset", 0)
        self.couple = attributes.get("input_forget", 0)
        alphas, betas = list(attributes.get("activation_alpha", [])), list(attributes.get("activation_beta", []))
        self.f = []
        for name in attributes.get("activations", DEFAULTS[op] * 2):
            # alpha and beta are taken by the activations that have them, in order
            a, b = CONSTANTS.get(name.lower(), (0, 0))
            if name.lower() in CONSTANTS:
                a = alphas.pop(0) if alphas else a
                if name.lower() in ("affine", "scaledtanh", "hardsigmoid"):
                    b = betas.pop(0) if betas else b
            self.f.append((FUNCTIONS[name.lower()], a, b))
        self.f = self.f[d * count:d * count + count]
        assert len(names) == count

    def act(self, k, x):
        """clip bounds what gates see; not the cell that the last activation of an LSTM sees, as runtimes have it."""
        function, a, b = self.f[k]
        return function(np.clip(x, -self.clip, self.clip) if k < 2 else x, a, b)

    def step(self, x, h, c):
        n = self.n
        if self.op == "RNN":
            return self.act(0, x @ self.w.T + h @ self.r.T + self.wb + self.rb), c
        if self.op == "GRU":
            g = x @ self.w.T + self.wb
            hr = h @ self.r[:2 * n].T + self.rb[:2 * n]
            z, r = self.act(0, g[:, :n] + hr[:, :n]), self.act(0, g[:, n:2 * n] + hr[:, n:])
            inner = (r * (h @ self.r[2 * n:].T + self.rb[2 * n:]) if self.linear else (r * h) @ self.r[2 * n:].T + self.rb[2 * n:])
            return (1 - z) * self.act(1, g[:, 2 * n:] + inner) + z * h, c
        g = x @ self.w.T + h @ self.r.T + self.wb + self.rb
        i, o, f, s = (g[:, k * n:(k + 1) * n] for k in range(4))
        pi, po, pf = (self.p[k * n:(k + 1) * n] for k in range(3)) if self.p is not None else (0, 0, 0)
        i = self.act(0, i + pi * c)
        f = 1 - i if self.couple else self.act(0, f + pf * c)
        new = f * c + i * self.act(1, s)
        return self.act(0, o + po * new) * self.act(2, new), new


def right(op, x, w, r, bias=None, lengths=None, h0=None, c0=None, peephole=None, **attributes):
    """Y, Y_h (and Y_c) in f32."""
    layout = attributes.get("layout", 0)
    if layout:
        x, h0, c0 = (None if v is None else v.swapaxes(0, 1) for v in (x, h0, c0))
    steps, batch, _ = x.shape
    directions, n = w.shape[0], r.shape[-1]
    lengths = np.full(batch, steps) if lengths is None else lengths
    y = np.zeros((steps, directions, batch, n))
    last = [np.zeros((directions, batch, n)) for _ in "hc"]
    for d in range(directions):
        cell = Cell(op, d, w, r, bias, peephole, attributes)
        backward = d == 1 or attributes.get("direction") == "reverse"
        for b in range(batch):
            h, c = (np.zeros((1, n)) if v is None else v[d, b:b + 1].astype(np.float64) for v in (h0, c0))
            for t in (range(lengths[b] - 1, -1, -1) if backward else range(lengths[b])):
                h, c = cell.step(x[t, b:b + 1].astype(np.float64), h, c)
                y[t, d, b] = h[0]
            last[0][d, b], last[1][d, b] = h[0], c[0]
    if layout:
        y, last = y.transpose(2, 0, 1, 3), [v.swapaxes(0, 1) for v in last]
    return [v.astype(np.float32) for v in ([y, *last] if op == "LSTM" else [y, last[0]])]


def add(m, op, seed, directions=1, lengths=None, states=False, peepholes=False, runtime_lengths=None, bias=True, **attributes):
    """One node; its inputs are the model's where they are large."""
    layout = attributes.get("layout", 0)
    name = "xb" if layout else "x"
    x = m.inputs[name]
    gates = GATES[op] * HIDDEN
    w, r = numbers(seed, directions, gates, IN, reach=.9), numbers(seed + 1, directions, gates, HIDDEN, reach=.9)
    parts = dict(w=w, r=r)
    inputs = [name, w, r]
    if bias:
        parts["bias"] = numbers(seed + 2, directions, 2 * gates, reach=.5)
    inputs.append(parts.get("bias", ""))
    given = runtime_lengths and m.inputs[runtime_lengths]
    parts["lengths"] = given if given is not None else lengths
    inputs.append(runtime_lengths or ("" if lengths is None else np.array(lengths, np.int32)))
    shape = (BATCH, directions, HIDDEN) if layout else (directions, BATCH, HIDDEN)
    if states:
        parts["h0"] = numbers(seed + 3, *shape, reach=.7)
    inputs.append(parts.get("h0", ""))
    if op == "LSTM":
        if states:
            parts["c0"] = numbers(seed + 4, *shape, reach=.7)
        if peepholes:
            parts["peephole"] = numbers(seed + 5, directions, 3 * HIDDEN, reach=.6)
        inputs += [parts.get("c0", ""), parts.get("peephole", "")]
    while isinstance(inputs[-1], str) and not inputs[-1]:
        inputs.pop()
    if directions == 2:
        attributes["direction"] = "bidirectional"
    want = right(op, x, **parts, **attributes)
    m.node(op, *inputs, outputs=len(want), want=want, kinds=[TensorProto.FLOAT] * len(want), hidden_size=HIDDEN, **attributes)


def start(name):
    m = Model(name, 14)
    m.input("x", numbers(201, STEPS, BATCH, IN))
    return m


def forms(op, name):
    """Directions, states, known lengths."""
    m = start(name)
    add(m, op, 300)
    add(m, op, 310, bias=False)
    add(m, op, 320, direction="reverse")
    add(m, op, 330, directions=2)
    add(m, op, 340, states=True)
    add(m, op, 350, directions=2, states=True)
    for k, lengths in enumerate(((STEPS,) * 3, (3, 6, 1), (2, 2, 2), (4, 1, 5))):
        add(m, op, 360 + 10 * k, lengths=lengths, states=True)
        add(m, op, 365 + 10 * k, directions=2, lengths=lengths)
        add(m, op, 367 + 10 * k, direction="reverse", lengths=lengths, states=True)
    add(m, op, 400, states=True, clip=.4)
    add(m, op, 410, directions=2, clip=.3)
    m.input("xb", numbers(202, BATCH, STEPS, IN))
    add(m, op, 420, layout=1)
    add(m, op, 430, layout=1, directions=2, states=True)
    add(m, op, 440, layout=1, direction="reverse", lengths=(5, 2, 6), states=True)
    return m


def rnn_forms():
    m = forms("RNN", "rnn-forms")
    for k, (name, alpha, beta) in enumerate(ACTIVATIONS):
        more = {"activation_alpha": [alpha]} if alpha else {}
        add(m, "RNN", 500 + 10 * k, activations=[name], **more, **({"activation_beta": [beta]} if beta else {}))
    add(m, "RNN", 650, directions=2, activations=["HardSigmoid", "ScaledTanh"], activation_alpha=[.3, .8], activation_beta=[.4, 1.2])
    return m, HALF


ACTIVATIONS = (("Sigmoid", 0, 0), ("Tanh", 0, 0), ("Relu", 0, 0), ("Affine", .5, .1), ("LeakyRelu", .3, 0), ("LeakyRelu", 0, 0),
               ("ThresholdedRelu", .2, 0), ("ScaledTanh", .8, 1.2), ("HardSigmoid", .3, .4), ("HardSigmoid", 0, 0), ("Elu", .7, 0),
               ("Elu", 0, 0), ("Softsign", 0, 0), ("Softplus", 0, 0))


def gru_forms():
    m = forms("GRU", "gru-forms")
    add(m, "GRU", 700, states=True, linear_before_reset=1)
    add(m, "GRU", 710, directions=2, states=True, linear_before_reset=1, lengths=(6, 3, 2))
    add(m, "GRU", 720, linear_before_reset=1, bias=False)
    add(m, "GRU", 730, activations=["HardSigmoid", "Softsign"])
    add(m, "GRU", 740, states=True, linear_before_reset=1, clip=.3)
    return m, HALF


def lstm_forms():
    m = forms("LSTM", "lstm-forms")
    add(m, "LSTM", 800, peepholes=True, states=True)
    add(m, "LSTM", 810, peepholes=True, states=True, directions=2, lengths=(2, 6, 4))
    add(m, "LSTM", 820, peepholes=True, direction="reverse")
    add(m, "LSTM", 830, states=True, input_forget=1)
    add(m, "LSTM", 840, peepholes=True, states=True, input_forget=1, clip=.5)
    add(m, "LSTM", 850, states=True, activations=["HardSigmoid", "Tanh", "Relu"])
    add(m, "LSTM", 860, directions=2, activations=["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "ScaledTanh", "Softsign"],
        activation_alpha=[.25, .9], activation_beta=[.4, 1.1])
    add(m, "LSTM", 870, layout=1, peepholes=True, states=True)
    return m, HALF


def lengths_at_run_time():
    m = start("rnn-lengths")
    m.input("lengths", np.array([4, 6, 2], np.int32))
    for k, op in enumerate(GATES):
        for directions in (1, 2):
            add(m, op, 900 + 20 * k + directions, directions=directions, states=True, runtime_lengths="lengths")
        add(m, op, 910 + 20 * k, direction="reverse", runtime_lengths="lengths")
    return m, HALF


KINDS = (rnn_forms, gru_forms, lstm_forms, lengths_at_run_time)


def cross_check(m):
    """Largest difference between the right values and ONNX Runtime's, over the nodes that it takes."""
    worst, passed = 0.0, 0
    for node in m.nodes:
        one = Model("one", m.opset)
        one.inputs, one.constants, one.nodes, one.types = m.inputs, m.constants, [node], m.types
        one.outputs = [n for n in node.output]
        try:
            got = one.run()
        except Exception as e:          # what it does not implement it says in many ways
            if "layout" not in str(e):
                print("  not in ONNX Runtime:", node.name, e)
            continue
        difference = max(float(np.abs(got[n] - m.wanted[n]).max()) for n in one.outputs)
        if difference > 1e-5:
            print("  differs:", node.name, [(a.name, a.s or a.i or a.f or list(a.strings)) for a in node.attribute], difference)
        worst, passed = max(worst, difference), passed + 1
    return f"{passed} of {len(m.nodes)} nodes in ONNX Runtime too, largest difference {worst:.1e}"
