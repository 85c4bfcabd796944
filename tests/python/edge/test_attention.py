"""The decomposition of scaled_dot_product_attention equals eager, masked rows included."""

import math

import pytest
import torch
import torch.nn.functional as F
from graphs import core, operators, run


def _mask(kind: str) -> torch.Tensor | None:
    if kind == "none":
        return None
    mask = torch.rand(2, 1, 5, 7) > 0.4
    mask[0, 0, 2] = False  # a row that may see nothing
    if kind == "bool":
        return mask
    return torch.zeros(2, 1, 5, 7).masked_fill(~mask, -math.inf)


@pytest.mark.parametrize("kind", ["none", "bool", "float"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_masks(kind: str, scale: float | None) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 6)
    mask = _mask(kind)
    args = (q, k, v) if mask is None else (q, k, v, mask)

    def model(*args: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(*args, scale=scale)

    program = core(model, *args)
    assert "any.dim" not in operators(program.graph)
    torch.testing.assert_close(run(program, *args)[0], model(*args))


@pytest.mark.parametrize(("length", "keys"), [(5, 5), (3, 7), (7, 3)])
def test_causal(length: int, keys: int) -> None:
    q, k, v = torch.randn(1, 2, length, 4), torch.randn(1, 2, keys, 4), torch.randn(1, 2, keys, 4)

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    torch.testing.assert_close(run(core(model, q, k, v), q, k, v)[0], model(q, k, v))


def test_grouped_heads() -> None:
    q, k, v = torch.randn(1, 6, 5, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    torch.testing.assert_close(run(core(model, q, k, v), q, k, v)[0], model(q, k, v))
