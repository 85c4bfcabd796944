"""Reads the report of a failed load or run (`cpp/trace/failure_report.h`).

A report may be cut or damaged: what can be read is read, and `problems` says what does not match.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rushlight.errors import Code, LoadError
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.sizes import dtype_name

VERSION = 1
_MAGIC = b"RLFR"
_HEADER = struct.Struct("<4s3I5Q2I2BH7I")
_TEXTS = struct.Struct("<64s128s128s1024s")
_MEMORY = struct.Struct("<2I2Q")
_VALUE = struct.Struct("<I2BbBq8i")
_EVENT = struct.Struct("<QI2H")
_N_MEMORIES, _N_VALUES, _N_EVENTS = 8, 16, 64
_BYTES = (
    _HEADER.size
    + _TEXTS.size
    + _N_MEMORIES * _MEMORY.size
    + _N_VALUES * _VALUE.size
    + _N_EVENTS * _EVENT.size
)
_CHECKED_FROM = 16  # the checksum is of what follows it
_NONE, _NO_METHOD = 0xFFFFFFFF, 0xFFFF
_PHASES = ("", "load", "input", "run")
_KINDS = ("kernel", "delegate", "move", "jump", "free")
_MEMORIES = ("structures", "arena", "limit")
_TAGS = {
    0: "none", 1: "tensor", 2: "string", 3: "double", 4: "int", 5: "bool", 6: "bool list",
    7: "double list", 8: "int list", 9: "tensor list", 11: "optional tensor list",
}  # fmt: skip


@dataclass(frozen=True)
class FailureValue:
    """An argument of the instruction that failed, or the input that was refused.

    Attributes:
        value: its index in the method.
        kind: "tensor", "int", "double", "bool", "none", "string", or a kind of list.
        text: a tensor's dtype and sizes, as "float32[2, 3]"; a number; how many items a list has.
        written: the instruction writes it.
        without_memory: it is a tensor that nothing gave memory.
        constant: it is a tensor that nothing may write.
        item: it is in the list before it, and no argument by itself.
    """

    value: int
    kind: str
    text: str
    written: bool = False
    without_memory: bool = False
    constant: bool = False
    item: bool = False


@dataclass(frozen=True)
class FailureMemory:
    """Memory that a load wanted, and what it found, in bytes.

    Attributes:
        kind: "structures", "arena", or "limit" for the module's memory limit.
        id: of an arena: its memory id.
    """

    kind: str
    id: int
    wanted: int
    available: int


@dataclass(frozen=True)
class FailureEvent:
    """An instruction that began before the failure.

    Attributes:
        method: its method's index in the program.
        instruction: its index over all chains of the method.
        run: which run of the method, counted from the load; the lowest 16 bits.
        before_ns: how long before the failure.
    """

    method: int
    instruction: int
    run: int
    before_ns: int


@dataclass(frozen=True)
class FailureReport:
    """What a report says; an index that it does not have is None.

    Attributes:
        problems: what does not match, if the report is cut, damaged or of another version.
        program: the identity of the program that failed.
        program_bytes: its size.
        phase: "load", "input" (of a call) or "run"; "" if it is not known.
        code: the error.
        signal: the number of the signal, if it crashed; 0 otherwise.
        address: what was accessed then.
        method: the name; the first 63 bytes of it.
        method_index: in the program.
        chain, instruction: the chain of the instruction, and its index in it: its debug handle.
        kind: of the instruction: "kernel", "delegate", "move", "jump" or "free".
        name: the operator, or the backend's id.
        delegate: its index in the method.
        place: inside the delegate, by the backend's own id.
        input: the index of the input that was refused.
        message: the error's text.
        values: the instruction's arguments, as far as there was room.
        n_values: how many there are.
        memories: what the load wanted.
        events: the last instructions, the newest last.
        n_events: how many have begun since the load.
    """

    problems: tuple[str, ...] = ()
    program: int = 0
    program_bytes: int = 0
    phase: str = ""
    code: int = 0
    signal: int = 0
    address: int = 0
    method: str = ""
    method_index: int | None = None
    chain: int | None = None
    instruction: int | None = None
    kind: str = ""
    name: str = ""
    delegate: int | None = None
    place: str = ""
    input: int | None = None
    message: str = ""
    values: tuple[FailureValue, ...] = ()
    n_values: int = 0
    memories: tuple[FailureMemory, ...] = ()
    events: tuple[FailureEvent, ...] = field(default=(), repr=False)
    n_events: int = 0


def read_failure(source: str | os.PathLike[str] | Buffer) -> FailureReport:
    """Read a report.

    Args:
        source: its path or its bytes.

    Raises:
        LoadError: it cannot be read, or is no report of a failure.
    """
    where = ""
    if isinstance(source, str | os.PathLike):
        where = os.fspath(source)
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise LoadError(
                f"the report cannot be read: {error.strerror}", code=Code.ACCESS_FAILED, where=where
            ) from error
    else:
        data = bytes(source)
    if data[: len(_MAGIC)] != _MAGIC:
        what = "it is empty" if not data else f"it does not begin with {_MAGIC.decode()}"
        raise LoadError(
            f"this is no report of a failure: {what}", code=Code.INVALID_EXTERNAL_DATA, where=where
        )
    return _parse(data.ljust(_BYTES, b"\0"), tuple(_problems(data)))


def _problems(data: bytes) -> Iterator[str]:
    version, size, checksum = struct.unpack_from("<3I", data.ljust(_CHECKED_FROM, b"\0"), 4)
    if version > VERSION:
        yield (
            f"it has version {version}, and this Rushlight knows up to {VERSION}: read it with the "
            "one that wrote it, or a later one"
        )
        return
    if len(data) < _BYTES:
        yield f"it was cut: it has {len(data)} of {_BYTES} bytes, and the rest is not shown"
    elif size == 0:
        yield "it was written before anything failed"
    elif size != _BYTES or zlib.crc32(data[_CHECKED_FROM:_BYTES]) != checksum:
        yield "its checksum does not match: it is damaged, and what follows may be wrong"


def _parse(data: bytes, problems: tuple[str, ...]) -> FailureReport:
    head = _HEADER.unpack_from(data)
    _, _, _, _, program, program_bytes, time, n_events, address = head[:9]
    signal, code, phase, kind, method_index, chain, instruction, delegate, input = head[9:18]
    n_values, n_memories = head[18:20]
    at = _HEADER.size
    method, name, place, message = (_text(raw) for raw in _TEXTS.unpack_from(data, at))
    at += _TEXTS.size
    memories = [_MEMORY.unpack_from(data, at + i * _MEMORY.size) for i in range(_N_MEMORIES)]
    at += _N_MEMORIES * _MEMORY.size
    values = [_VALUE.unpack_from(data, at + i * _VALUE.size) for i in range(_N_VALUES)]
    at += _N_VALUES * _VALUE.size
    return FailureReport(
        problems=problems,
        program=program,
        program_bytes=program_bytes,
        phase=_name(_PHASES, phase),
        code=code,
        signal=signal,
        address=address,
        method=method,
        method_index=None if method_index == _NO_METHOD else method_index,
        chain=_index(chain),
        instruction=_index(instruction),
        kind="" if instruction == _NONE else _name(_KINDS, kind),
        name=name,
        delegate=_index(delegate),
        place=place,
        input=_index(input),
        message=message,
        values=tuple(_value(*fields) for fields in values[:n_values]),
        n_values=n_values,
        memories=tuple(
            FailureMemory(_name(_MEMORIES, fields[0]), *fields[1:])
            for fields in memories[:n_memories]
        ),
        events=tuple(_events(data, at, time, n_events)),
        n_events=n_events,
    )


def _events(data: bytes, at: int, time: int, count: int) -> Iterator[FailureEvent]:
    """The events of the ring, the oldest first."""
    for n in range(max(0, count - _N_EVENTS), count):
        ns, instruction, method, run = _EVENT.unpack_from(data, at + n % _N_EVENTS * _EVENT.size)
        yield FailureEvent(method, instruction, run, time - ns)


def _value(
    index: int, tag: int, flags: int, dtype: int, rank: int, number: int, *sizes: int
) -> FailureValue:
    kind = _TAGS.get(tag, f"kind {tag}")
    return FailureValue(
        value=index,
        kind=kind,
        text=_value_text(kind, dtype, rank, number, sizes),
        written=bool(flags & 1),
        without_memory=bool(flags & 2),
        constant=bool(flags & 4),
        item=bool(flags & 8),
    )


def _value_text(kind: str, dtype: int, rank: int, number: int, sizes: tuple[int, ...]) -> str:
    if kind == "tensor":
        shown = [str(size) for size in sizes[:rank]] + ["…"] * (rank > len(sizes))
        try:
            name = dtype_name(fb.ScalarType(dtype))
        except ValueError:
            name = f"dtype {dtype}"
        return f"{name}[{', '.join(shown)}]"
    if kind == "double":
        value: float = struct.unpack("<d", struct.pack("<q", number))[0]
        return repr(value) if math.isfinite(value) else str(value)
    if kind == "bool":
        return str(number != 0)
    if kind == "int":
        return str(number)
    if kind == "none":
        return "None"
    return f"{kind} of {number}"


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _index(number: int) -> int | None:
    return None if number == _NONE else number


def _name(names: tuple[str, ...], number: Any) -> str:
    return names[number] if number < len(names) else f"{number}"
