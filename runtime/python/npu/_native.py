# SPDX-License-Identifier: Apache-2.0
"""The C libraries through ctypes: where they are, what they declare, statuses as exceptions.

They are looked for in the folders of NPU_LIBRARY_PATH (separated by ':'), beside this file in
`lib` (a wheel brings them), then wherever the system finds libraries. All three must come from
the same build.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t
from ctypes import c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Sequence

from .errors import BY_CODE, Error, LibraryError

MAJOR = "0"
INPUT, OUTPUT, STATE = 1, 2, 3
MAX_RANK = 8

#: Compiling and reporting use a JSON library with one allocator for the process.
process_lock = threading.Lock()


class CTensorInfo(Structure):
    """struct npu_tensor_info."""

    _fields_ = [
        ("name", c_char_p),
        ("role", c_int),
        ("dtype", c_int),
        ("model_dtype", c_int),
        ("rank", c_int),
        ("dims", c_int64 * MAX_RANK),
        ("elements", c_uint64),
        ("bytes", c_uint64),
        ("index_limit", c_int64),
    ]


class CRunInfo(Structure):
    """struct npu_run_info."""

    _fields_ = [
        ("start_cycle", c_uint64),
        ("end_cycle", c_uint64),
        ("busy_cycles", c_uint64),
        ("submissions", c_uint64),
    ]


class CSimulatorConfig(Structure):
    """struct npu_simulator_config."""

    _fields_ = [("machine", c_char_p), ("no_data", c_int)]


_S = c_void_p  # npu_status, or a pointer to an opaque struct
_OUT = POINTER(c_void_p)

_NPU: dict[str, tuple[Any, list[Any]]] = {
    "npu_version": (c_char_p, []),
    "npu_status_error": (c_int, [_S]),
    "npu_status_text": (c_size_t, [_S, c_char_p, c_size_t]),
    "npu_status_free": (None, [_S]),
    "npu_program_load": (_S, [c_char_p, _OUT]),
    "npu_program_free": (None, [_S]),
    "npu_program_name": (c_char_p, [_S]),
    "npu_program_producer": (c_char_p, [_S]),
    "npu_program_target": (c_char_p, [_S]),
    "npu_program_machine": (c_char_p, [_S]),
    "npu_program_dram_bytes": (c_uint64, [_S]),
    "npu_program_tensor_count": (c_size_t, [_S, c_int]),
    "npu_program_tensor": (_S, [_S, c_int, c_size_t, POINTER(CTensorInfo)]),
    "npu_program_entry_count": (c_size_t, [_S]),
    "npu_program_entry": (c_char_p, [_S, c_size_t]),
    "npu_device_open": (_S, [c_void_p, c_void_p, _OUT]),
    "npu_device_close": (None, [_S]),
    "npu_session_new": (_S, [_S, _S, _OUT]),
    "npu_session_free": (None, [_S]),
    "npu_session_set_entry": (_S, [_S, c_char_p]),
    "npu_session_reset": (_S, [_S]),
    "npu_session_set_scalar": (_S, [_S, c_uint, c_uint64]),
    "npu_session_write": (_S, [_S, c_int, c_size_t, c_int, c_void_p, c_size_t]),
    "npu_session_read": (_S, [_S, c_int, c_size_t, c_int, c_void_p, c_size_t]),
    "npu_session_bind_input": (_S, [_S, c_size_t, c_int, c_void_p, c_size_t]),
    "npu_session_run": (_S, [_S, POINTER(CRunInfo)]),
}
_SIMULATOR: dict[str, tuple[Any, list[Any]]] = {
    "npu_simulator_ops": (c_void_p, []),
    "npu_simulator_begin": (_S, [_S]),
    "npu_simulator_report": (_S, [_S, _OUT]),
    "npu_simulator_report_free": (None, [c_void_p]),
}
_COMPILE: dict[str, tuple[Any, list[Any]]] = {
    "npu_compile": (_S, [c_char_p, c_char_p, POINTER(c_char_p), c_size_t]),
}


def _folders() -> list[Path]:
    listed = [Path(p) for p in os.environ.get("NPU_LIBRARY_PATH", "").split(os.pathsep) if p]
    return [*listed, Path(__file__).parent / "lib"]


def _open(name: str) -> ctypes.CDLL:
    files = [f"lib{name}.so.{MAJOR}", f"lib{name}.so"]
    candidates = [str(d / f) for d in _folders() for f in files if (d / f).exists()]
    tried = []
    for candidate in candidates + files:
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            tried.append(f"  {candidate}: {error}")
    raise LibraryError(
        f"lib{name} was not found; set NPU_LIBRARY_PATH to the folder of an installation or of a "
        "build: cmake --build --preset release --target npu npu_simulator npu_compile makes "
        "build/release/lib\n" + "\n".join(tried)
    )


def _declare(library: ctypes.CDLL, table: dict[str, tuple[Any, list[Any]]]) -> None:
    for name, (result, arguments) in table.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryError(f"{library._name} has no {name}: it is of another version") from None
        function.restype, function.argtypes = result, arguments


class Libraries:
    """The three libraries, opened when first asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, ctypes.CDLL] = {}

    def _get(self, name: str, table: dict[str, tuple[Any, list[Any]]]) -> ctypes.CDLL:
        with self._lock:
            if name not in self._open:
                library = _open(name)
                _declare(library, table)
                self._open[name] = library
            return self._open[name]

    @property
    def npu(self) -> Any:
        return self._get("npu", _NPU)

    @property
    def simulator(self) -> Any:
        return self._get("npu_simulator", _SIMULATOR)

    @property
    def compile(self) -> Any:
        return self._get("npu_compile", _COMPILE)


libraries = Libraries()


def version() -> str:
    """Version of the C libraries.

    >>> npu.version()
    '0.1.0'
    """
    return str(libraries.npu.npu_version().decode())


def check(status: int | None, replace: Sequence[tuple[str, str]] = ()) -> None:
    """Raises what a status says, and frees it. `replace`: names that the user would not know."""
    if not status:
        return
    api = libraries.npu
    code = api.npu_status_error(status)
    size = api.npu_status_text(status, None, 0) + 1
    buffer = ctypes.create_string_buffer(size)
    api.npu_status_text(status, buffer, size)
    api.npu_status_free(status)
    text = buffer.value.decode(errors="replace").strip()
    for old, new in replace:
        text = text.replace(old, new)
    error = BY_CODE.get(code, Error)(text.removeprefix("error: "))
    error.code = code
    raise error


def out_pointer() -> Any:
    """A pointer for a function to store into."""
    return c_void_p()


__all__ = [
    "CRunInfo",
    "CSimulatorConfig",
    "CTensorInfo",
    "INPUT",
    "OUTPUT",
    "STATE",
    "byref",
    "check",
    "libraries",
    "out_pointer",
    "process_lock",
    "version",
]
