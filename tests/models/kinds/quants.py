# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear: halves round to even, ends saturate, of every type, for the whole tensor, an axis, or blocks; and back.

Scales are powers of two, so quotients are exact and the right integers are not a matter of rounding; these models are held
to equality.
"""
import numpy as np
from onnx import TensorProto, helper

from build import Model, numbers

TYPES = (("uint8", TensorProto.UINT8, 0, 255), ("int8", TensorProto.INT8, -128, 127), ("uint16", TensorProto.UINT16, 0, 65535),
         ("int16", TensorProto.INT16, -32768, 32767), ("uint4", TensorProto.UINT4, 0, 15), ("int4", TensorProto.INT4, -8, 7))
EXACT = {"rtol": 0, "atol": 0}


def samples(least, most):
    """Halves, quarters beside them, both ends and far beyond."""
    halves = np.concatenate([np.arange(-4, 5) + .5, np.arange(-3, 4) + .25, np.arange(-3, 4) - .25])
    ends = np.array([least, most, least - .5, most + .5, least - 1.5, most + .49, 3.0 * least - 70, 3.0 * most + 70, 1e9, -1e9, np.inf, -np.inf])
    return np.concatenate([halves, ends, np.zeros(1)]).astype(np.float32)


def quantized(x, scale, zero, least, most):
    return np.clip(np.rint(x.astype(np.float64) / scale) + zero, least, most)


def exact():
    """Integers come out through DequantizeLinear with a scale of 1, and as themselves where .npy has the type."""
    m = Model("quantize-exact", 21)
    for name, kind, least, most in TYPES:
        v = samples(least, most)
        whole, rows = m.input(f"{name}_whole", v), m.input(f"{name}_rows", np.stack([v, v[::-1] * .5, v * 2 + 1]))
        small = name in ("uint4", "int4")

        def back(q, zero, right, **axis):
            count = 1 if not axis else 3
            ones = np.ones(() if count == 1 else count, np.float32)
            m.node("DequantizeLinear", q, ones, zero, want=right.astype(np.float32), **axis)

        for zero in sorted({0, least, most, (least + most) // 2, 3}):
            z = m.raw_constant(helper.make_tensor(f"{name}_zero_{zero - least}", kind, [], [zero]))
            for scale in (1.0, .25, 8.0):
                right = quantized(v, scale, zero, least, most)
                q = m.node("QuantizeLinear", whole, np.float32(scale), z, kinds=[kind], keep=not small,
                           want=None if small else right.astype(name))
                if small or scale == 1.0:
                    back(q, z, right - zero)
        zeros, scales = [0, most, 3], np.array([1, .5, 4], np.float32)
        z = m.raw_constant(helper.make_tensor(f"{name}_zeros", kind, [3], zeros))
        v = m.inputs[rows]
        right = quantized(v, scales[:, None], np.array(zeros)[:, None], least, most)
        for axis in (0, -2):
            q = m.node("QuantizeLinear", rows, scales, z, kinds=[kind], keep=not small, want=None if small else right.astype(name), axis=axis)
            back(q, z, right - np.array(zeros)[:, None], axis=axis)
    return m, None, EXACT


def blocks():
    """Scales per block, int32 to float, types by output_dtype, no zero point."""
    m = Model("quantize-blocks", 21)
    v = (numbers(181, 4, 6, 8, reach=40) * 4).round().astype(np.float32) / 4
    x = m.input("x", v)
    for axis, block in ((1, 3), (2, 4), (0, 2), (-1, 2)):
        shape = list(v.shape)
        shape[axis] //= block
        scales = 2.0 ** np.random.RandomState(axis + 4).randint(-2, 3, shape)
        zeros = np.random.RandomState(axis + 5).randint(-5, 6, shape).astype(np.int8)
        spread = [np.repeat(a, block, axis=axis) for a in (scales, zeros.astype(np.float64))]
        right = quantized(v, *spread, -128, 127)
        q = m.node("QuantizeLinear", x, scales, m.constant(zeros), kinds=[TensorProto.INT8], axis=axis, block_size=block,
                   want=right.astype(np.int8))
        m.node("DequantizeLinear", q, scales, m.constant(zeros), axis=axis, block_size=block,
               want=((right - spread[1]) * spread[0]).astype(np.float32))
    m.node("QuantizeLinear", x, np.float32(.5), kinds=[TensorProto.UINT8], want=quantized(v, .5, 0, 0, 255).astype(np.uint8))
    m.node("QuantizeLinear", x, np.float32(.5), kinds=[TensorProto.INT16], output_dtype=TensorProto.INT16,
           want=quantized(v, .5, 0, -32768, 32767).astype(np.int16))
    wide = m.input("wide", np.array([-2 ** 31, 2 ** 31 - 128, 7, -7, 0, 65536], np.int32))
    m.node("DequantizeLinear", wide, np.float32(2 ** -10), want=(m.inputs[wide].astype(np.float64) / 1024).astype(np.float32))
    return m, None, EXACT


def products():
    """Integer products and convolutions with zero points, per tensor and per channel."""
    m = Model("quantize-products", 17)
    draw = np.random.RandomState(191)
    for kind, name in ((np.uint8, "u"), (np.int8, "s")):
        info = np.iinfo(kind)

        def some(*shape):
            return draw.randint(info.min, info.max + 1, shape).astype(kind)

        a, image = m.input(f"a_{name}", some(3, 5, 24)), m.input(f"image_{name}", some(1, 4, 7, 9))
        b, w, za, zb = some(24, 10), some(6, 4, 3, 2), kind(info.min + 100), kind(info.max - 60)
        per_column = some(10)
        for zeros in ((), (za,), (za, zb), (za, per_column)):
            if kind is np.int8 and len(zeros) == 2 and zeros[1] is per_column:
                continue
            m.node("MatMulInteger", a, b, *zeros, kinds=[TensorProto.INT32], want=integer_product(m.inputs[a], b, *zeros))
        for zeros in ((), (za,), (za, zb)):
            m.node("ConvInteger", image, w, *zeros, kinds=[TensorProto.INT32], pads=[1, 0, 2, 1], strides=[1, 2],
                   want=integer_conv(m.inputs[image], w, *zeros))
    return m, None, EXACT


def integer_product(a, b, za=0, zb=0):
    return ((a.astype(np.int64) - int(za)) @ (b.astype(np.int64) - np.asarray(zb).astype(np.int64))).astype(np.int32)


def integer_conv(x, w, zx=0, zw=0):
    """pads 1 0 2 1, strides 1 2; padding is the zero point, so it counts as 0."""
    x = np.pad(x.astype(np.int64) - int(zx), ((0, 0), (0, 0), (1, 2), (0, 1)))
    w = w.astype(np.int64) - int(zw)
    rows, columns = x.shape[2] - w.shape[2] + 1, (x.shape[3] - w.shape[3]) // 2 + 1
    out = np.zeros((x.shape[0], w.shape[0], rows, columns), np.int64)
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            out += np.einsum("nchw,oc->nohw", x[:, :, i:i + rows, j:j + 2 * columns:2], w[:, :, i, j])
    return out.astype(np.int32)


KINDS = (exact, blocks, products)
