"""Kernels that work in scratch memory give the same with little of it, or none."""

from __future__ import annotations

import pytest

from .cases.cases_backward import OPS as GRADIENTS
from .cases.convolution.cases_conv import OPS as CONVOLUTIONS
from .cases.linalg.cases_attention import OPS as ATTENTION
from .cases.linalg.cases_matmul import OPS as PRODUCTS
from .cases.sorting.cases_sorting import OPS as ORDERS
from .cases.sorting.cases_unique import OPS as UNIQUE
from .harness import Maker, OpCases, check, instruction_sets

SORTS = [cases for cases in ORDERS if cases.op.startswith("aten::sort.")]


@pytest.mark.parametrize("scratch", [0, 20_000])
@pytest.mark.parametrize(
    "cases",
    PRODUCTS + CONVOLUTIONS + ATTENTION + GRADIENTS + SORTS + UNIQUE,
    ids=lambda cases: cases.op,
)
def test_equals_eager_with_little_scratch(cases: OpCases, scratch: int) -> None:
    for sample in cases.samples(Maker(cases.op)):
        check(cases, sample, instruction_sets(), scratch)
