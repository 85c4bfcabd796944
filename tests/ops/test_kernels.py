"""Runs the case table: every kernel against eager PyTorch, on every instruction set."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rushlight.ir.kernels import manifest

from .dtypes import DTYPES, Probe
from .harness import (
    ErrorCase,
    Maker,
    OpCases,
    all_errors,
    all_ops,
    check,
    clone_all,
    instruction_sets,
    is_written,
    listed,
    native,
    out_schema,
    same_bits,
)
from .recording import FOLDER, recording, replay

OPS = all_ops()
ERRORS = all_errors()
# That a matrix is singular shows in its factor.
FACTORISATIONS = ("aten::linalg_cholesky_ex.L", "aten::linalg_lu_factor_ex.out")
GROUPS = 8


@pytest.mark.parametrize("cases", OPS, ids=lambda cases: cases.op)
def test_equals_eager(cases: OpCases) -> None:
    count = 0
    for sample in cases.samples(Maker(cases.op)):
        check(cases, sample, instruction_sets())
        count += 1
    assert count > 0, f"{cases.op} has no samples"


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # of conversions from complex numbers
@pytest.mark.parametrize("group", range(GROUPS))
def test_is_clean_under_sanitizers(group: int, sanitized: Path) -> None:
    """The whole table, what it says is refused, and every dtype for every argument."""
    path = FOLDER / f"cases{group}.bin"
    with recording(path) as recorder:
        for cases in OPS[group::GROUPS]:
            for sample in cases.samples(Maker(cases.op)):
                check(cases, sample, ["plain"])
            kernel = manifest().find(cases.op)
            assert kernel is not None
            probe = Probe(cases, kernel)
            for argument in probe.inputs or probe.outs:
                for dtype in DTYPES:
                    probe.refusals(argument, dtype)
        for case in ERRORS[group::GROUPS]:
            with pytest.raises(RuntimeError):
                native().run_kernel(case.op, case.args(Maker(case.op)))
    assert recorder.calls > (len(OPS) + len(ERRORS)) // GROUPS
    replay(path, sanitized)


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: f"{case.op}-{case.message}")
def test_refuses_and_writes_nothing(case: ErrorCase) -> None:
    """Neither what is written in place, which may be a model's state, nor a result, unless the
    fault is one that only computing it finds."""
    args = case.args(Maker(case.op))
    before = clone_all(args)
    with pytest.raises(RuntimeError, match=case.message):
        native().run_kernel(case.op, args)
    for argument, b, a in zip(out_schema(case.op).arguments, before, args, strict=False):
        checked = not argument.is_out or case.op not in FACTORISATIONS
        if is_written(argument) and checked and isinstance(b, torch.Tensor):
            assert same_bits(b, a), f"{argument.name} was written"


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
