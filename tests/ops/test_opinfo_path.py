"""PyTorch's operator database through the whole path: eager's results, or a refusal at export.

``opinfo_refused.yaml`` lists the operators that are refused, by reason. An operator that joins or
leaves the list without an edit of it fails here, so that nothing is lost silently;
``python -m benchmarks op_coverage --update`` writes its lists anew.
"""

from __future__ import annotations

import pytest

from . import opinfo
from .opinfo import Outcome
from .opinfo_path import SECTIONS, TABLE, outcomes, row_of, table

GROUPS = 4
SHARE = 20  # `make test` takes every twentieth operator, with one call for each of two dtypes

NAMES = sorted(opinfo.entries())


def listed(section: str) -> list[str]:
    """The operators of one section, over all rows."""
    return [name for row in table() for name in row[section]]


def verdict(name: str, outcomes: list[Outcome], *, whole: bool) -> list[str]:
    """What is wrong about an operator's outcomes."""
    wrong = []
    broken = [o for o in outcomes if o.kind == "broken"]
    if name not in listed("broken"):
        wrong += [f"{name}: {o.reason}" for o in broken]
    elif whole and not broken:
        wrong.append(f"{name} is mended: take it out of {TABLE.name}")
    refused = [o for o in outcomes if o.kind == "refused"]
    for refusal in refused:
        row = row_of(refusal.reason)
        if row is None or name not in row["always"] | row["sometimes"]:
            wrong.append(f"{name} is refused, but {TABLE.name} does not say so: {refusal.reason}")
    if name in listed("always") and len(refused) < len(outcomes):
        wrong.append(f"{name} runs, but {TABLE.name} says that it never does")
    if whole and not refused and name in listed("always") + listed("sometimes"):
        wrong.append(f"{name} is never refused: take it out of {TABLE.name}")
    return wrong


@pytest.mark.parametrize("group", range(GROUPS))
def test_share_equals_eager_or_is_refused(group: int) -> None:
    wrong = []
    for name in NAMES[2::SHARE][group::GROUPS]:
        wrong += verdict(name, outcomes(name, whole=False), whole=False)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_equals_eager_or_is_refused(name: str) -> None:
    wrong = verdict(name, outcomes(name, whole=True), whole=True)
    assert not wrong, "\n\n".join(wrong)


def test_the_table_names_operators_of_the_database() -> None:
    for section in SECTIONS:
        assert set(listed(section)) <= set(NAMES)
