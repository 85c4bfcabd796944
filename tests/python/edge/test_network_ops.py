"""Rules for operators of neural networks equal eager: batch norm, bilinear, gradients."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from graphs import core, operators, run

from rushlight.edge.decompositions import COMPLEX
from rushlight.edge.index_ops import INDEX_DECOMPOSITIONS
from rushlight.edge.linalg_ops import LINALG_DECOMPOSITIONS
from rushlight.edge.network_ops import NETWORK_DECOMPOSITIONS
from rushlight.edge.random_ops import RANDOM_DECOMPOSITIONS
from rushlight.edge.rules import RULES

aten = torch.ops.aten


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(4, 3, 5, 2), (6, 3)])
def test_batch_norm_gives_its_new_statistics(training: bool, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    args = (torch.randn(shape), torch.randn(3), torch.randn(3), torch.randn(3), torch.rand(3))

    def model(*args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out, _, _, mean, var = aten._native_batch_norm_legit_functional(*args, training, 0.3, 1e-3)
        return out, mean, var

    program = core(model, *args)
    kernel = "no_stats" if training else "no_training"
    assert any(kernel in name for name in operators(program.graph))
    torch.testing.assert_close(tuple(run(program, *args)), model(*args))


def test_batch_norm_with_update() -> None:
    torch.manual_seed(0)
    args = (torch.randn(4, 3, 5), torch.randn(3), torch.randn(3), torch.randn(3), torch.rand(3))

    def model(*args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(aten._batch_norm_with_update_functional(*args, 0.3, 1e-3))

    torch.testing.assert_close(tuple(run(core(model, *args), *args)), model(*args))


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_is_one_product(bias: bool) -> None:
    torch.manual_seed(0)
    args = [torch.randn(2, 6, 4), torch.randn(2, 6, 5), torch.randn(3, 4, 5)]
    if bias:
        args.append(torch.randn(3))
    program = core(F.bilinear, *args)
    assert operators(program.graph).count("mm.default") == 1
    torch.testing.assert_close(run(program, *args)[0], F.bilinear(*args))


def test_trilinear_of_any_form() -> None:
    torch.manual_seed(0)
    args = (torch.randn(2, 3), torch.randn(4, 3), torch.randn(2, 4))

    def model(*args: torch.Tensor) -> torch.Tensor:
        return aten._trilinear(*args, [1], [0], [2], [2])

    torch.testing.assert_close(run(core(model, *args), *args)[0], model(*args))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_one_gradient_of_a_convolution(wanted: int, transposed: bool) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(1, 4, 5, 5), torch.randn(4, 4, 3, 3)
    rest = ([2, 2], [1, 1], [1, 1], transposed, [0, 0], 1)
    grad = torch.randn_like(aten.convolution(x, weight, None, *rest))
    mask = [k == wanted for k in range(3)]

    def model(*args: torch.Tensor) -> torch.Tensor:
        gradients = aten.convolution_backward(*args, None if wanted < 2 else [4], *rest, mask)
        result: torch.Tensor = gradients[wanted]
        return result

    program = core(model, grad, x, weight)
    torch.testing.assert_close(run(program, grad, x, weight)[0], model(grad, x, weight))


def test_no_operator_has_two_rules() -> None:
    tables = (
        RULES,
        COMPLEX,
        NETWORK_DECOMPOSITIONS,
        RANDOM_DECOMPOSITIONS,
        INDEX_DECOMPOSITIONS,
        LINALG_DECOMPOSITIONS,
    )
    counts = Counter(target for table in tables for target in table)
    assert [str(target) for target, count in counts.items() if count > 1] == []
