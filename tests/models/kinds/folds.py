# SPDX-License-Identifier: Apache-2.0
"""What compilers fold into convolutions and products, where it is allowed and where another reader needs what was there."""
import numpy as np

from build import Model, numbers

HALF = {"rtol": 0, "atol": 2.5e-2}


def weights(seed, *shape):
    return numbers(seed, *shape) / np.sqrt(np.prod(shape[1:]))


def batchnorm(m, x, seed, channels=6, keep=True):
    positive = 1 + .5 * numbers(seed, channels) ** 2
    return m.node("BatchNormalization", x, 1 + .3 * numbers(seed + 1, channels), numbers(seed + 2, channels), .2 * numbers(seed + 3, channels),
                  positive, keep=keep)


def conv_readers():
    """A convolution with batch norms, scales, shifts and activations behind it, read by one or by several."""
    m = Model("fold-conv-readers", 17)
    x = m.input("x", numbers(71, 2, 4, 8, 9))

    def conv(seed, keep=False, **more):
        group = more.get("group", 1)
        return m.node("Conv", x, weights(seed, 6, 4 // group, 3, 3), numbers(seed + 1, 6), pads=[1, 1, 1, 1], keep=keep, **more)

    column = numbers(72, 6, 1, 1)
    batchnorm(m, conv(100), 200)                                            # one reader
    batchnorm(m, conv(102, keep=True), 204)                                 # the convolution is an output
    c = conv(104)
    batchnorm(m, c, 208), batchnorm(m, c, 212)                              # two batch norms of one convolution
    c = conv(106)
    m.node("Add", batchnorm(m, c, 216, keep=False), c)                      # the sum needs both
    c = conv(108)
    b = batchnorm(m, c, 220, keep=False)
    m.node("Mul", m.node("Relu", b, keep=False), m.node("Sigmoid", b, keep=False))
    batchnorm(m, m.node("Relu", conv(110), keep=False), 224)                # not next to the convolution
    batchnorm(m, batchnorm(m, conv(112), 228, keep=False), 232)             # twice
    batchnorm(m, conv(114, group=2), 236)
    m.node("Relu", m.node("Add", m.node("Mul", conv(116), column, keep=False), column, keep=False))
    c = m.node("Mul", conv(118), column, keep=False)
    m.node("Add", c, column), m.node("Sub", c, column)
    m.node("Mul", conv(120), np.float32(-.5))
    m.node("Div", m.node("Sub", conv(122), column, keep=False), 2 + column)
    m.node("Add", conv(124), numbers(73, 8, 9))                             # a shift per pixel
    m.node("Mul", conv(126), numbers(74, 1, 6, 8, 1))                       # a scale per row
    m.node("Add", conv(128), conv(130))
    m.node("Sub", numbers(75, 1, 6, 1, 1), conv(132))
    m.node("Max", conv(134), np.float32(0)), m.node("Clip", conv(136), np.float32(0), np.float32(6))
    return m, HALF


def conv_before():
    """Scales, shifts and pads before a convolution: a shift counts in the padding of its own pad only."""
    m = Model("fold-conv-before", 17)
    x, column = m.input("x", numbers(81, 1, 4, 8, 9)), numbers(82, 4, 1, 1)

    def conv(x, seed, group=1, pads=(1, 0, 1, 2), keep=True):
        return m.node("Conv", x, weights(seed, 8, 4 // group, 3, 3), numbers(seed + 1, 8), group=group, pads=list(pads), keep=keep)

    for group in (1, 2, 4):
        conv(m.node("Mul", x, column, keep=False), 140, group)
        conv(m.node("Add", x, column, keep=False), 142, group)
        conv(m.node("Add", m.node("Mul", x, column, keep=False), column, keep=False), 144, group)
        conv(batchnorm(m, x, 240, 4, keep=False), 146, group)
        conv(m.node("Pad", x, np.array([0, 0, 1, 2, 0, 0, 0, 1], np.int64), keep=False), 148, group)
    conv(m.node("Pad", x, np.array([0, 0, 1, 2, 0, 0, 0, 1], np.int64), np.float32(.5), keep=False), 150)
    conv(m.node("Pad", x, np.array([0, 0, 1, 2, 0, 0, 0, 1], np.int64), mode="edge", keep=False), 152)
    conv(m.node("Pad", x, np.array([0, 1, 0, 0, 0, -1, 1, 0], np.int64), keep=False), 154)
    padded = m.node("Pad", x, np.array([0, 0, 2, 2, 0, 0, 2, 2], np.int64))
    conv(padded, 156, pads=(0, 0, 0, 0)), conv(padded, 158)
    m.node("MaxPool", padded, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    m.node("AveragePool", m.node("Pad", x, np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), keep=False), kernel_shape=[3, 3])
    return m, HALF


def products():
    """Scales and shifts around matrix products."""
    m = Model("fold-products", 17)
    x, row = m.input("x", numbers(91, 3, 5, 12)), numbers(92, 10)

    def product(seed, x=x, keep=False):
        return m.node("MatMul", x, weights(seed, 12, 10) * np.float32(.4), keep=keep)

    m.node("Add", product(160), row), m.node("Mul", m.node("Add", product(161), row, keep=False), row)
    m.node("Add", m.node("Mul", product(162), row, keep=False), np.float32(.25))
    p = product(163, keep=True)
    m.node("Mul", p, row), m.node("Sub", p, row)
    product(164, m.node("Mul", x, numbers(93, 12), keep=False), True)
    product(165, m.node("Add", x, numbers(94, 12), keep=False), True)
    product(166, m.node("Mul", x, numbers(95, 5, 1), keep=False), True)
    m.node("Mul", product(167), numbers(96, 5, 1))
    m.node("Add", product(168), numbers(97, 3, 1, 1))
    m.node("Div", product(169), np.float32(8)), m.node("Add", product(170), product(171))
    flat = m.node("Reshape", x, np.array([15, 12], np.int64), keep=False)
    for ta, tb, alpha, beta in ((0, 0, 1, 1), (0, 1, .5, 2), (1, 0, -1, 0), (1, 1, .25, -.5)):
        a = m.node("Transpose", flat, keep=False) if ta else flat
        m.node("Gemm", a, weights(172, 10, 12) if tb else weights(173, 12, 10), row, transA=ta, transB=tb, alpha=float(alpha), beta=float(beta))
    m.node("Gemm", flat, weights(174, 12, 10), numbers(98, 15, 1), beta=.5)
    m.node("Gemm", flat, weights(175, 12, 10))
    return m, HALF


def pass_through():
    """Outputs that are inputs, constants, one another, or views of one another."""
    m = Model("pass-through", 17)
    x = m.input("x", numbers(99, 2, 6))
    m.node("Identity", x), m.node("Identity", x), m.node("Identity", m.constant(numbers(85, 3)))
    y = m.node("Relu", x)
    m.node("Identity", y), m.node("Reshape", y, np.array([3, 4], np.int64)), m.node("Transpose", y)
    m.node("Reshape", x, np.array([12], np.int64)), m.node("Flatten", y, axis=0), m.node("Dropout", y)
    m.node("Add", m.constant(numbers(86, 2)), m.constant(numbers(87, 2)))
    m.node("Slice", x, np.array([0], np.int64), np.array([2], np.int64), np.array([0], np.int64))
    m.node("Concat", x, axis=0), m.node("Expand", x, np.array([2, 6], np.int64)), m.node("Squeeze", m.node("Unsqueeze", x, np.array([1], np.int64)), np.array([1], np.int64))
    return m, {"rtol": 1e-3, "atol": 1e-3}


KINDS = (conv_readers, conv_before, products, pass_through)
