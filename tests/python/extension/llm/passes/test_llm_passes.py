"""Passes over captured graphs: eager computes the same before and after."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from rushlight.extension.llm.passes.custom_attention import ReplaceSDPAWithCustomSDPAPass
from rushlight.extension.llm.passes.remove_transposes import RemoveRedundantTransposes

Function = Callable[[torch.Tensor], torch.Tensor]
aten = torch.ops.aten


class Calls(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x.transpose(1, 2).transpose(2, 1) + 1, 0),
        (lambda x: x.transpose(-1, -2).transpose(1, 2) + 1, 0),
        (lambda x: x.permute(1, 2, 0).permute(2, 0, 1) + 1, 0),
        (lambda x: x.permute(2, 1, 0).transpose(0, 2) + 1, 0),
        (lambda x: x.permute(1, 2, 0).permute(1, 2, 0) + 1, 2),  # a third of a turn, twice
        (lambda x: x.transpose(0, 1).transpose(1, 2) + 1, 2),
    ],
)
def test_transpositions_that_undo_each_other_are_removed(function: Function, left: int) -> None:
    x = torch.randn(2, 3, 4)
    module = torch.export.export(Calls(function), (x,)).module()
    made = RemoveRedundantTransposes()(module).graph_module
    turns = (aten.transpose.int, aten.permute.default)
    assert sum(node.target in turns for node in made.graph.nodes) == left
    torch.testing.assert_close(made(x), function(x))


@pytest.mark.parametrize("kind", ["none", "causal", "bool", "added", "four dimensions"])
def test_attention_becomes_the_operator_that_kernels_have(kind: str) -> None:
    x = torch.randn(1, 4, 6, 8)
    seen = torch.rand(6, 6) > 0.3
    seen.fill_diagonal_(True)
    masks = {"bool": seen, "added": torch.randn(6, 6), "four dimensions": seen.view(1, 1, 6, 6)}

    def attend(x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(
            x, x + 1, x - 1, attn_mask=masks.get(kind), is_causal=kind == "causal", scale=0.3
        )

    module = torch.export.export(Calls(attend), (x,)).module()
    made = ReplaceSDPAWithCustomSDPAPass()(module).graph_module
    targets = [node.target for node in made.graph.nodes]
    assert torch.ops.llama.custom_sdpa.default in targets
    assert aten.scaled_dot_product_attention.default not in targets
    torch.testing.assert_close(made(x), attend(x))


def test_masks_are_ignored_where_attention_is_causal() -> None:
    x = torch.randn(1, 2, 5, 8)

    def attend(x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(5, 5).tril() > 0)

    module = torch.export.export(Calls(attend), (x,)).module()
    made = ReplaceSDPAWithCustomSDPAPass(assume_causal_mask=True)(module).graph_module
    [call] = [n for n in made.graph.nodes if n.target == torch.ops.llama.custom_sdpa.default]
    assert (call.args[4], call.args[6]) == (None, True)
    torch.testing.assert_close(made(x), attend(x))


def test_attention_of_three_dimensions_stays() -> None:
    x = torch.randn(4, 6, 8)

    def attend(x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(x, x, x)

    module = torch.export.export(Calls(attend), (x,)).module()
    made = ReplaceSDPAWithCustomSDPAPass()(module).graph_module
    targets = [node.target for node in made.graph.nodes]
    assert torch.ops.llama.custom_sdpa.default not in targets
    torch.testing.assert_close(made(x), attend(x))
