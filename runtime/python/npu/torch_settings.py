# SPDX-License-Identifier: Apache-2.0
"""`mode` and `options` of torch.compile(backend="npu"), and whether they make sense."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import Any, Mapping

from torch.export import ExportedProgram

from .compiler import check_options
from .compiler import compile as compile_model
from .errors import BadInputError, Error, FileError, UsageError
from .program import Program

_LEVELS = {
    None: 2,
    "default": 2,
    "reduce-overhead": 2,  # one submission with bound inputs is what a session does anyway
    "max-autotune": 3,
    "max-autotune-no-cudagraphs": 3,
}

_KINDS: dict[str, tuple[Any, str]] = {
    "target": ((str, os.PathLike), "a preset or the path of a YAML file"),
    "dtype": (str, '"auto", "f32", "f16" or "bf16"'),
    "opt": (int, "0 to 3"),
    "options": ((list, tuple), 'a list of words of npuc: ["--set", "dram.channels=2"]'),
    "fallback": (bool, "True or False"),
}


def _known() -> str:
    return ", ".join([*_KINDS, "mode"])


@functools.lru_cache
def _probe(target: str, dtype: str, opt: int, options: tuple[str, ...]) -> None:
    """A wrong option concerns every graph: it is an error, not one more thing to run in eager."""
    try:
        check_options(target, dtype, opt, options)
    except (UsageError, BadInputError, FileError) as error:
        raise UsageError(f'torch.compile(backend="npu"): {error}') from None
    except Error:
        pass  # a graph of one node does not fit: each graph will say so


@dataclass(frozen=True)
class Settings:
    """`mode` and `options` of torch.compile."""

    target: str = "server"  #: preset or path of a hardware description
    dtype: str = "auto"  #: "auto", "f32", "f16" or "bf16"
    opt: int = 2  #: 0 to 3; from the mode
    options: tuple[str, ...] = field(default=())  #: more words of npuc's command line
    fallback: bool = True  #: False: what the NPU cannot run is an error

    @classmethod
    def of(cls, mode: str | None, options: Mapping[str, Any] | None) -> Settings:
        """Checks both, all words by the compiler."""
        if options is not None and not isinstance(options, Mapping):
            raise UsageError(f"options={options!r}: expected a dict of {_known()}")
        given = dict(options or {})
        mode = given.pop("mode", mode)
        if not isinstance(mode, (str, type(None))) or mode not in _LEVELS:
            modes = ", ".join(repr(m) for m in _LEVELS if m)
            raise UsageError(f"mode {mode!r}: the backend npu has {modes}")
        for name, value in given.items():
            if name not in _KINDS:
                raise UsageError(f"option '{name}': the backend npu has {_known()}")
            kind, words = _KINDS[name]
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise UsageError(f"option '{name}' is {value!r}: expected {words}")
        given.setdefault("opt", _LEVELS[mode])
        given["options"] = tuple(given.get("options", ()))
        if not all(isinstance(word, str) for word in given["options"]):
            raise UsageError(f"option 'options' is {given['options']}: expected {_KINDS['options'][1]}")
        given["target"] = os.fspath(given.get("target", cls.target))
        settings = cls(**given)
        _probe(settings.target, settings.dtype, settings.opt, settings.options)
        return settings

    def compile(self, exported: ExportedProgram) -> Program:
        """An exported program on a device."""
        return compile_model(
            exported, self.target, self.dtype, self.opt, options=self.options, name="graph"
        )
