"""ExecuTorch's own operator suite (``backends/test/suite/operators``) through our path: every case
that eager runs and torch.export captures gives eager's results.

ExecuTorch's process writes the cases as files; ``python -m benchmarks op_coverage`` counts how many
of them its own portable library passes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from benchmarks import op_coverage
from torch.utils import _pytree as pytree

import rushlight
from rushlight.errors import ExportError, RunError

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
    program = torch.export.load(path)
    args, kwargs = program.example_inputs
    with torch.no_grad():
        module = program.module()
        expected, again = (
            pytree.tree_leaves(module(*pytree.tree_map(torch.clone, args), **kwargs))
            for _ in range(2)
        )
    try:
        with rushlight.load(rushlight.export(program, verify=False).buffer) as loaded:
            got = loaded(*args, **kwargs)
    except (ExportError, RunError) as error:
        return f"{path.stem}: {error}"
    for g, e, a in zip(pytree.tree_leaves(got), expected, again, strict=True):
        random = not torch.allclose(e, a, equal_nan=True)  # an LSTM with dropout
        same = random or np.allclose(g, e.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)
        if g.dtype != e.dtype or g.shape != e.shape or not same:
            return f"{path.stem}: another result than eager's"
    return None


@pytest.mark.parametrize("group", range(GROUPS))
def test_share_equals_eager(group: int, cases: list[Path]) -> None:
    assert [w for path in cases[::SHARE][group::GROUPS] if (w := fault(path))] == []


@pytest.mark.full
@pytest.mark.parametrize("group", range(4 * GROUPS))
def test_equals_eager(group: int, cases: list[Path]) -> None:
    assert [w for path in cases[group :: 4 * GROUPS] if (w := fault(path))] == []
