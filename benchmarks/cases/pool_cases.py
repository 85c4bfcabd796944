"""Timed calls of further convolutions, 3-d and adaptive pooling, gradients, bags and distances.

For `kernels.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from cases.kernel_cases import Case, Inputs, four

CUBE = ([2, 2, 2], [1, 1, 1], [1, 1, 1])
FLAT = ([2, 2], [2, 2], [0, 0])


def pooling() -> Iterator[Case]:
    """Windows that overlap, have uneven sizes, or are all of the volume."""
    yield Case("aten::avg_pool3d.out", lambda t: (t.volume, *CUBE))
    yield Case("aten::max_pool3d_with_indices.out", lambda t: (t.volume, *CUBE))
    for size in (1, 7):
        note = f"to {size}"
        yield Case("aten::_adaptive_avg_pool3d.out", lambda t, s=size: (t.volume, [s] * 3), note)
        yield Case("aten::adaptive_max_pool2d.out", lambda t, s=size: (t.image, [s] * 2), note)
        yield Case("aten::adaptive_max_pool3d.out", lambda t, s=size: (t.volume, [s] * 3), note)


def gradients() -> Iterator[Case]:
    """Gradients of pooling and convolution."""

    def halved(t: Inputs) -> torch.Tensor:
        return t.image[:, :, ::2, ::2].clone()

    yield Case("aten::_adaptive_avg_pool2d_backward.out", lambda t: (halved(t), t.image))
    yield Case(
        "aten::avg_pool2d_backward.grad_input",
        lambda t: (halved(t), t.image, *FLAT, False, True, None),
    )

    def of_max(t: Inputs) -> tuple[Any, ...]:
        dilation = [1, 1]
        _, places = torch.ops.aten.max_pool2d_with_indices(t.image, *FLAT, dilation)
        return halved(t), t.image, *FLAT, dilation, False, places

    yield Case("aten::max_pool2d_with_indices_backward.grad_input", of_max)
    for note in (*LAYERS, "depthwise", "depthwise channels-last"):

        def of_convolution(t: Inputs, note: str = note) -> tuple[Any, ...]:
            x, weight, _, *rest = layer(t, note)
            out = torch.ops.aten.convolution(x, weight, None, *rest)
            return torch.ones_like(out), x, weight, [out.shape[1]], *rest, [True] * 3

        yield Case("aten::convolution_backward.out", of_convolution, note)


# Notes of layers beside those of `kernel_cases.layers`.
LAYERS = (
    "",
    "channels-last",
    "grouped",
    "grouped channels-last",
    "strided",
    "1-d",
    "3-d",
    "transposed",
    "transposed strided",
    "transposed depthwise",
    "transposed depthwise strided",
)


def layer(t: Inputs, note: str) -> tuple[Any, ...]:
    """Arguments of a convolution of kernel size 3 with as many channels out as in."""
    x = t.image_last if "channels-last" in note else t.image
    dims = 2
    if note == "1-d":
        x, dims = t.tensor(1, x.shape[1], t.n // x.shape[1]), 1
    elif note == "3-d":
        x, dims = t.volume, 3
    channels = x.shape[1]
    groups = channels if "depthwise" in note else min(4, channels) if "grouped" in note else 1
    weight = t.tensor(channels, channels // groups, *[3] * dims)
    if "channels-last" in note:
        weight = weight.contiguous(memory_format=torch.channels_last)
    strides = [2 if "strided" in note else 1] * dims
    ones = [1] * dims
    return (
        x,
        weight,
        t.tensor(channels),
        strides,
        ones,
        ones,
        "transposed" in note,
        [0] * dims,
        groups,
    )


def convolutions() -> Iterator[Case]:
    """Layers that are not in `kernel_cases.layers`."""
    for note in LAYERS[2:]:
        yield Case("aten::convolution.out", lambda t, note=note: layer(t, note), note)


def bags_and_distances() -> Iterator[Case]:
    """Bags of four rows; distances of all pairs of rows; batch norm that trains."""
    for mode, note in enumerate(("sum", "mean", "max")):

        def bags(t: Inputs, mode: int = mode) -> tuple[Any, ...]:
            return t.x, t.index(t.rows, t.rows), torch.arange(0, t.rows, 4), False, mode

        yield Case("aten::_embedding_bag.out", bags, note)
        yield Case("aten::_embedding_bag_forward_only.out", bags, note)
    for p in (1.0, 2.0, 3.0):
        yield Case("aten::_cdist_forward.out", lambda t, p=p: (t.x, t.x, p, None), f"p={p:g}")
        yield Case("aten::_pdist_forward.out", lambda t, p=p: (t.x, p), f"p={p:g}")
    yield Case("aten::_native_batch_norm_legit.out", lambda t: (t.image, *four(t), True, 0.1, 1e-5))


def fractional() -> Iterator[Case]:
    """Half the size, from windows at random places."""
    for dims in (2, 3):

        def make(t: Inputs, dims: int = dims) -> tuple[Any, ...]:
            x = t.image if dims == 2 else t.volume
            sizes = [size // 2 for size in x.shape[2:]]
            kernel = [min(2, size) for size in sizes]
            return x, kernel, sizes, torch.full((1, x.shape[1], dims), 0.5, dtype=x.dtype)

        yield Case(f"aten::fractional_max_pool{dims}d.output", make)


def pool_cases() -> Iterator[Case]:
    """All of them."""
    yield from fractional()
    yield from convolutions()
    yield from pooling()
    yield from gradients()
    yield from bags_and_distances()
