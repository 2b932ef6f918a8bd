# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools: uneven pads with groups, strides and dilations; automatic pads; one and two dimensions."""
import itertools

import numpy as np

from build import Model, numbers

HALF = {"rtol": 0, "atol": 1.5e-2}


def weights(seed, *shape):
    return numbers(seed, *shape) / np.sqrt(np.prod(shape[1:]))


def conv_pads():
    m = Model("conv-pads", 17)
    x, line = m.input("x", numbers(1, 2, 4, 9, 11)), m.input("line", numbers(2, 1, 6, 17))
    pads = ([1, 0, 2, 1], [0, 3, 0, 0], [2, 2, 0, 1])
    groups = ((1, 4), (2, 2), (4, 1))
    for (group, per), p, (stride, dilation) in itertools.product(groups, pads, (([1, 1], [1, 1]), ([2, 1], [1, 2]), ([1, 3], [2, 1]))):
        m.node("Conv", x, weights(3, 8, per, 3, 3), numbers(4, 8), group=group, pads=p, strides=stride, dilations=dilation)
    for group, per in groups:                  # kernels that are not square, even, larger than the image
        for kernel, p in (((2, 5), [0, 2, 1, 4]), ((4, 2), [3, 0, 0, 1]), ((11, 13), [2, 2, 2, 2]), ((1, 1), [1, 0, 0, 2])):
            m.node("Conv", x, weights(5, 8, per, *kernel), group=group, pads=p)
    for auto, stride, kernel in itertools.product(("SAME_UPPER", "SAME_LOWER", "VALID"), ([1, 1], [2, 3]), ((2, 4), (3, 3))):
        m.node("Conv", x, weights(6, 4, 2, *kernel), group=2, auto_pad=auto, strides=stride)
    for group, p, stride, dilation in ((1, [3, 0], 1, 2), (2, [0, 2], 2, 1), (6, [4, 1], 3, 2)):
        m.node("Conv", line, weights(7, 12, 6 // group, 3), numbers(8, 12), group=group, pads=p, strides=[stride], dilations=[dilation])
    return m, HALF


def convt_pads():
    m = Model("convt-pads", 17)
    x, line = m.input("x", numbers(11, 1, 4, 6, 7)), m.input("line", numbers(12, 2, 6, 9))
    forms = (([1, 1], [1, 1], [1, 0, 2, 1], [0, 0]), ([2, 2], [1, 1], [1, 0, 0, 1], [1, 0]), ([3, 2], [1, 2], [0, 1, 2, 0], [2, 1]),
             ([1, 2], [2, 2], [2, 2, 1, 0], [0, 1]))
    for (group, per), (stride, dilation, p, more) in itertools.product(((1, 6), (2, 3), (4, 2)), forms):
        m.node("ConvTranspose", x, weights(13, 4, per, 3, 3), numbers(14, group * per), group=group, strides=stride, dilations=dilation,
               pads=p, output_padding=more)
    for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        m.node("ConvTranspose", x, weights(15, 4, 3, 3, 4), auto_pad=auto, strides=[2, 2])
    m.node("ConvTranspose", x, weights(16, 4, 3, 3, 3), strides=[2, 2], output_shape=[12, 15])
    m.node("ConvTranspose", line, weights(17, 6, 4, 4), numbers(18, 8), group=2, strides=[2], dilations=[2], pads=[3, 0], output_padding=[1])
    return m, HALF


def pool_pads():
    m = Model("pool-pads", 19)
    x, line = m.input("x", numbers(21, 2, 3, 10, 13)), m.input("line", numbers(22, 1, 5, 19))
    forms = (([3, 3], [1, 1], [1, 0, 2, 1]), ([2, 4], [2, 3], [0, 1, 1, 3]), ([4, 3], [3, 2], [3, 2, 0, 0]))
    for (kernel, stride, p), ceil, dilation in itertools.product(forms, (0, 1), ([1, 1], [2, 1])):
        m.node("MaxPool", x, kernel_shape=kernel, strides=stride, pads=p, ceil_mode=ceil, dilations=dilation)
        for count in (0, 1):
            m.node("AveragePool", x, kernel_shape=kernel, strides=stride, pads=p, ceil_mode=ceil, count_include_pad=count, dilations=dilation)
    for op, auto in itertools.product(("MaxPool", "AveragePool"), ("SAME_UPPER", "SAME_LOWER", "VALID")):
        m.node(op, x, kernel_shape=[4, 2], strides=[3, 2], auto_pad=auto)
        m.node(op, line, kernel_shape=[4], strides=[3], auto_pad=auto)
    for count in (0, 1):
        m.node("AveragePool", line, kernel_shape=[4], strides=[2], pads=[3, 1], count_include_pad=count)
    for p in (1, 2):
        m.node("LpPool", x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], p=p)
    for op in ("GlobalMaxPool", "GlobalAveragePool"):
        m.node(op, x)
        m.node(op, line)
    return m, HALF


KINDS = (conv_pads, convt_pads, pool_pads)
