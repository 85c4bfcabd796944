"""Layers at the shapes of real models, for `kernels.py --size models`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.kernel_cases import Case, Inputs

# rows, columns, summed
LINEAR = [
    (128, 384, 384, "MiniLM attention"),
    (128, 1536, 384, "MiniLM up"),
    (128, 384, 1536, "MiniLM down"),
    (197, 768, 768, "ViT attention"),
    (197, 3072, 768, "ViT up"),
    (128, 768, 3072, "GPT-2 down"),
    (1, 768, 768, "one token"),
    (1, 50257, 768, "GPT-2 head, one token"),
    (4, 768, 768, "four tokens"),
    (16, 768, 768, "sixteen tokens"),
    (1, 1000, 2048, "ResNet head"),
]

# batch, rows, columns, summed
BATCHED = [
    (12, 128, 128, 32, "MiniLM scores"),
    (12, 128, 32, 128, "MiniLM values"),
    (12, 197, 197, 64, "ViT scores"),
    (12, 197, 64, 197, "ViT values"),
    (12, 1, 128, 64, "one token"),
]

# channels in, out, size, kernel, stride, groups
CONVOLUTIONS = [
    (3, 64, 224, 7, 2, 1, "ResNet stem"),
    (64, 64, 56, 1, 1, 1, "ResNet"),
    (64, 64, 56, 3, 1, 1, "ResNet"),
    (64, 256, 56, 1, 1, 1, "ResNet"),
    (128, 128, 56, 3, 2, 1, "ResNet"),
    (128, 128, 28, 3, 1, 1, "ResNet"),
    (256, 512, 56, 1, 2, 1, "ResNet"),
    (256, 256, 14, 3, 1, 1, "ResNet"),
    (1024, 256, 14, 1, 1, 1, "ResNet"),
    (512, 512, 7, 3, 1, 1, "ResNet"),
    (512, 2048, 7, 1, 1, 1, "ResNet"),
    (3, 32, 224, 3, 2, 1, "MobileNet stem"),
    (32, 32, 112, 3, 1, 32, "MobileNet depthwise"),
    (32, 16, 112, 1, 1, 1, "MobileNet"),
    (16, 96, 112, 1, 1, 1, "MobileNet"),
    (96, 96, 112, 3, 2, 96, "MobileNet depthwise"),
    (144, 144, 56, 3, 1, 144, "MobileNet depthwise"),
    (144, 24, 56, 1, 1, 1, "MobileNet"),
    (576, 576, 14, 3, 1, 576, "MobileNet depthwise"),
    (960, 960, 7, 3, 1, 960, "MobileNet depthwise"),
    (320, 1280, 7, 1, 1, 1, "MobileNet"),
    (3, 768, 224, 16, 16, 1, "ViT patches"),
]


def model_cases() -> Iterator[Case]:
    """Linear layers and attention of transformers; convolutions of ResNet-50, MobileNetV2, ViT."""
    for m, n, k, note in LINEAR:

        def linear(t: Inputs, m: int = m, n: int = n, k: int = k) -> tuple[Any, ...]:
            return t.tensor(m, k), t.tensor(n, k), t.tensor(n)

        yield Case("aten::linear.out", linear, f"{m}x{n}x{k} {note}")
    for batch, m, n, k, note in BATCHED:

        def bmm(
            t: Inputs, batch: int = batch, m: int = m, n: int = n, k: int = k
        ) -> tuple[Any, ...]:
            return t.tensor(batch, m, k), t.tensor(batch, k, n)

        yield Case("aten::bmm.out", bmm, f"{batch}x{m}x{n}x{k} {note}")
    for layer in CONVOLUTIONS:
        c, o, size, kernel, stride, _, note = layer
        text = f"{c}->{o} {size}x{size} k{kernel} s{stride} {note}"
        yield Case("aten::convolution.out", lambda t, layer=layer: convolution(t, layer), text)
    yield Case(
        "aten::convolution.out",
        lambda t: (
            *(t.tensor(1, 128, 28, 28), t.tensor(128, 64, 2, 2), t.tensor(64)),
            *([2, 2], [0, 0], [1, 1], True, [0, 0], 1),
        ),
        "transposed k2 s2",
    )
    yield Case(
        "aten::convolution.out",
        lambda t: (
            *(t.tensor(1, 80, 3000), t.tensor(384, 80, 3), t.tensor(384)),
            *([1], [1], [1], False, [0], 1),
        ),
        "1-d 80->384 k3",
    )


def convolution(t: Inputs, layer: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a layer of CONVOLUTIONS."""
    c, o, size, kernel, stride, groups, _ = layer
    padding = [0 if stride == kernel else kernel // 2] * 2
    x, weight = t.tensor(1, c, size, size), t.tensor(o, c // groups, kernel, kernel)
    return x, weight, t.tensor(o), [stride] * 2, padding, [1, 1], False, [0, 0], groups
