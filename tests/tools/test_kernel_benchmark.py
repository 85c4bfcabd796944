"""The benchmark of kernels leaves none out."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import kernels  # noqa: E402
from cases import kernel_cases  # noqa: E402


def test_every_kernel_is_timed_or_has_a_reason_not_to_be() -> None:
    assert kernels.without_case() == []


def test_every_reason_is_needed() -> None:
    timed = {case.op for case in kernels.sized_cases()}
    untimed = [op for op in kernels.harness.listed() if op not in timed]
    for prefix in kernel_cases.UNTIMED:
        assert any(op.startswith(prefix) for op in untimed), prefix


def test_every_case_runs_at_the_smallest_size_in_some_dtype() -> None:
    for case in kernels.sized_cases():
        runs = 0
        for dtype in (torch.float32, torch.int64, torch.bool):
            try:
                call = kernels.Call(case, kernel_cases.Inputs(16, dtype))
                runs += call.native(None)(1) >= 0
            except kernels.EAGER_REFUSES:  # not a dtype of this operator
                continue
        assert runs > 0, f"{case.op} {case.note}"
