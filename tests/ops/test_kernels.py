"""Runs the case table: every kernel against eager PyTorch, on every instruction set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from .harness import ErrorCase, Maker, OpCases, all_errors, all_ops, check, native

OPS_FILE = Path(__file__).resolve().parents[2] / "ops" / "ops.yaml"
OPS = all_ops()
ERRORS = all_errors()


@pytest.mark.parametrize("isa", native().kernel_isas())
@pytest.mark.parametrize("cases", OPS, ids=lambda cases: cases.op)
def test_equals_eager(cases: OpCases, isa: str) -> None:
    count = 0
    for sample in cases.samples(Maker(cases.op)):
        check(cases, sample, isa)
        count += 1
    assert count > 0, f"{cases.op} has no samples"


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: f"{case.op}-{case.message}")
def test_refuses(case: ErrorCase) -> None:
    with pytest.raises(RuntimeError, match=case.message):
        native().run_kernel(case.op, case.args(Maker(case.op)))


def test_every_kernel_has_cases() -> None:
    rows = yaml.safe_load(OPS_FILE.read_text(encoding="utf-8"))
    # Scalars only, in and out: tests/ops/test_prim_ops.py.
    listed = {r["op"] for r in rows if not re.match("executorch_prim::|aten::sym_", r["op"])}
    listed.discard("aten::_local_scalar_dense")
    covered = {cases.op for cases in OPS}
    assert listed - covered == set()
    assert len(OPS) == len(covered), "an operator is in the table twice"


def test_the_table_holds_what_the_list_holds() -> None:
    rows = yaml.safe_load(OPS_FILE.read_text(encoding="utf-8"))
    assert {r["op"] for r in rows} == set(native().kernel_signatures())
