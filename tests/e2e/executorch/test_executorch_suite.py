"""ExecuTorch's own operator suite (``backends/test/suite/operators``) through our path: every case
that eager runs and torch.export captures gives eager's results.

ExecuTorch's process writes the cases as files; ``python -m benchmarks op_coverage`` counts how many
of them its own portable library passes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from benchmarks import op_coverage

from ops.opinfo_path import program_outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

GROUPS = 8
SHARE = 8  # `make test` takes every eighth case


@pytest.fixture(scope="module")
def cases(executorch_python: Path) -> Iterator[list[Path]]:
    """The suite's files, written once."""
    yield op_coverage.suite_cases(executorch_python)


def fault(path: Path) -> str | None:
    """What is wrong about one case, or None."""
    outcome = program_outcome(torch.export.load(path))
    return None if outcome.kind == "passes" else f"{path.stem}: {outcome.kind}: {outcome.reason}"


@pytest.mark.parametrize("group", range(GROUPS))
def test_share_equals_eager(group: int, cases: list[Path]) -> None:
    assert [w for path in cases[::SHARE][group::GROUPS] if (w := fault(path))] == []


@pytest.mark.full
@pytest.mark.parametrize("group", range(4 * GROUPS))
def test_equals_eager(group: int, cases: list[Path]) -> None:
    assert [w for path in cases[group :: 4 * GROUPS] if (w := fault(path))] == []
