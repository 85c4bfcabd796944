"""How a test case of a bundled program went: `CaseResult`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from rushlight import _core


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

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON, which has no infinity and no NaN: these become texts."""
        return {name: _in_json(value) for name, value in asdict(self).items()}


def _in_json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def run_case(
    core: _core.Method, method: str, index: int, name: str, rtol: float | None, atol: float | None
) -> CaseResult:
    """Run a test case; a tolerance that is None is the file's.

    Raises:
        _core.Failure: it cannot be run or read.
    """
    (passed, compared, message), errors, counts, (output, place, got, expected) = core.verify(
        method, index, -1.0 if rtol is None else rtol, -1.0 if atol is None else atol
    )
    absolute, relative = errors
    elements, wrong, nan = counts
    differs = absolute > 0 or wrong > 0
    return CaseResult(
        *(method, index, name, passed, message, True, compared),
        *(absolute, relative, elements, wrong, nan, output, place),
        *((got, expected) if differs else (None, None)),
    )
