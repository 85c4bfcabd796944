"""Attention and root-mean-square norm kept whole: from the model to the run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.edge import EdgeCompileConfig
from rushlight.inspect import report_of

ATTENTION = torch.ops.aten.scaled_dot_product_attention.default
RMS_NORM = torch.ops.aten.rms_norm.default


class Attention(nn.Module):
    """Heads of one projection, causal or with a mask, behind a norm."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.causal = causal
        self.norm = nn.RMSNorm(24)
        self.project = nn.Linear(24, 72)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        tokens = self.project(self.norm(x)).unflatten(-1, (3, 4, 6)).transpose(1, 3)
        q, k, v = tokens.unbind(2)
        allowed = None if self.causal else mask
        out = nn.functional.scaled_dot_product_attention(q, k, v, allowed, is_causal=self.causal)
        return out.transpose(1, 2).flatten(2)


def program_of(causal: bool, preserve: list[torch._ops.OpOverload]) -> bytes:
    model = Attention(causal)
    inputs = (torch.randn(2, 10, 24), torch.rand(10, 10) > 0.3)
    length = torch.export.Dim("length", min=2, max=64)
    shapes = {"x": {1: length}, "mask": {0: length, 1: length}}
    exported = torch.export.export(model, inputs, dynamic_shapes=shapes)
    config = EdgeCompileConfig(preserve_ops=preserve)
    return rl.to_edge(exported, compile_config=config).to_executorch().buffer


@pytest.mark.parametrize("causal", [False, True])
def test_whole_and_decomposed_equal_eager(causal: bool) -> None:
    whole = rl.load(program_of(causal, [ATTENTION, RMS_NORM]))
    decomposed = rl.load(program_of(causal, []))
    for length in (2, 10, 33):
        x, mask = torch.randn(2, length, 24), torch.rand(length, length) > 0.3
        with torch.no_grad():
            expected = Attention(causal)(x, mask)
        torch.testing.assert_close(whole(x, mask), expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(decomposed(x, mask), expected, rtol=1e-5, atol=1e-5)


def test_the_report_says_that_executorch_does_not_run_it() -> None:
    text = str(report_of(program_of(True, [ATTENTION, RMS_NORM])))
    assert "it has no kernel rushlight::scaled_dot_product_attention.out" in text
    assert "it has no kernel rushlight::rms_norm.out" in text
