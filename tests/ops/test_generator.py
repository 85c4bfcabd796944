"""Random kernels and the generator of their call."""

from __future__ import annotations

import pytest
import torch

from .cases.random.cases_random import OPS
from .harness import Maker, OpCases, as_list, bind, native, native_argument, out_schema


@pytest.mark.parametrize("cases", OPS, ids=lambda cases: cases.op)
def test_without_a_generator_a_kernel_says_what_to_do(cases: OpCases) -> None:
    sample = next(iter(cases.samples(Maker(cases.op))))
    if cases.op == "aten::native_dropout.out":
        sample.args = (*sample.args[:2], True)
    assert cases.reference is not None
    outs = as_list(cases.reference(*sample.args, **sample.kwargs))
    arguments = [native_argument(v) for v in bind(out_schema(cases.op), sample)] + outs
    with pytest.raises(RuntimeError, match=r"no generator .* set MethodOptions::generator"):
        native().run_kernel(cases.op, arguments, seed=None)


def test_the_low_half_of_a_seed_counts() -> None:
    draws = []
    for seed in (7, 7 + 2**32, 8):
        out = torch.zeros(4)
        native().run_kernel("aten::rand.out", [[4], out], seed=seed)
        draws.append(out)
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
