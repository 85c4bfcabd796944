"""Views of attention are lowered whatever layout its decomposition has."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import rushlight as rl


class Merge(nn.Module):
    """Heads are merged as nanoGPT merges them: capture drops `contiguous()`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = [part.transpose(1, 2) for part in x.unbind(3)]
        y = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return y.transpose(1, 2).contiguous().view(x.shape[0], x.shape[1], -1)


class Branches(nn.Module):
    """The same inside a branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        merge = Merge()
        return torch.cond(x.sum() > 0, merge, lambda x: merge(-x), (x,))


@pytest.mark.parametrize("model", [Merge(), Branches()], ids=["merge", "branches"])
@pytest.mark.parametrize("times", [1, 2])
def test_heads_are_merged(model: nn.Module, times: int) -> None:
    x = torch.randn(2, 5, 4, 3, 8)
    exported = torch.export.export(model, (x,))
    for _ in range(times - 1):
        exported = torch.export.export(exported.module(), (x,))
    program = rl.to_edge(exported).to_executorch()
    np.testing.assert_allclose(
        rl.load(program.buffer)(x.numpy()), model(x).numpy(), rtol=1e-4, atol=1e-5
    )


def test_dynamic_lengths() -> None:
    x = torch.randn(1, 7, 4, 3, 8)
    length = torch.export.Dim("length", min=2, max=16)
    exported = torch.export.export(Merge(), (x,), dynamic_shapes=({1: length},))
    module = rl.load(rl.to_edge(exported).to_executorch().buffer)
    for size in (2, 16):
        x = torch.randn(1, size, 4, 3, 8)
        np.testing.assert_allclose(module(x.numpy()), Merge()(x).numpy(), rtol=1e-4, atol=1e-5)
