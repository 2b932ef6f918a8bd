# SPDX-License-Identifier: Apache-2.0
"""Tensors in and out of a program without copies of what is contiguous.

In: torch CPU tensors (by data_ptr), numpy arrays and whatever has `__array_interface__`,
`__dlpack__` or the buffer protocol, Python numbers and nested lists. Out: torch when torch came
in, else numpy when it is installed, else memoryview.
"""

from __future__ import annotations

import ctypes
import math
import sys
from array import array
from dataclasses import dataclass
from typing import Any, NamedTuple, Sequence

from ._native import CTensorInfo
from .errors import UsageError


class DType(NamedTuple):
    """A row of enum npu_dtype and what stands for it outside; "" where nothing does."""

    code: int
    name: str
    torch: str
    numpy: str  # for outputs: the nearest type that holds all values
    format: str  # of the buffer protocol


ROWS = (
    DType(1, "f32", "float32", "float32", "f"),
    DType(2, "f16", "float16", "float16", "e"),
    DType(3, "bf16", "bfloat16", "float32", ""),
    DType(4, "f8e4m3", "float8_e4m3fn", "float32", ""),
    DType(5, "f8e5m2", "float8_e5m2", "float32", ""),
    DType(8, "i4", "int8", "int8", "b"),
    DType(9, "i8", "int8", "int8", "b"),
    DType(10, "i16", "int16", "int16", "h"),
    DType(11, "i32", "int32", "int32", "i"),
    DType(12, "i64", "int64", "int64", "q"),
    DType(16, "u4", "uint8", "uint8", "B"),
    DType(17, "u8", "uint8", "uint8", "B"),
    DType(18, "u16", "uint16", "uint16", "H"),
    DType(19, "u32", "uint32", "uint32", "I"),
    DType(24, "bool", "bool", "bool", "?"),
    DType(30, "f64", "float64", "float64", "d"),
    DType(31, "u64", "uint64", "uint64", "Q"),
)
BY_CODE = {row.code: row for row in ROWS}
# i4 and u4 stand before i8 and u8, which win; bf16 and the 8-bit floats must not take float32.
BY_TORCH = {row.torch: row for row in ROWS}
BY_NUMPY = {row.numpy: row for row in reversed(ROWS)} | {
    "int8": BY_CODE[9],
    "uint8": BY_CODE[17],
    "bfloat16": BY_CODE[3],
    "float8_e4m3fn": BY_CODE[4],
    "float8_e5m2": BY_CODE[5],
}
BY_FORMAT = {row.format: row for row in ROWS if row.format}


@dataclass(frozen=True)
class TensorInfo:
    """An input, output or state of a program.

    >>> program.inputs[0]
    TensorInfo(name='x', shape=(1, 3, 32, 32), dtype='f16', model_dtype='f32', index_limit=0)
    """

    name: str
    shape: tuple[int, ...]
    dtype: str  #: in the device's memory
    model_dtype: str  #: as the model declares it; what outputs are returned in
    index_limit: int  #: values index something: 0 up to this are valid; 0: no such limit

    @classmethod
    def of(cls, c: CTensorInfo) -> TensorInfo:
        """From the C struct."""
        return cls(
            c.name.decode(),
            tuple(c.dims[: c.rank]),
            BY_CODE[c.dtype].name,
            BY_CODE[c.model_dtype].name,
            c.index_limit,
        )


class Source(NamedTuple):
    """Bytes to read an input from. `keep` holds them while the pointer is used."""

    pointer: int
    dtype: DType
    bytes: int
    shape: tuple[int, ...]
    keep: Any


def torch_module() -> Any:
    """torch when the program has imported it."""
    return sys.modules.get("torch")


