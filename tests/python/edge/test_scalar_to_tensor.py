"""scalar_to_tensor: numbers become 0-d constants of the dtype that promotion gives."""

import pytest
import torch
from expecttest import assert_expected_inline
from graphs import run
from pass_text import text, traced

from rushlight.edge.constants import Constants
from rushlight.edge.passes.scalar_to_tensor import scalar_to_tensor


@pytest.mark.parametrize(
    ("dtype", "scalar", "wanted"),
    [
        (torch.float32, 2, torch.float32),
        (torch.float16, 2.5, torch.float16),
        (torch.int32, 2, torch.int32),
        (torch.int32, 2.5, torch.float32),
        (torch.bool, 2, torch.int64),
    ],
)
def test_a_number_takes_the_dtype_of_the_result(
    dtype: torch.dtype, scalar: float, wanted: torch.dtype
) -> None:
    x = torch.ones(3).to(dtype)
    program = traced(lambda x: x * scalar, x)
    constants = Constants(program)
    scalar_to_tensor(constants)
    (added,) = constants.nodes()
    assert constants.value(added).dtype == wanted
    assert constants.value(added).dim() == 0
    result = run(program, x)[0]
    assert result.dtype == (x * scalar).dtype
    assert torch.equal(result, x * scalar)


def test_equal_numbers_are_one_constant() -> None:
    program = traced(lambda x: (x + 2.0) * 2.0 - 3.0, torch.ones(3))
    scalar_to_tensor(Constants(program))
    assert_expected_inline(
        text(program),
        """\
c0: float32[] = 3
c1: float32[] = 2
x: float32[3]
%1: float32[3] = add.Tensor(x, c1)
%2: float32[3] = mul.Tensor(%1, c1)
%3: float32[3] = sub.Tensor(%2, c0)
return [%3]
""",
    )


def test_a_symbolic_number_becomes_a_scalar_tensor() -> None:
    program = traced(lambda x: x * x.shape[0], torch.randn(3, 4), dynamic=True)
    scalar_to_tensor(Constants(program))
    assert_expected_inline(
        text(program),
        """\
x: float32[s0, s1]
%1: SymInt = sym_size.int(x, 0)
%2: float32[] = scalar_tensor(%1, dtype=float32)
%3: float32[s0, s1] = mul.Tensor(x, %2)
return [%3]
""",
    )
    x = torch.randn(5, 4)
    assert torch.equal(run(program, x)[0], x * 5)
