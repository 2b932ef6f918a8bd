# SPDX-License-Identifier: Apache-2.0
"""Slices, splits, pads and gathers: backward steps, ends at the limits of int64, negative axes and indices, crops."""
import numpy as np
from onnx import TensorProto

from build import Model, numbers

MOST, LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
HALF = {"rtol": 1e-3, "atol": 1e-3}
# starts, ends, axes, steps of a [7, 10]
SLICES = (([5], [0], [0], [-1]), ([-1], [LEAST], [0], [-1]), ([MOST], [LEAST], [1], [-3]), ([-2, 8], [LEAST, -11], [0, 1], [-2, -1]),
          ([6, 1], [1, MOST], [-2, -1], [-1, 4]), ([LEAST], [MOST], [1], [2]), ([-100], [100], [0], [3]), ([9], [LEAST], [1], [LEAST]),
          ([0], [MOST], [1], [MOST]), ([3, 3], [4, 4], [1, 0], [1, 1]), ([8], [-8], [-1], [-2]), ([-3], [-1], [0], [1]))


def slices():
    m = Model("slices", 13)
    x, whole = m.input("x", numbers(31, 7, 10)), m.input("whole", np.arange(-35, 35).reshape(7, 10) * 1000003)
    for starts, ends, axes, steps in SLICES:
        lists = [np.array(v, np.int64) for v in (starts, ends, axes, steps)]
        m.node("Slice", x, *lists)
        m.node("Slice", whole, *lists, kinds=[TensorProto.INT64])
    m.node("Slice", x, np.array([2, -4], np.int64), np.array([MOST, MOST], np.int64))
    m.node("Slice", x, np.array([6], np.int32), np.array([np.iinfo(np.int32).min], np.int32), np.array([0], np.int32), np.array([-1], np.int32))
    for axis, parts in ((1, [3, 1, 6]), (-2, [2, 5])):
        m.node("Split", x, np.array(parts, np.int64), outputs=len(parts), axis=axis)
    m.node("Split", x, outputs=5, axis=-1)
    return m, HALF


def slices_old():
    """Starts and ends as attributes."""
    m = Model("slices-old", 9)
    x = m.input("x", numbers(32, 7, 10))
    for starts, ends, axes in (([1], [MOST], [0]), ([-4, 2], [-1, -2], [1, 0]), ([LEAST], [5], [-1]), ([0, -3], [100, 100], [0, 1])):
        m.node("Slice", x, starts=starts, ends=ends, axes=axes)
    m.node("Slice", x, starts=[2, 3], ends=[MOST, -1])
    m.node("Split", x, outputs=3, axis=1, split=[1, 2, 7])
    m.node("Pad", x, pads=[1, 0, 2, 3], mode="reflect")
    m.node("Pad", x, pads=[1, -2, 0, 3], value=.5)
    return m, HALF


def pads():
    m = Model("pads", 18)
    x, line = m.input("x", numbers(33, 2, 3, 6, 8)), m.input("line", np.arange(12).reshape(3, 4))
    for p, axes in (([1, 2, 0, 3], [2, 3]), ([2, 0, 1, 1], [-1, 1]), ([-1, -3, 2, -1], [2, 3])):
        ends = np.array(p, np.int64), np.float32(.25), np.array(axes, np.int64)
        m.node("Pad", x, *ends)
    for mode in ("reflect", "edge"):
        m.node("Pad", x, np.array([0, 0, 2, 3, 0, 0, 1, 4], np.int64), mode=mode)
        m.node("Pad", x, np.array([0, 1, 1, 0, 0, 2, 0, 5], np.int64), mode=mode)
    m.node("Pad", line, np.array([1, 0, 0, 2], np.int64), np.int64(-7), kinds=[TensorProto.INT64])
    return m, HALF


