# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one per status code of the C library, each with the library's whole text."""

from __future__ import annotations

from typing import NamedTuple, Sequence


class Error(Exception):
    """Anything that the library refused. `str(error)` lists every fault and where it is.

    >>> try:
    ...     npu.load("missing.npu")
    ... except npu.Error as error:
    ...     print(type(error).__name__)
    FileError
    """

    #: Code of the C library (enum npu_error_code); 0 when the package itself refused.
    code: int = 0

    @property
    def text(self) -> str:
        """All faults and where they are, a line each."""
        return str(self)


class UsageError(Error, ValueError):
    """A call that makes no sense: a wrong option, shape, name or number of tensors."""

    code = 2


class BadInputError(Error, ValueError):
    """A model, program or tensor is wrong."""

    code = 3


class UnsupportedError(Error, NotImplementedError):
    """A valid model that is outside what the compiler does; every such node is listed."""

    code = 4


class NoFitError(Error):
    """The target is too small for the model."""

    code = 5


class FaultError(Error, RuntimeError):
    """The program broke a rule of the machine while it ran; cycle, engine and layer are named."""

    code = 6


class FileError(Error, OSError):
    """A file or the device cannot be read or written."""

    code = 7


class OutOfMemoryError(Error, MemoryError):
    """The host is out of memory."""

    code = 8


class LibraryError(Error, ImportError):
    """The shared libraries libnpu, libnpu_simulator and libnpu_compile were not found."""


BY_CODE: dict[int, type[Error]] = {
    c.code: c
    for c in (
        UsageError,
        BadInputError,
        UnsupportedError,
        NoFitError,
        FaultError,
        FileError,
        OutOfMemoryError,
    )
}


class UnsupportedNode(NamedTuple):
    """A node that torch runs instead of the NPU."""

    name: str  #: in the exported graph
    op: str  #: "aten.cumprod.default"
    module: str  #: path of the nn.Module whose code it is, "" for the model's own
    reason: str  #: what the compiler said


class UnsupportedWarning(UserWarning):
    """Part of a model runs in eager mode. `nodes` says which."""

    def __init__(self, message: str, nodes: Sequence[UnsupportedNode] = ()) -> None:
        super().__init__(message)
        self.nodes = tuple(nodes)


class GraphBreakWarning(UnsupportedWarning):
    """Dynamo split the model: what lies between two graphs runs in Python."""
