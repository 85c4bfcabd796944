"""The engine's calls on bytes, which patterns put into a part's graph.

They stand for nodes and are never run. Bytes are uint8 tensors; the numbers that they stand for
follow from a `Quantization`, an argument of the calls that need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.fx import Node

from rushlight.schema.cpu_engine import QuantizedBinaryKind

if TYPE_CHECKING:
    from rushlight.backends.cpu.integers.facts import Quantization
    from rushlight.backends.cpu.integers.pack import Sums


@dataclass(frozen=True)
class Window:
    """The window of a convolution or pool; each pair is for rows and columns.

    Attributes:
        kernel, stride, dilation: two numbers each.
        padding: top, left, bottom, right.
    """

    kernel: list[int]
    stride: list[int]
    padding: list[int]
    dilation: list[int]


def quantize(x: Node, to: Quantization) -> Any:
    """Float32 as bytes."""


def dequantize(x: Node, quantization: Quantization) -> Any:
    """Bytes as float32."""


def flip(x: Node) -> Any:
    """Int8 as bytes whose zero point is 128 more, or back."""


def lookup(x: Node, table: Node) -> Any:
    """Each byte replaced by its entry in a constant table of 256 bytes."""


def product(
    x: Node,
    weight: Node,
    sums: Sums,
    to: Quantization | None,
    *,
    residual: Node | None = None,
    pair: Pair | None = None,
) -> Any:
    """A matrix product of bytes [..., depth] with int8 weights; float32 if `to` is None.

    With a residual, which has the result's sizes: `binary` of the result and the residual.
    """


def convolution(
    x: Node,
    weight: Node,
    sums: Sums,
    to: Quantization | None,
    window: Window,
    groups: int,
    outside: int,
    *,
    residual: Node | None = None,
    pair: Pair | None = None,
) -> Any:
    """A convolution of bytes [N, C, H, W], padded with the byte `outside`.

    A residual is added as by `product`.
    """


def quantize_rows(x: Node) -> Any:
    """Rows of float32 as bytes, with a scale and zero point for each row."""


def dynamic_product(rows: Node, weight: Node, weights: Any, bias: Node | None) -> Any:
    """A product of rows that are quantised at run time and weights of 8 or 4 bits; float32.

    `rows` is a call of `quantize_rows` or `fake_quantize_groups`.
    """


def weight_only_product(x: Node, weight: Node, weights: Any, bias: Node | None) -> Any:
    """A product of float32 with weights of 8 or 4 bits, each times its scale; float32."""


def recurrent(target: Any, weights: Any, args: dict[str, Any]) -> Any:
    """Recurrent layers with weights of 8 bits and rows that are quantised at run time; float32.

    Args:
        target: the operator that they are in torch.
        weights: the quantised weights of all layers.
        args: its arguments by name, with the integers for weights.
    """


@dataclass(frozen=True)
class Pair:
    """How the bytes of a binary call's operands and result stand for numbers."""

    kind: QuantizedBinaryKind
    a: Quantization
    b: Quantization
    to: Quantization


def binary(a: Node, b: Node, pair: Pair) -> Any:
    """A sum, difference or product of bytes, which are broadcast."""


@dataclass(frozen=True)
class Pool:
    """A pool of bytes.

    Attributes:
        window: its window.
        source, to: how an average reads its bytes and writes the result's; None for a maximum.
        count_padding: whether an average counts the elements outside of the image, too.
        divisor: what an average divides by instead of the count, if not 0.
    """

    window: Window
    source: Quantization | None = None
    to: Quantization | None = None
    count_padding: bool = False
    divisor: int = 0


def pool(x: Node, settings: Pool) -> Any:
    """A maximum or average over windows of images [N, C, H, W]."""