def gathers():
    """Indices from the end, known and given at run time."""
    m = Model("gathers", 17)
    x, index = m.input("x", numbers(34, 5, 6, 4)), m.input("index", np.array([[0, -1], [3, -4]], np.int64))
    for axis in (0, 1, -1):
        m.node("Gather", x, index, axis=axis)
        m.node("Gather", x, np.array([[-1, 2, 1]], np.int64), axis=axis)
    for known in (-3, [0], [4, 2, 0], [-1, -2, -3], [1, 1], [[0, 1], [2, 3]], [0, 2, 3]):
        m.node("Gather", x, np.array(known, np.int64), axis=1)
    for axis in (0, 1, 2):
        m.node("GatherElements", x, np.random.RandomState(axis).randint(-4, 4, (3, 4, 4)), axis=axis)
    every = m.input("every", np.random.RandomState(9).randint(-5, 5, (2, 6, 4)))
    m.node("GatherElements", x, every, axis=0)
    for rows in ([[0, -1], [-5, 5]], [[[4]], [[-2]]], [[1, -1, 3], [-1, 0, -4]]):
        m.node("GatherND", x, np.array(rows, np.int64))
    pairs = m.input("pairs", np.array([[-1, 2], [0, -6], [4, 5]], np.int64))
    m.node("GatherND", x, pairs)
    m.node("GatherND", x, np.array([[1, -1], [0, 0], [-2, 3], [5, 1], [2, -4]], np.int64), batch_dims=1)
    m.node("GatherND", x, m.input("batched", np.array([[[1], [-1]], [[0], [5]], [[2], [-6]], [[3], [3]], [[4], [0]]], np.int64)), batch_dims=1)
    return m, HALF


def scatters():
    m = Model("scatters", 18)
    x, u = m.input("x", numbers(35, 4, 5, 3)), m.input("updates", numbers(36, 2, 3))
    for reduction in ("none", "add", "mul", "max", "min"):
        more = {} if reduction == "none" else {"reduction": reduction}
        m.node("ScatterND", x, np.array([[0, -1], [-4, 2]], np.int64), u, **more)
        m.node("ScatterElements", x, np.array([[[0, -1, 2]], [[-4, 1, 1]]], np.int64), numbers(37, 2, 1, 3), axis=1, **more)
    index = m.input("index", np.array([[1, -2], [-1, 0]], np.int64))
    m.node("ScatterND", x, index, u)
    m.node("ScatterND", x, np.array([[1, 1], [1, 1], [2, 0]], np.int64), numbers(38, 3, 3), reduction="add")
    return m, HALF


def slices_replaced():
    """Whole slices along a dimension at indices of run time, in the ways in which exporters write it: a cache."""
    m = Model("slices-replaced", 18)
    cache = m.input("cache", numbers(39, 1, 2, 9, 4))
    for count, at in ((1, [5]), (2, [-1, 3]), (6, [0, 8, -3, 2, 4, 7])):
        new, index = m.input(f"new_{count}", numbers(140 + count, 1, 2, count, 4)), m.input(f"at_{count}", np.array(at, np.int64))
        for perm in ([2, 1, 0, 3], [2, 0, 1, 3], [2, 3, 1, 0]):
            back = [perm.index(d) for d in range(4)]
            rows = m.node("Unsqueeze", index, np.array([-1], np.int64), keep=False, kinds=[TensorProto.INT64])
            moved = m.node("ScatterND", m.node("Transpose", cache, perm=perm, keep=False), rows,
                           m.node("Transpose", new, perm=perm, keep=False), keep=perm[1] == 0)
            m.node("Transpose", moved, perm=back)
        column = m.node("Unsqueeze", index, np.array([0, 1, 3], np.int64), keep=False, kinds=[TensorProto.INT64])
        spread = m.node("Expand", column, np.array([1, 2, count, 4], np.int64), keep=False, kinds=[TensorProto.INT64])
        m.node("ScatterElements", cache, spread, new, axis=2)
        m.node("GatherElements", cache, spread, axis=2)
        m.node("ScatterElements", cache, m.node("Expand", column, np.array([1, 1, count, 4], np.int64), keep=False, kinds=[TensorProto.INT64]),
               m.node("Slice", new, np.array([0], np.int64), np.array([1], np.int64), np.array([1], np.int64), keep=False), axis=2)
    return m, HALF


KINDS = (slices, slices_old, pads, gathers, scatters, slices_replaced)
