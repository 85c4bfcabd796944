"""PyTorch's operator database over the kernels: every call, taken apart to Core ATen, is eager's,
and clean under AddressSanitizer and UBSan, where it is run once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import opinfo
from .opinfo_kernels import Tally, run
from .recording import FOLDER, recording, replay

GROUPS = 2
SHARE = 20  # `make test` takes every twentieth operator, with one call for each dtype

NAMES = sorted(opinfo.entries())


def faults(name: str, most: int | None, tally: Tally) -> list[str]:
    """What differs in at most `most` calls per dtype of an operator."""
    problems = []
    for dtype in opinfo.dtypes_of(name):
        calls = list(opinfo.samples(name, dtype))
        for call in opinfo.spread(calls, len(calls) if most is None else most):
            try:
                call.run()
            except Exception:  # the database has samples that a build of torch cannot run
                continue
            try:
                run(name, call, tally)
            except ValueError as error:
                if "torch captures a wrong shape" not in str(error):  # refused at export
                    raise
            except (AssertionError, RuntimeError) as error:
                problems.append(f"{name} {dtype}: {error}")
    return problems


@pytest.mark.parametrize("group", range(GROUPS))
def test_share_equals_eager(group: int, sanitized: Path) -> None:
    tally, wrong = Tally(), []
    path = FOLDER / f"share{group}.bin"
    with recording(path) as recorder:
        for name in NAMES[::SHARE][group::GROUPS]:
            wrong += faults(name, 1, tally)
    assert not wrong, "\n\n".join(wrong)
    assert recorder.calls > 100
    replay(path, sanitized)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_equals_eager(name: str, sanitized: Path) -> None:
    path = FOLDER / f"{name}.bin"
    with recording(path) as recorder:
        wrong = faults(name, None, Tally())
    assert not wrong, "\n\n".join(wrong)
    if recorder.calls:
        replay(path, sanitized)
