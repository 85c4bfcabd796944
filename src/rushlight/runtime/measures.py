"""What is measured of a module: `TraceEvent` of its last call, `Memory`, and `CaseResult` of a test
case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


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


@dataclass(frozen=True)
class CaseResult:
    """How a test case of a bundled program went.

    Attributes:
        method, index, name: which one.
        passed: whether everything came out as expected, or nothing is expected.
        message: why it did not pass; "" if it did.
        ran: whether the method ran to its end.
        compared: whether the file has outputs to compare with.
        absolute, relative: the greatest errors. Infinite where NaN or an infinity comes out for
            something else, or, the relative one, where 0 is expected.
        elements, wrong: how many there are, and how many are out of tolerance.
        nan: how many are NaN where a number is expected.
        output, place: where the greatest error is: the index of the output, and that in it.
        got, expected: the values there; None if all are equal.
    """

    method: str
    index: int
    name: str
    passed: bool
    message: str = ""
    ran: bool = False
    compared: bool = False
    absolute: float = 0.0
    relative: float = 0.0
    elements: int = 0
    wrong: int = 0
    nan: int = 0
    output: int = 0
    place: tuple[int, ...] = ()
    got: float | None = None
    expected: float | None = None

    @classmethod
    def of(cls, report: Any, method: str, index: int, name: str) -> CaseResult:
        """The result that the extension reports (`_core.Method.verify`)."""
        (passed, compared, message), errors, counts, (output, place, got, expected) = report
        absolute, relative = errors
        elements, wrong, nan = counts
        differs = absolute > 0 or wrong > 0
        return cls(
            *(method, index, name, passed, message, True, compared),
            *(absolute, relative, elements, wrong, nan, output, place),
            *((got, expected) if differs else (None, None)),
        )

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON, which has no infinity and no NaN: these become texts."""
        return {name: _in_json(value) for name, value in asdict(self).items()}


def _in_json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
