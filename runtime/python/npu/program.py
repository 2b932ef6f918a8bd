# SPDX-License-Identifier: Apache-2.0
"""A compiled program on a simulated device of its own."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import threading
import weakref
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from ._native import INPUT, OUTPUT, STATE, CRunInfo, CSimulatorConfig, CTensorInfo
from ._native import byref, check, libraries, out_pointer, process_lock
from .errors import Error, UsageError
from .tensors import BY_CODE, TensorInfo, kind_of, source, target


class RunInfo(NamedTuple):
    """How a run went, on the device's clock."""

    start_cycle: int
    end_cycle: int
    busy_cycles: int  #: sum over the submissions
    submissions: int  #: 1, unless the program was compiled to be run op by op


class States(Mapping[str, Any]):
    """State of a program by name, kept from run to run: a key/value cache.

    Reading gives a copy, assigning writes all of it:

        cache = program.states["cache_k_0"]
        program.states["cache_k_0"] = cache
        program.states.reset()

    They are in the device's memory: each run starts from what the run before left.
    """

    def __init__(self, program: Program) -> None:
        self._program = program

    def __getitem__(self, name: str) -> Any:
        return self.read(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._program._write(STATE, self._index(name), value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._program._names(STATE))

    def __len__(self) -> int:
        return len(self._program._tensors[STATE])

    def read(self, name: str, like: str | None = None) -> Any:
        """The state as a tensor of "torch" or "numpy", or as "memory"."""
        kind = like or ("torch" if self._program._calling else kind_of(()))
        return self._program._read(STATE, self._index(name), kind)

    def reset(self) -> None:
        """All of it is what it was before the first run."""
        self._program._reset()

    def _index(self, name: str) -> int:
        names = self._program._names(STATE)
        if name not in names:
            raise KeyError(f"no state '{name}'; there are: {', '.join(self) or 'none'}")
        return names.index(name)


class _Handles:
    """Program, device and session of the C library, released in that order backwards."""

    def __init__(self) -> None:
        self.program = out_pointer()
        self.device = out_pointer()
        self.session = out_pointer()

    def close(self) -> None:
        api = libraries.npu
        api.npu_session_free(self.session)
        api.npu_device_close(self.device)
        api.npu_program_free(self.program)
        self.session, self.device, self.program = out_pointer(), out_pointer(), out_pointer()


_ABSENT = object()  # an input that an entry point does not need
_programs: weakref.WeakSet[Program] = weakref.WeakSet()
_created = 0


class Program:
    """A compiled program. Made by `npu.load` and `npu.compile`; call it with its inputs.

    Inputs go by position or by name; a contiguous torch CPU tensor or numpy array is read where it
    is. What comes back is a tensor, or a tuple when the model has several outputs, of torch when
    torch came in. Floats of any width are accepted where the model has floats, integers of any
    width where it has integers.

        program = npu.load("model.npu")
        y = program(x)
        y = program(image=x)

    A program may be used by several threads; they wait for each other.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        machine: str | None = None,
        no_data: bool = False,
        entry: str | None = None,
    ) -> None:
        global _created
        self._handles = _Handles()
        self._finalizer = weakref.finalize(self, _Handles.close, self._handles)
        self._lock = threading.RLock()
        self._path = os.fspath(path)
        self._no_data = no_data
        self._calling: Callable[[Program, tuple[Any, ...], dict[str, Any]], Any] | None = None
        self._folder: Callable[[], Any] | None = None
        self._bound: dict[int, Any] = {}
        self.last_run: RunInfo | None = None
        h, api = self._handles, libraries.npu
        check(api.npu_program_load(os.fsencode(self._path), byref(h.program)))
        yaml = machine.encode() if machine is not None else api.npu_program_machine(h.program)
        config = CSimulatorConfig(yaml, int(no_data))
        ops = libraries.simulator.npu_simulator_ops()
        check(api.npu_device_open(ops, byref(config), byref(h.device)))
        check(api.npu_session_new(h.device, h.program, byref(h.session)))
        self._tensors = {role: self._list(role) for role in (INPUT, OUTPUT, STATE)}
        if entry is not None:
            check(api.npu_session_set_entry(h.session, entry.encode()))
        self.states = States(self)
        _created += 1
        self._number = _created
        _programs.add(self)

    # ---- what it is --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._text("npu_program_name")

    @property
    def producer(self) -> str:
        """The compiler that made it and its version."""
        return self._text("npu_program_producer")

    @property
    def target(self) -> str:
        """Name of the machine it was compiled for."""
        return self._text("npu_program_target")

    @property
    def machine(self) -> str:
        """The machine's whole description, as YAML."""
        return self._text("npu_program_machine")

    @property
    def dram_bytes(self) -> int:
        """Device memory that it takes."""
        return int(libraries.npu.npu_program_dram_bytes(self._alive().program))

    @property
    def entries(self) -> tuple[str, ...]:
        """Entry points; the first is the default, `npu.load(path, entry=...)` takes another."""
        h, api = self._alive(), libraries.npu
        count = api.npu_program_entry_count(h.program)
        return tuple(api.npu_program_entry(h.program, i).decode() for i in range(count))

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Inputs in the order of the model.

        >>> [t.name for t in program.inputs]
        ['input_ids', 'attention_mask']
        """
        return tuple(TensorInfo.of(c) for c in self._tensors[INPUT])

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Outputs in the order of the model."""
        return tuple(TensorInfo.of(c) for c in self._tensors[OUTPUT])

    def __repr__(self) -> str:
        if not self._finalizer.alive:
            return "<npu.Program, closed>"
        parts = [f"{t.name}: {t.model_dtype}{list(t.shape)}" for t in self.inputs]
        return f"<npu.Program '{self.name}' for {self.target} ({', '.join(parts)})>"

    # ---- running it --------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it once."""
        with self._lock:
            if self._calling:
                return self._calling(self, args, kwargs)
            given = self._by_name(args, kwargs)
            outputs = self._run(given, kind_of(given))
        if outputs is None:
            return None
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def report(self) -> dict[str, Any]:
        """Cycle report of the last run: what `npusim --report` writes, as a dict.

        >>> report = program.report()
        >>> report["cycles"], report["bounds"]["latency_over_ideal"]
        (6451, 2.07)
        >>> [layer["name"] for layer in report["layers"]]
        ['conv1', 'conv2', 'fc']
        """
        h, api = self._alive(), libraries.simulator
        text = out_pointer()
        with self._lock, process_lock:
            if self.last_run is None:
                raise UsageError("report(): the program has not been run")
            check(api.npu_simulator_report(h.session, byref(text)))
            try:
                report = json.loads(ctypes.string_at(text.value))
            finally:
                api.npu_simulator_report_free(text)
        return dict(report)

    @property
    def cycles(self) -> int:
        """Length of the last run in cycles of the device."""
        if self.last_run is None:
            raise UsageError("cycles: the program has not been run")
        return self.last_run.end_cycle - self.last_run.start_cycle

    def set_scalar(self, index: int, value: int) -> None:
        """Value that the program reads from doorbell `index` (0..15), such as a length."""
        check(libraries.npu.npu_session_set_scalar(self._alive().session, index, value))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copies the .npu file."""
        self._alive()
        shutil.copyfile(self._path, path)

    def close(self) -> None:
        """Gives the device's memory back; the program cannot be used after it."""
        with self._lock:
            self._finalizer()
            self._bound.clear()
            if self._folder:
                self._folder()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- inside ------------------------------------------------------------------------------

    def _own(self, folder: str) -> None:
        """A temporary folder that is removed with this."""
        self._folder = weakref.finalize(self, shutil.rmtree, folder, True)

    def _alive(self) -> _Handles:
        if not self._finalizer.alive:
            raise UsageError("the program was closed")
        return self._handles

    def _text(self, function: str) -> str:
        return str(getattr(libraries.npu, function)(self._alive().program).decode())

    def _list(self, role: int) -> list[CTensorInfo]:
        api, h = libraries.npu, self._handles
        found = []
        for i in range(api.npu_program_tensor_count(h.program, role)):
            c = CTensorInfo()
            check(api.npu_program_tensor(h.program, role, i, byref(c)))
            c.name = bytes(c.name)  # a copy: the library's ends with the program
            found.append(c)
        return found

    def _names(self, role: int) -> list[str]:
        return [c.name.decode() for c in self._tensors[role]]

    def _by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        names = self._names(INPUT)
        if len(args) > len(names):
            raise UsageError(
                f"{len(args)} inputs given, the program has {len(names)}: {', '.join(names)}"
            )
        given: dict[str, Any] = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in names:
                raise UsageError(f"no input '{name}'; there are: {', '.join(names)}")
            if name in given:
                raise UsageError(f"input '{name}' was given twice")
            given[name] = value
        missing = [n for n in names if n not in given]
        if missing and len(self.entries) == 1:
            raise UsageError(f"inputs that were not given: {', '.join(missing)}")
        return [given.get(n, _ABSENT) for n in names]

    def _run(self, given: Sequence[Any], kind: str) -> list[Any] | None:
        h, api = self._alive(), libraries.npu
        for i, value in enumerate(given):
            if value is not _ABSENT:
                self._bind(i, value)
        check(libraries.simulator.npu_simulator_begin(h.device))
        info = CRunInfo()
        self.last_run = None
        check(api.npu_session_run(h.session, byref(info)))
        self.last_run = RunInfo(
            info.start_cycle, info.end_cycle, info.busy_cycles, info.submissions
        )
        if self._no_data:
            return None
        return [self._read(OUTPUT, i, kind) for i in range(len(self._tensors[OUTPUT]))]

    def _source(self, role: int, index: int, value: Any) -> Any:
        c = self._tensors[role][index]
        word = "input" if role == INPUT else "state"
        shape = tuple(c.dims[: c.rank])
        takes = f"the program takes {BY_CODE[c.model_dtype].name}{list(shape)}"
        if value is None:
            raise UsageError(f"{word} '{c.name.decode()}' is None, {takes}")
        try:
            s = source(value)
        except UsageError as error:
            raise UsageError(f"{word} '{c.name.decode()}': {error}") from None
        if s.shape != shape:
            raise UsageError(f"{word} '{c.name.decode()}': shape {list(s.shape)}, {takes}")
        return s

    def _bind(self, index: int, value: Any) -> None:
        s = self._source(INPUT, index, value)
        bound = self._bound.get(index)
        self._bound[index] = s  # keeps the bytes alive as long as the session knows them
        if bound and bound[:3] == s[:3]:
            return
        api, h = libraries.npu, self._handles
        self._named(
            INPUT, index, api.npu_session_bind_input, h.session, index, s.dtype.code, s.pointer,
            s.bytes
        )

    def _named(self, role: int, index: int, function: Any, *args: Any) -> None:
        try:
            check(function(*args))
        except Error as error:
            name = self._tensors[role][index].name.decode()
            if name in str(error):
                raise
            named = type(error)(f"'{name}': {error}")
            raise named from None

    def _write(self, role: int, index: int, value: Any) -> None:
        s = self._source(role, index, value)
        with self._lock:
            h, api = self._alive(), libraries.npu
            self._named(
                role, index, api.npu_session_write, h.session, role, index, s.dtype.code, s.pointer,
                s.bytes
            )

    def _reset(self) -> None:
        with self._lock:
            check(libraries.npu.npu_session_reset(self._alive().session))

    def _read(self, role: int, index: int, kind: str) -> Any:
        t = target(kind, self._tensors[role][index])
        with self._lock:
            h, api = self._alive(), libraries.npu
            self._named(
                role, index, api.npu_session_read, h.session, role, index, t.dtype.code, t.pointer,
                t.bytes
            )
        return t.value


def load(
    path: str | os.PathLike[str],
    *,
    entry: str | None = None,
    machine: str | None = None,
    no_data: bool = False,
) -> Program:
    """Loads a .npu and opens a simulated device for it.

    entry:   entry point of a program with several; the first otherwise
    machine: YAML description of the device; the one the program was compiled for otherwise.
             Parameters that decide what a legal program is must agree, those of timing may differ
    no_data: only cycles are computed; calls return None

    >>> program = npu.load("resnet-tiny.npu")
    >>> program(numpy.zeros((1, 3, 32, 32), numpy.float32)).shape
    (1, 10)
    """
    return Program(path, entry=entry, machine=machine, no_data=no_data)


def programs() -> list[Program]:
    """Programs that are in use, in the order they were made: also those of torch.compile.

    >>> model = torch.compile(model, backend="npu")
    >>> y = model(x)
    >>> npu.programs()[-1].report()["cycles"]
    190071
    """
    return sorted(_programs, key=lambda p: p._number)
