"""XNNPACK's averages of integers: halves become even after the zero point is added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from xnnpack_quantized import Quantizer

pytestmark = pytest.mark.interop


class Means(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).mean((2, 3), keepdim=True)


@pytest.mark.parametrize("size", [3, 5, 6])
def test_halves_are_rounded_as_by_xnnpack(executorch: Any, tmp_path: Path, size: int) -> None:
    """About 1 or 2 % of these averages of 100, 64 and 49 integers are halves or next to one."""
    peer = Quantizer(executorch, tmp_path)
    x = torch.randn(64, 3, 12, 12)
    peer.agree(peer.quantized(Means(size), (x,)), [x])
