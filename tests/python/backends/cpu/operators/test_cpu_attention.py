"""The cpu backend: attention that a model writes out becomes the same node as torch's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cpu_models import Call, call, equal, lowered, operators_of
from torch import nn

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner

B, H, L, D = 2, 6, 9, 8
LOWEST = torch.finfo(torch.float32).min


def heads(n: int = H) -> torch.Tensor:
    return torch.randn(B, n, L, D)


def flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of all heads beside one another, as the projection behind them wants it."""
    return lambda *args: function(*args).transpose(1, 2).reshape(B, L, -1)


LOWER = torch.ones(L, L, dtype=torch.bool).tril()

SPELLINGS: dict[str, Callable[..., torch.Tensor]] = {
    "plain": lambda q, k, v, m: (q @ k.mT).softmax(-1) @ v,
    "divided": lambda q, k, v, m: (q @ k.mT / math.sqrt(D)).softmax(-1) @ v,
    "scaled query": lambda q, k, v, m: ((q * D**-0.5) @ k.mT).softmax(-1) @ v,
    "both scaled": lambda q, k, v, m: ((q * 0.6) @ (k * 0.6).mT).softmax(-1) @ v,
    "mask": lambda q, k, v, m: (q @ k.mT / 3 + m).softmax(-1) @ v,
    "mask before": lambda q, k, v, m: torch.softmax(m + torch.matmul(q, k.mT) * 0.3, 3) @ v,
    "filled": lambda q, k, v, m: (q @ k.mT / 3).masked_fill(~LOWER, -math.inf).softmax(-1) @ v,
    "filled with the least": lambda q, k, v, m: (
        (q @ k.mT / 3).masked_fill(~LOWER, LOWEST).softmax(-1) @ v
    ),
    "causal mask": lambda q, k, v, m: (
        (q @ k.mT / 3 + torch.where(LOWER, 0.0, LOWEST)).softmax(-1) @ v
    ),
    "casts": lambda q, k, v, m: (
        F.softmax((q @ k.mT / 3 + m).float(), -1, dtype=torch.float32).type_as(q) @ v
    ),
    "dropout": lambda q, k, v, m: F.dropout((q @ k.mT + m).softmax(-1), 0.1, training=False) @ v,
    "einsum": lambda q, k, v, m: torch.einsum(
        "bhij,bhjd->bhid", torch.einsum("bhid,bhjd->bhij", q, k).mul(0.2).softmax(-1), v
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name: str) -> None:
    inputs = [heads(), heads(), heads(), torch.randn(B, 1, L, L)]
    assert call(flat(SPELLINGS[name]), *inputs) == ["Attention"]


MASKS: dict[str, Callable[..., torch.Tensor]] = {
    "scaled mask": lambda q, k, v, m: ((q @ k.mT + m) * 0.3).softmax(-1) @ v,
    "condition": lambda q, k, v, m: torch.where(m > 0, q @ k.mT / 3, -1e9).softmax(-1) @ v,
    "turned": lambda q, k, v, m: torch.where(m > 0, LOWEST, q @ k.mT / 3).softmax(-1) @ v,
    "two": lambda q, k, v, m: (q @ k.mT / 3 + m).masked_fill(~LOWER, LOWEST).softmax(-1) @ v,
    "windows": lambda q, k, v, m: (
        ((q @ k.mT + m[:1, 0]).view(1, B, H, L, L) + m.view(1, B, 1, L, L))
        .view(B, H, L, L)
        .softmax(-1)
        @ v
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_that_are_computed(name: str) -> None:
    inputs = [heads(), heads(), heads(), torch.randn(B, 1, L, L)]
    assert call(flat(MASKS[name]), *inputs) == ["Elementwise", "Attention"]


def test_rows_in_which_all_is_masked() -> None:
    q, k, v, m = heads(), heads(), heads(), torch.randn(B, 1, L, L)
    m[:, :, 3] = -1  # of numbers, all weigh the same; of infinities there would be no sum

    def filled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT).masked_fill(m < 0, LOWEST).softmax(-1) @ v

    assert "Attention" in call(filled, q, k, v, m)


def test_other_ranks() -> None:
    def three(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        q, k, v = (x.reshape(B * H, L, D) for x in (q, k, v))
        weights = torch.bmm(q, k.transpose(1, 2)).view(B, H, L, L) + m
        weights = weights.view(B * H, L, L).softmax(-1)
        return torch.bmm(weights, v).view(B, H, L, D).transpose(1, 2).reshape(B, L, H * D)

    assert call(three, heads(), heads(), heads(), torch.randn(B, 1, L, L)) == ["Attention"]
    matrices = [torch.randn(L, D) for _ in range(3)]
    assert call(lambda q, k, v: (q @ k.t() * 0.5).softmax(-1) @ v, *matrices) == ["Attention"]
    q, k, v, m = (torch.randn(B, L, n) for n in (D, D, D, L))
    operators = call(lambda q, k, v, m: torch.baddbmm(m, q, k.mT).softmax(-1) @ v, q, k, v, m)
    assert operators == ["Attention", "Copy"]


def test_grouped_heads() -> None:
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT * 0.5).softmax(-1) @ v

    def repeated(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attention(q, *(x.repeat_interleave(3, 1) for x in (k, v)))

    def expanded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        k, v = (x[:, :, None].expand(B, 2, 3, L, D).reshape(B, 6, L, D) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v)

    def five(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attention(q.view(B, 2, 3, L, D), k[:, :, None], v[:, :, None]).view(B, H, L, D)

    for function in (repeated, expanded, five):
        assert call(flat(function), heads(), heads(2), heads(2)) == ["Attention"]
    assert call(flat(attention), heads(), heads(1), heads(1)) == ["Attention"]


def test_what_is_no_attention() -> None:
    q, k, v, m = heads(), heads(), heads(), torch.randn(B, 1, L, L)

    def returned(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        weights = (q @ k.mT).softmax(-1)
        return weights @ v, weights

    assert "Attention" not in call(returned, q, k, v)
    assert "Attention" not in call(lambda q, k, v: (q @ k.mT).softmax(-2) @ v, q, k, v)
    # A number that is not low enough leaves weights in rows in which all is masked.
    assert "Attention" not in call(
        lambda q, k, v, m: (q @ k.mT).masked_fill(m > 0, -10.0).softmax(-1) @ v, q, k, v, m
    )


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float"])
def test_as_torch_decomposes_it(mask: str) -> None:
    masks = {"bool": torch.rand(B, 1, L, L) > 0.3, "float": torch.randn(L, L)}.get(mask)
    model = Call(
        flat(
            lambda q, k, v: F.scaled_dot_product_attention(
                q, k, v, masks, is_causal=mask == "causal"
            )
        )
    )
    inputs = (heads(), heads(), heads())
    exported = torch.export.export(model, inputs).run_decompositions()
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    assert operators_of(edge) == ["Attention"]
    equal(rl.load(bytes(edge.to_executorch().buffer))(*inputs), model(*inputs))


def test_conditions_of_rows() -> None:
    x = torch.randn(3, 5, 7)
    call(lambda a: (a > 1.5).any(-1), x)
    call(lambda a: (a > -1.5).all(1, keepdim=True), x)
    call(lambda a: a + torch.full_like(a, 2.5), x)


class Plain(nn.Module):
    def __init__(self, model: nn.Module, **fixed: Any) -> None:
        super().__init__()
        self.model, self.fixed = model, fixed

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        options = {} if mask is None else {"attention_mask": mask}
        out: torch.Tensor = self.model(x, **options, **self.fixed)[0]
        return out


def transformer(name: str, attention: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    text = {"vocab_size": 100, "max_position_embeddings": 32}
    tokens = torch.randint(0, 100, (2, 16))
    settings: dict[str, Any] = {
        "Bert": {"hidden_size": 32, **sizes, **text},
        "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 100, "n_positions": 32},
        "ViT": {"image_size": 32, "patch_size": 8, "hidden_size": 32, **sizes},
        "Llama": {**sizes, **text, "hidden_size": 48, "num_attention_heads": 6}
        | {"num_key_value_heads": 2},
    }[name]
    config = getattr(transformers, f"{name}Config")(**settings, attn_implementation=attention)
    model = getattr(transformers, f"{name}Model")(config)
    if name == "ViT":
        return Plain(model), (torch.randn(1, 3, 32, 32),)
    if name == "Bert":
        padded = torch.ones(2, 16, dtype=torch.int64)
        padded[1, 12:] = 0
        return Plain(model), (tokens, padded)
    return Plain(model, use_cache=False), (tokens,)


@pytest.mark.parametrize("name", ["Bert", "GPT2", "ViT", "Llama"])
def test_transformers(name: str) -> None:
    counts = []
    for attention in ("eager", "sdpa"):
        model, args = transformer(name, attention)
        edge = lowered(model, *args)
        equal(rl.load(bytes(edge.to_executorch().buffer))(*args), model(*args), 2e-4)
        counts.append(operators_of(edge).count("Attention"))
        assert "Softmax" not in operators_of(edge)
    assert counts == [2, 2]
