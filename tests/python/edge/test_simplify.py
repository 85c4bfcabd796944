"""simplify: selections that a constant mask decides are dropped."""

import pytest
import torch
import torch.nn.functional as F
from graphs import core, operators, run
from pass_text import text, traced

from rushlight.edge.constants import Constants
from rushlight.edge.passes.constant_fold import constant_fold
from rushlight.edge.passes.remove_noops import remove_noops
from rushlight.edge.passes.scalar_to_tensor import scalar_to_tensor
from rushlight.edge.passes.simplify import simplify
from rushlight.ir.rewrite import remove_dead

_LOWEST = torch.finfo(torch.float32).min


def _simplified(function, *args):  # type: ignore[no-untyped-def]
    program = core(function, *args)
    remove_noops(program.graph)
    constants = Constants(program)
    scalar_to_tensor(constants)
    constant_fold(constants)
    return program, simplify(constants)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_selection_under_a_mask_of_one_value_goes(chosen: bool) -> None:
    def model(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.where(mask, x.sin(), x.cos())

    program = traced(model, torch.ones(2, 3), mask=torch.full((2, 3), chosen))
    assert simplify(Constants(program)) == 1
    remove_dead(program.graph)
    expected = """
x: float32[2, 3]
mask: bool[2, 3] = CHOSEN
%1: float32[2, 3] = FUNCTION(x)
return [%1]
"""
    expected = expected.replace("CHOSEN", str([[chosen] * 3] * 2))
    assert text(program) == expected.replace("FUNCTION", "sin" if chosen else "cos").lstrip()


def test_a_selection_that_broadcasts_stays() -> None:
    program = traced(
        lambda x, mask: torch.where(mask, x, x.sum()), torch.ones(2), mask=torch.zeros(2) > 0
    )
    assert simplify(Constants(program)) == 0


def test_a_causal_mask_keeps_one_selection() -> None:
    def model(q: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)

    q = torch.randn(1, 2, 5, 4)
    program, _ = _simplified(model, q)
    assert operators(program.graph).count("where.self") == 1
    torch.testing.assert_close(run(program, q)[0], model(q))


def test_an_explicit_constant_causal_mask_keeps_one_selection() -> None:
    def model(q: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(5, 5).tril() > 0)

    q = torch.randn(1, 2, 5, 4)
    program, dropped = _simplified(model, q)
    assert dropped == 1
    torch.testing.assert_close(run(program, q)[0], model(q))


def test_a_mask_with_an_empty_row_keeps_both() -> None:
    def model(q: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(5, 5).triu(1) > 0)

    q = torch.randn(1, 2, 5, 4)
    program, dropped = _simplified(model, q)
    assert dropped == 0
    torch.testing.assert_close(run(program, q)[0], model(q))


@pytest.mark.parametrize(("blocked_score", "blocked_weight"), [(-1.0, 0.0), (_LOWEST, 5.0)])
def test_a_selection_that_changes_the_weights_stays(
    blocked_score: float, blocked_weight: float
) -> None:
    mask = torch.ones(5, 5).tril() > 0

    def model(x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(torch.where(mask, x, blocked_score), -1)
        return torch.where(~mask, blocked_weight, weights)

    x = torch.randn(5, 5)
    program, _ = _simplified(model, x)
    torch.testing.assert_close(run(program, x)[0], model(x))
