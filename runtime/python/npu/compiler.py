# SPDX-License-Identifier: Apache-2.0
"""The compiler in process: a model file or a torch.export program becomes a `Program`."""

from __future__ import annotations

import os
import shutil
import tempfile
from ctypes import c_char_p
from typing import Any, Iterable, Mapping, Sequence

from ._native import check, libraries, process_lock
from .program import Program
from .tensors import torch_module


def _words(
    target: str | os.PathLike[str],
    dtype: str,
    opt: int,
    shapes: Mapping[str, Sequence[int]] | None,
    dims: Mapping[str, int] | None,
    options: Iterable[str],
) -> list[str]:
    words = [f"--target={os.fspath(target)}", f"--dtype={dtype}", f"-O{opt}"]
    for name, shape in (shapes or {}).items():
        words.append(f"--shape={name}={','.join(map(str, shape)) or 'scalar'}")
    for name, size in (dims or {}).items():
        words.append(f"--dim={name}={size}")
    return [*words, *options]


def compile_file(
    model: str, output: str, words: Sequence[str], replace: Sequence[tuple[str, str]] = ()
) -> None:
    """npu_compile. `replace`: names in messages that the user would not know."""
    encoded = [os.fsencode(w) for w in words]
    options = (c_char_p * len(encoded))(*encoded)
    api = libraries.compile
    with process_lock:
        status = api.npu_compile(os.fsencode(model), os.fsencode(output), options, len(encoded))
    check(status, replace)


_SMALLEST = """graph "probe"
in %"any input" : f32[4]
%y = map %"any input" chain=(max imm0) imm0=0
out %y
"""


def check_options(
    target: str | os.PathLike[str], dtype: str, opt: int, options: Iterable[str]
) -> None:
    """Compiles next to nothing: raises what the compiler has against these options."""
    with tempfile.TemporaryDirectory(prefix="npu-") as folder:
        source = os.path.join(folder, "probe.npt")
        with open(source, "w") as file:
            file.write(_SMALLEST)
        words = _words(target, dtype, opt, None, None, options)
        compile_file(source, os.path.join(folder, "probe.npu"), words, [(source, "any graph")])


def _is_exported(model: Any) -> bool:
    return torch_module() is not None and type(model).__name__ == "ExportedProgram"


def compile(
    model: Any,
    target: str | os.PathLike[str] = "server",
    dtype: str = "auto",
    opt: int = 2,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    options: Iterable[str] = (),
    output: str | os.PathLike[str] | None = None,
    name: str = "model",
) -> Program:
    """Compiles a model in this process and loads it on a simulated device.

    model:   path of a model file (everything that npuc reads), or a torch.export.ExportedProgram
    target:  preset or path of a hardware description
    dtype:   type of floating tensors: "auto" (the model's own), "f32", "f16", "bf16"
    opt:     0 to 3, as npuc -O
    shapes:  fixes inputs with open dimensions: {"input_ids": (1, 512)}
    dims:    fixes named dimensions everywhere: {"batch": 1}
    options: more words of npuc's command line: ["--set", "dram.channels=2", "--skip=fuse_map"]
    output:  keeps the program in this file, else it lives in a temporary one
    name:    of an exported program, in reports

    The program returned takes and returns what the model does: an exported program also its
    nested tuples and dicts. Errors are those of npuc, with its whole text.

    >>> program = npu.compile("model.onnx", target="edge", dtype="f16")
    >>> exported = torch.export.export(model, (x,))
    >>> torch.testing.assert_close(npu.compile(exported)(x), model(x))
    """
    words = _words(target, dtype, opt, shapes, dims, options)
    exported = _is_exported(model)
    if not exported and not isinstance(model, (str, os.PathLike)):
        raise TypeError(
            f"npu.compile takes a path or a torch.export.ExportedProgram, not "
            f"{type(model).__name__}; torch.export.export(model, inputs) makes one of a module"
        )
    folder = tempfile.mkdtemp(prefix="npu-")
    path = os.fspath(output) if output is not None else os.path.join(folder, f"{name}.npu")
    try:
        if exported:
            from .torch_calls import Calling

            calling = Calling(model)
            _compile_exported(model, name, folder, path, words)
        else:
            compile_file(os.fspath(model), path, words)
        program = Program(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    program._own(folder)
    if exported:
        calling.attach(program)
    return program


def _compile_exported(
    exported: Any, name: str, folder: str, path: str, words: Sequence[str]
) -> None:
    source = os.path.join(folder, f"{name}.pt2")
    from .torch_graph import quiet

    with quiet():
        torch_module().export.save(exported, source)
    compile_file(source, path, words, [(source, name)])
    os.unlink(source)
