"""Kernels that work in scratch memory give the same with little of it, or none."""

from __future__ import annotations

import pytest

from .cases_attention import OPS as ATTENTION
from .cases_backward import OPS as GRADIENTS
from .cases_conv import OPS as CONVOLUTIONS
from .cases_matmul import OPS as PRODUCTS
from .cases_sorting import OPS as ORDERS
from .cases_unique import OPS as UNIQUE
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
