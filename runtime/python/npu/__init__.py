# SPDX-License-Identifier: Apache-2.0
"""Compile models for an NPU and run them on its simulator, from Python.

    import npu
    program = npu.compile("model.onnx", target="edge", dtype="f16")
    y = program(x)                      # numpy in, numpy out; torch in, torch out
    program.report()["cycles"]

    program = npu.load("model.npu")     # what npuc or compile(output=...) wrote

    model = torch.compile(model, backend="npu")    # needs no import of this package

torch and numpy are used where they are there; neither is needed to import this package.
"""

import sys as _sys
from importlib.metadata import entry_points as _entry_points

from ._native import version
from .compiler import compile
from .errors import (
    BadInputError,
    Error,
    FaultError,
    FileError,
    GraphBreakWarning,
    LibraryError,
    NoFitError,
    OutOfMemoryError,
    UnsupportedError,
    UnsupportedNode,
    UnsupportedWarning,
    UsageError,
)
from .program import Program, RunInfo, States, load, programs
from .tensors import TensorInfo

__version__ = "0.1.0"

__all__ = [
    "BadInputError",
    "Error",
    "FaultError",
    "FileError",
    "GraphBreakWarning",
    "LibraryError",
    "NoFitError",
    "OutOfMemoryError",
    "Program",
    "RunInfo",
    "States",
    "TensorInfo",
    "UnsupportedError",
    "UnsupportedNode",
    "UnsupportedWarning",
    "UsageError",
    "compile",
    "load",
    "programs",
    "version",
]

# torch finds an installed package by its entry point; this is for one that is only on the path,
# imported before torch or after it.
if not _entry_points(group="torch_dynamo_backends", name="npu"):
    from ._entry import announce as _announce

    _announce()
    if "torch" in _sys.modules:
        from .torch_backend import register as _register

        _register()
