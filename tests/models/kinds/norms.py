# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives before and after opset 13, on every axis; normalisations of wide ranges and large offsets."""
import numpy as np

from build import Model, numbers

SHAPES = ((5,), (3, 4), (2, 3, 5), (2, 3, 4, 2))
HALF = {"rtol": 0, "atol": 5e-3}


def softmaxes(name, opset):
    m = Model(name, opset)
    for rank, shape in enumerate(SHAPES, 1):
        x = m.input(f"x{rank}", numbers(40 + rank, *shape, reach=4))
        for axis in range(-rank, rank):
            for op in ("Softmax", "LogSoftmax", "Hardmax"):
                m.node(op, x, axis=axis)
        if rank > 1:
            for op in ("Softmax", "LogSoftmax", "Hardmax"):
                m.node(op, x)
    wide = m.input("wide", np.array([[-60000, 60000, 60000, 0], [-60000, -60032, -65000, -64000]], np.float32))
    m.node("Softmax", wide, axis=1)
    m.node("LogSoftmax", m.node("Mul", wide, np.float32(1e-3), keep=False), axis=1)
    return m, dict(HALF, atol=2e-2)


def softmax_opset12():
    return softmaxes("softmax-opset12", 12)


def softmax_opset13():
    return softmaxes("softmax-opset13", 13)


def normalised(x, axes, epsilon, scale=1, shift=0):
    """In f64."""
    x = x.astype(np.float64)
    mean = x.mean(axes, keepdims=True)
    return ((x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon) * scale + shift).astype(np.float32)


def f16(x):
    """Values that f16 holds exactly, so that its inputs are not rounded."""
    return x.astype(np.float16).astype(np.float32)


# Spread and offset: squares overflow f16, sums overflow f16, the spread is small beside the offset.
RANGES = (("wide", 3000, 0), ("huge", 30000, 1000), ("offset", 8, 2048), ("tiny", 2e-3, 0))


def norms_wide():
    """Results are of size 1 whatever the input's."""
    m = Model("norms-wide", 21)
    scale, shift = f16(1 + .25 * numbers(51, 6)), f16(.25 * numbers(52, 6))
    column = (scale[:, None, None], shift[:, None, None])
    for k, (name, reach, offset) in enumerate(RANGES):
        v = f16(numbers(53 + k, 2, 6, 5, 7, reach=reach) + np.float32(offset))
        x = m.input(name, v)
        m.node("InstanceNormalization", x, scale, shift, want=normalised(v, (2, 3), 1e-5, *column), epsilon=1e-5)
        grouped = normalised(v.reshape(2, 3, 2, 5, 7), (2, 3, 4), 1e-5).reshape(v.shape) * column[0] + column[1]
        m.node("GroupNormalization", x, scale, shift, num_groups=3, want=grouped.astype(np.float32))
        row, beta = f16(1 + .25 * numbers(54, 7)), f16(.25 * numbers(55, 7))
        m.node("LayerNormalization", x, row, beta, want=normalised(v, (3,), 1e-5, row, beta))
        m.node("LayerNormalization", x, np.ones((6, 5, 7), np.float32), axis=1, want=normalised(v, (1, 2, 3), 1e-5))
        m.node("MeanVarianceNormalization", x, axes=[0, 2, 3], want=normalised(v, (0, 2, 3), 0))
        square = np.sqrt((v.astype(np.float64) ** 2).sum(1, keepdims=True))
        m.node("LpNormalization", x, axis=1, p=2, want=(v / square).astype(np.float32))
    return m, dict(HALF, atol=2.5e-2, fused_only=True), {"atol": 1e-4}       # f32 leaves 2^-13 of an offset of 2048


def norms_written_out():
    """Layer and RMS norms as their parts, whose squares overflow f16."""
    m = Model("norms-written-out", 18)
    axes = np.array([-1], np.int64)
    for k, (name, reach, offset) in enumerate(RANGES):
        v = f16(numbers(63 + k, 3, 48, reach=reach) + np.float32(offset))
        x = m.input(name, v)
        gamma, beta = f16(1 + .25 * numbers(64, 48)), f16(.25 * numbers(65, 48))
        centred = m.node("Sub", x, m.node("ReduceMean", x, axes, keep=False), keep=False)
        variance = m.node("ReduceMean", m.node("Pow", centred, np.float32(2), keep=False), axes, keep=False)
        deviation = m.node("Sqrt", m.node("Add", variance, np.float32(1e-5), keep=False), keep=False)
        scaled = m.node("Mul", m.node("Div", centred, deviation, keep=False), gamma, keep=False)
        m.node("Add", scaled, beta, want=normalised(v, (1,), 1e-5, gamma, beta))
        square = m.node("ReduceMean", m.node("Mul", x, x, keep=False), axes, keep=False)
        root = m.node("Reciprocal", m.node("Sqrt", m.node("Add", square, np.float32(1e-6), keep=False), keep=False), keep=False)
        rms = v / np.sqrt((v.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-6)
        m.node("Mul", gamma, m.node("Mul", x, root, keep=False), want=(rms * gamma).astype(np.float32))
    return m, dict(HALF, atol=2.5e-2, fused_only=True)


KINDS = (softmax_opset12, softmax_opset13, norms_wide, norms_written_out)
