"""Measurements of a module's last call and of its memory: `TraceEvent` and `Memory`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class TraceEvent(NamedTuple):
    """One instruction of the last run, as `Trace.events` gives it.

    Attributes:
        method: the method that ran.
        instruction: its index.
        kind: "kernel", "delegate", "move", "jump" or "free".
        name: the operator or the backend; "" for the other kinds.
        ns: nanoseconds that it took.
        line: the Python line that it comes from; "" if the program does not tell. Of a stretch
            inside a delegate that comes from several lines, the first.
        inside: for a stretch inside a delegate that its backend reported, the backend's id for it;
            such events follow that of the whole instruction. "" for an instruction.
    """

    method: str
    instruction: int
    kind: str
    name: str
    ns: int
    line: str
    inside: str = ""


@dataclass(frozen=True)
class Memory:
    """Bytes that a module takes; the program itself is mapped from its file.

    Attributes:
        arenas: method name to the sizes of its arenas, the first for memory id 1: the bound of
            what tensors take; pages count only once they are touched.
        structures: method name to what its values and instructions take.
        scratch: method name to scratch memory for kernels.
        constants: weights, in the file.
        file: the whole program.
        peak: arenas, structures, scratch and outputs of all loaded methods together.
        resident: what of that has been touched, in whole pages. With dynamic shapes it follows the
            sizes of the last call: a call of much smaller inputs gives pages back.
    """

    arenas: Mapping[str, tuple[int, ...]]
    structures: Mapping[str, int]
    scratch: Mapping[str, int]
    constants: int
    file: int
    peak: int
    resident: int