def numpy_module() -> Any:
    """numpy when it is installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def is_torch(x: Any) -> bool:
    """Whether x is a torch tensor; torch is not imported for the question."""
    torch = torch_module()
    return torch is not None and isinstance(x, torch.Tensor)


def _from_torch(x: Any) -> Source:
    torch = torch_module()
    name = str(x.dtype).removeprefix("torch.")
    if name not in BY_TORCH:
        raise UsageError(f"torch.{name} has no counterpart on the NPU")
    if x.layout != torch.strided or x.is_quantized:
        raise UsageError(f"a tensor with layout {x.layout} is not accepted; only strided ones are")
    dense = x.detach().cpu().resolve_neg().contiguous()
    size = dense.numel() * dense.element_size()
    return Source(dense.data_ptr(), BY_TORCH[name], size, tuple(dense.shape), dense)


def _from_numpy(x: Any, numpy: Any) -> Source:
    dense = numpy.asarray(x)
    if not dense.dtype.isnative:
        dense = dense.astype(dense.dtype.newbyteorder("="))
    if not dense.flags.c_contiguous:  # ascontiguousarray would make a scalar a vector
        dense = dense.copy(order="C")
    row = BY_NUMPY.get(dense.dtype.name)
    if row is None:
        raise UsageError(f"numpy's {dense.dtype.name} has no counterpart on the NPU")
    return Source(dense.ctypes.data, row, dense.nbytes, tuple(dense.shape), dense)


def _from_buffer(x: Any) -> Source:
    view = memoryview(x)
    letter = view.format.lstrip("@=<")
    if letter in "lL" and view.itemsize == 8:
        letter = {"l": "q", "L": "Q"}[letter]
    row = BY_FORMAT.get(letter)
    if row is None:
        raise UsageError(f"a buffer of format '{view.format}' has no counterpart on the NPU")
    shape = tuple(view.shape or ())
    kind = ctypes.c_char * view.nbytes
    if view.readonly or not view.c_contiguous:
        data = kind.from_buffer_copy(view.tobytes())
    else:
        data = kind.from_buffer(view)
    return Source(ctypes.addressof(data), row, view.nbytes, shape, (data, view))


def _from_lists(x: Any) -> Source:
    shape: list[int] = []
    level = x
    while isinstance(level, (list, tuple)):
        shape.append(len(level))
        level = level[0] if level else 0.0
    flat: list[Any] = [x]
    for size in shape:
        if not all(isinstance(f, (list, tuple)) and len(f) == size for f in flat):
            raise UsageError("a nested list whose parts differ in length is no tensor")
        flat = [item for part in flat for item in part]
    if all(isinstance(v, int) for v in flat) and flat:
        values = array("q", flat)
    elif all(isinstance(v, (int, float)) for v in flat):
        values = array("d", flat)
    else:
        raise UsageError("a nested list of something else than numbers is no tensor")
    return _from_buffer(values)._replace(shape=tuple(shape))


def source(x: Any) -> Source:
    """Where the elements of a tensor are. UsageError says what is wrong with it."""
    if is_torch(x):
        return _from_torch(x)
    if isinstance(x, (int, float, list, tuple)):
        return _from_lists(x)
    numpy = numpy_module()
    if numpy is not None and (isinstance(x, numpy.ndarray) or hasattr(x, "__array_interface__")):
        return _from_numpy(x, numpy)
    if hasattr(x, "__dlpack__"):
        if numpy is not None:
            return _from_numpy(numpy.from_dlpack(x), numpy)
        if torch_module() is not None:
            return _from_torch(torch_module().from_dlpack(x))
    try:
        return _from_buffer(x)
    except TypeError:
        raise UsageError(
            f"{type(x).__name__} is no tensor; expected one of torch or numpy, an object with "
            "__array_interface__, __dlpack__ or the buffer protocol, numbers or lists of them"
        ) from None


def kind_of(tensors: Sequence[Any]) -> str:
    """What outputs should be: "torch", "numpy" or "memory"."""
    if any(is_torch(x) for x in tensors):
        return "torch"
    return "numpy" if numpy_module() is not None else "memory"


class Target(NamedTuple):
    """A new tensor that an output is read into."""

    value: Any
    pointer: int
    dtype: DType
    bytes: int


def target(kind: str, c: CTensorInfo) -> Target:
    """An uninitialised tensor for an output, in the type that the model declares."""
    row = BY_CODE[c.model_dtype]
    shape = tuple(c.dims[: c.rank])
    if kind == "torch":
        torch = torch_module()
        value = torch.empty(shape, dtype=getattr(torch, row.torch))
        size = value.numel() * value.element_size()
        return Target(value, value.data_ptr(), BY_TORCH[row.torch], size)
    if kind == "numpy":
        numpy = numpy_module()
        value = numpy.empty(shape, dtype=row.numpy)
        return Target(value, value.ctypes.data, BY_NUMPY[row.numpy], value.nbytes)
    letter = "f" if row.format in ("", "e") else row.format  # memoryview has no 16-bit floats
    size = math.prod(shape) * ctypes.sizeof(_C_TYPES[letter])
    data = (ctypes.c_char * size)()
    flat: Any = memoryview(data).cast("B")
    value = flat.cast(letter, shape) if size else flat
    return Target(value, ctypes.addressof(data), BY_FORMAT[letter], size)


_C_TYPES: dict[str, Any] = {
    "f": ctypes.c_float,
    "d": ctypes.c_double,
    "b": ctypes.c_int8,
    "B": ctypes.c_uint8,
    "h": ctypes.c_int16,
    "H": ctypes.c_uint16,
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
    "?": ctypes.c_bool,
}
