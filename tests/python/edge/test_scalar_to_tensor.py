"""scalar_to_tensor: numbers become 0-d constants of the dtype that promotion gives."""

import pytest
import torch
from graphs import core, run

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
    program = core(lambda x: x * scalar, x)
    constants = Constants(program)
    scalar_to_tensor(constants)
    (added,) = constants.nodes()
    assert constants.value(added).dtype == wanted
    assert constants.value(added).dim() == 0
    result = run(program, x)[0]
    assert result.dtype == (x * scalar).dtype
    assert torch.equal(result, x * scalar)


def test_equal_numbers_are_one_constant() -> None:
    program = core(lambda x: (x + 2.0) * 2.0 - 3.0, torch.ones(3))
    constants = Constants(program)
    scalar_to_tensor(constants)
    assert sorted(constants.value(n).item() for n in constants.nodes()) == [2.0, 3.0]


def test_a_symbolic_number_becomes_a_scalar_tensor() -> None:
    class Scale(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.shape[0]

    from rushlight.edge.to_edge import to_core_aten

    batch = torch.export.Dim("batch", min=2, max=9)
    program = to_core_aten(
        torch.export.export(Scale(), (torch.randn(3, 4),), dynamic_shapes={"x": {0: batch}})
    )
    scalar_to_tensor(Constants(program))
    targets = [n.target for n in program.graph.nodes]
    assert torch.ops.aten.scalar_tensor.default in targets
    x = torch.randn(5, 4)
    assert torch.equal(run(program, x)[0], x * 5)
