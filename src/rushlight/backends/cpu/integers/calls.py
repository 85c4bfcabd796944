"""The engine's calls on bytes, as a part's graph has them once its patterns are found.

They stand for steps and are never run. Bytes are uint8 tensors; what they stand for is an argument
of the calls that need it.
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
    """What a convolution or pool looks at; each pair is of rows and columns.

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


def dequantize(x: Node, given: Quantization) -> Any:
    """Bytes as float32."""


def flip(x: Node) -> Any:
    """Int8 as bytes whose zero point is 128 more, or back."""


def lookup(x: Node, table: Node) -> Any:
    """Each byte replaced by what a constant of 256 bytes says."""


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

    With a residual of the result's sizes: what `binary` makes of the result and of that.
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
    """A convolution of bytes [N, C, H, W], around which lies the byte `outside`.

    A residual is as of a product.
    """


def quantize_rows(x: Node) -> Any:
    """Rows of float32 as bytes, with a scale and zero point for each row."""


def dynamic_product(rows: Node, weight: Node, weights: Any, bias: Node | None) -> Any:
    """A product of what `quantize_rows` made with weights of 8 or 4 bits; float32."""


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
    """What the operands of a binary call and its result stand for."""

    kind: QuantizedBinaryKind
    a: Quantization
    b: Quantization
    to: Quantization


def binary(a: Node, b: Node, pair: Pair) -> Any:
    """A sum, difference or product of bytes, which are repeated as elementwise operators do."""


@dataclass(frozen=True)
class Pool:
    """A pool of bytes.

    Attributes:
        window: what it looks at.
        given, to: of an average: what its bytes and the result's stand for; None of a maximum.
        count_padding: whether an average divides by the elements outside of the image, too.
        divisor: of averages, if not 0.
    """

    window: Window
    given: Quantization | None = None
    to: Quantization | None = None
    count_padding: bool = False
    divisor: int = 0


def pool(x: Node, of: Pool) -> Any:
    """A maximum or average over windows of images [N, C, H, W]."""
