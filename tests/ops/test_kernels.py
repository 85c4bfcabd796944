"""Runs the case table: every kernel against eager PyTorch, on every instruction set."""

from __future__ import annotations

import pytest

from .harness import ErrorCase, Maker, OpCases, all_errors, all_ops, check, listed, native
from .recording import FOLDER, recording, replay

OPS = all_ops()
ERRORS = all_errors()


@pytest.mark.parametrize("cases", OPS, ids=lambda cases: cases.op)
def test_equals_eager(cases: OpCases) -> None:
    count = 0
    for sample in cases.samples(Maker(cases.op)):
        check(cases, sample, native().kernel_isas())
        count += 1
    assert count > 0, f"{cases.op} has no samples"


@pytest.mark.full
def test_is_clean_under_sanitizers() -> None:
    path = FOLDER / "cases.bin"
    with recording(path) as recorder:
        for cases in OPS:
            for sample in cases.samples(Maker(cases.op)):
                check(cases, sample, ["plain"])
    assert recorder.calls > len(OPS)
    replay(path)


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: f"{case.op}-{case.message}")
def test_refuses(case: ErrorCase) -> None:
    with pytest.raises(RuntimeError, match=case.message):
        native().run_kernel(case.op, case.args(Maker(case.op)))


def test_every_kernel_has_cases() -> None:
    # Scalars in and out: test_prim_ops.py.
    elsewhere = {op for op in listed() if "::sym_" in op or op.startswith("executorch_prim::")}
    elsewhere.add("aten::_local_scalar_dense")
    elsewhere |= {op for op in listed() if op.startswith("aten::_assert_")}
    covered = {cases.op for cases in OPS}
    assert set(listed()) - elsewhere - covered == set()
    assert len(OPS) == len(covered), "an operator is in the table twice"


def test_the_table_holds_what_the_list_holds() -> None:
    assert set(listed()) == set(native().kernel_signatures())
