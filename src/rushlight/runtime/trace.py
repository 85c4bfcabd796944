"""What is recorded of runs, in the format of ExecuTorch's ETDump: `Trace`, `Recording`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rushlight import _core
from rushlight.errors import Code, RunError
from rushlight.files import AnyPath, replacing_all
from rushlight.runtime.failures import python_lines, run_errors
from rushlight.runtime.measures import TraceEvent

_LEVELS = ("none", "outputs", "all")
_LEAST_BYTES = 4096


@dataclass(frozen=True)
class TraceOptions:
    """What `load(trace=…)` records, and in how much memory.

    Memory is taken at the load; pages count only once they are used. What finds no room is counted
    in `Trace.dropped`.

    Attributes:
        values: "none"; "outputs", of methods; "all": also what each operator writes, and what
            delegates tell of the values between theirs; or names of those that are wanted beside
            the outputs: a kernel's or backend's ("aten::sin.out"), an instruction's index ("7"),
            or a place inside its delegate ("7/12").
        bytes: for events; some 80 for each. At least 4,096, at most 2 GiB.
        value_bytes: for values, unless they are "none".
    """

    values: Literal["none", "outputs", "all"] | Sequence[str] = "none"
    bytes: int = 16 << 20
    value_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if isinstance(self.values, str) and self.values not in _LEVELS:
            raise RunError(
                f"values={self.values!r}: choose one of {', '.join(map(repr, _LEVELS))}, or give a "
                "list of names",
                code=Code.INVALID_ARGUMENT,
            )
        if not _LEAST_BYTES <= self.bytes < 1 << 31:
            raise RunError(
                f"bytes={self.bytes}: give {_LEAST_BYTES} at least, and less than 2 GiB",
                code=Code.INVALID_ARGUMENT,
            )
        if self.value_bytes < 0:
            raise RunError(
                f"value_bytes={self.value_bytes}: give a number of bytes",
                code=Code.INVALID_ARGUMENT,
            )


def core_options(trace: bool | TraceOptions) -> tuple[int, int, int, list[str]]:
    """The bytes for events and for values, the level and names, as the extension takes them."""
    if not trace:
        return (0, 0, 0, [])
    options = trace if isinstance(trace, TraceOptions) else TraceOptions()
    if isinstance(options.values, str):
        level, names = _LEVELS.index(options.values), []
    else:
        names = list(options.values)
        level = _LEVELS.index("all" if names else "outputs")
    return (options.bytes, options.value_bytes if level else 0, level, names)


class Recording:
    """What was recorded since a program was loaded, or since `clear`: `Runner.trace` of a language
    model.

    Every load of a method and every run is a block of events: each instruction, each operator, and
    each stretch inside a delegate that its backend tells of, with its start and end in nanoseconds.

    Raises:
        RunError: of all methods: the program was not loaded with `trace`, or is closed.
    """

    def __init__(self, core: _core.Program | _core.LlmRunner) -> None:
        self._recorder = core

    @property
    def dropped(self) -> tuple[int, int]:
        """How many events and how many values found no room: see `TraceOptions`."""
        with run_errors():
            return self._recorder.trace_dropped()

    def clear(self) -> None:
        """Forget everything that was recorded."""
        with run_errors():
            self._recorder.trace_clear()

    def to_bytes(self) -> tuple[bytes, bytes]:
        """The content of an ETDump (.etdp), and of the debug buffer that its values lie in."""
        with run_errors():
            return self._recorder.trace_dump()

    def save(self, path: AnyPath, values: AnyPath | None = None) -> None:
        """Write an ETDump, which `rushlight.inspect.Inspector` and ExecuTorch's Inspector read.

        Args:
            path: of the ETDump; usually NAME.etdp.
            values: of the debug buffer, which is written if values were recorded; None: the
                ETDump's path with ".values" at its end.

        Raises:
            OSError: a file cannot be written.
        """
        dump, buffer = self.to_bytes()
        paths = [path]
        if buffer:
            paths.append(values if values is not None else f"{os.fspath(path)}.values")
        with replacing_all(paths) as files:
            for file, content in zip(files, (dump, buffer), strict=False):
                file.write(content)


class Trace(Recording):
    """What a module has recorded since it was loaded, or since `clear`: `Module.trace`."""

    def __init__(self, core: _core.Program) -> None:
        super().__init__(core)
        self._core = core

    def events(self) -> list[TraceEvent]:
        """How long each instruction of the last run took, in the order of the run."""
        with run_errors():
            method, events = self._core.trace_events()
        lines = python_lines(self._core)
        entries = []
        for instruction, kind, name, ns, delegate, inside in events:
            line = lines.line(method, instruction)
            if inside:
                line = next(iter(lines.delegate_lines(method, delegate, inside)), line)
            entries.append(TraceEvent(method, instruction, kind, name, ns, line, inside))
        return entries
