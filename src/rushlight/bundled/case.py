"""Test cases: `TestCase`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from rushlight.errors import Code, ExportError


@dataclass(frozen=True)
class TestCase:
    """One call of a method, and what it is to return.

    Arrays may be of NumPy, torch or anything with DLPack.

    Attributes:
        inputs: the positional arguments.
        expected: what the method returns: in its structure, or its leaves in a flat list; None: it
            is computed by eager if the program still has its captured model, else by the program.
        name: for reports.
        kwargs: the keyword arguments.
        rtol, atol: an output may depart from what is expected by |got - expected| <= atol + rtol *
            |expected|, a whole number by atol alone. A number for all outputs, or a sequence with
            one for each. If one of them is given, the other is 0; None for both: as much as
            `rushlight.export` allows a program to depart from eager, which follows from the dtypes
            that the model computes with and from the output's largest magnitude.
        origin: of a case that was read from a file, what its expected outputs come from: "eager",
            "program" or "given".
    """

    __test__ = False  # it is no test of pytest's

    inputs: Sequence[Any] = ()
    expected: Any = None
    name: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    rtol: float | Sequence[float] | None = None
    atol: float | Sequence[float] | None = None
    origin: str = ""


Case = TestCase | Sequence[Any]
Cases = Sequence[Case] | Mapping[str, Sequence[Case]]


def by_method(cases: Cases) -> dict[str, list[TestCase]]:
    """Cases by method; those of a sequence are of `forward`.

    Raises:
        ExportError: they are no cases.
    """
    listed = cases if isinstance(cases, Mapping) else {"forward": cases}
    made: dict[str, list[TestCase]] = {}
    for method, of_method in listed.items():
        if not isinstance(of_method, list | tuple):
            raise _wrong(f"the cases of {method!r} are {_kind(of_method)}: give a list of them")
        made[method] = [_case(method, i, case) for i, case in enumerate(of_method)]
    if not any(made.values()):
        raise _wrong("there is no test case: give a list of them, [(x,)]")
    return made


def _case(method: str, index: int, case: Case) -> TestCase:
    if isinstance(case, TestCase):
        inputs = case.inputs
    elif isinstance(case, tuple | list):
        inputs, case = case, TestCase(case)
    else:
        inputs = case
    if not isinstance(inputs, tuple | list) or not isinstance(case, TestCase):
        raise ExportError(
            f"its inputs are {_kind(inputs)}: give a tuple of the positional arguments, (x,)",
            code=Code.INVALID_ARGUMENT,
            where=label(method, index, case.name if isinstance(case, TestCase) else ""),
        )
    return case


def tolerances(case: TestCase, n_outputs: int, where: str) -> tuple[list[float], list[float]]:
    """The rtol and atol that a case gives, one for each output; empty if it gives none.

    Raises:
        ExportError: they are no tolerances.
    """
    if case.rtol is None and case.atol is None:
        return [], []
    return (
        _numbers("rtol", case.rtol, n_outputs, where),
        _numbers("atol", case.atol, n_outputs, where),
    )


def _numbers(
    name: str, given: float | Sequence[float] | None, count: int, where: str
) -> list[float]:
    values = list(given) if isinstance(given, Sequence) else [given or 0.0] * count
    if len(values) != count:
        raise _wrong(f"{name} has {len(values)} numbers for {count} outputs", where)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Real) or not value >= 0:
            raise _wrong(f"{name} is {value!r}: give a number that is not negative", where)
        if not math.isfinite(value):
            raise _wrong(f"{name} is {value!r}: give a finite number", where)
    return [float(value) for value in values]


def label(method: str, index: int, name: str) -> str:
    """The name of a case in messages: "forward: case 0 ('empty')"."""
    return f"{method}: case {index}" + (f" ({name!r})" if name else "")


def _kind(value: object) -> str:
    return f"an object of type {type(value).__name__}"


def _wrong(what: str, where: str = "") -> ExportError:
    return ExportError(what, code=Code.INVALID_ARGUMENT, where=where)
