"""Graphs that matchers of subgraphs look for: resizing and attention in the Edge dialect."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule

from rushlight.backends.xnnpack.configs import get_xnnpack_edge_compile_config
from rushlight.exir.manager import to_edge

_BATCH, _HEADS, _ROWS, _WIDTH = 8, 16, 32, 64


class _Resize(torch.nn.Module):
    def __init__(self, align_corners: bool) -> None:
        super().__init__()
        self.align_corners = align_corners

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=self.align_corners)


class _Attention(torch.nn.Module):
    def forward(self, q: Any, k: Any, v: Any, mask: Any) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@cache
def resizing() -> dict[GraphModule, bool]:
    """Graphs that resize images bilinearly, each with its `align_corners`.

    The images are float32[1, 3, 4, 4]. Both spellings of memory formats are there.
    """
    return {
        _edge(_Resize(align_corners), (torch.randn(1, 3, 4, 4),), skip_dim_order): align_corners
        for align_corners in (True, False)
        for skip_dim_order in (True, False)
    }


def resizing_graphs() -> list[GraphModule]:
    """The graphs of `resizing`."""
    return list(resizing())


@cache
def attention_graphs() -> list[GraphModule]:
    """Graphs of attention with a mask, in float32 and float16.

    Queries, keys and values are [8, 16, 32, 64], the mask is [32, 32].
    """
    sizes = [(_BATCH, _HEADS, _ROWS, _WIDTH)] * 3 + [(_ROWS, _ROWS)]
    return [
        _edge(_Attention(), tuple(torch.zeros(size, dtype=dtype) for size in sizes), False)
        for dtype in (torch.float32, torch.float16)
    ]


def _edge(module: torch.nn.Module, args: tuple[torch.Tensor, ...], skip: bool) -> GraphModule:
    program = torch.export.export(module, args, strict=True)
    edge = to_edge(program, compile_config=get_xnnpack_edge_compile_config(skip_dim_order=skip))
    made: GraphModule = edge.exported_program().graph_module
    return made
