"""The types of tensors in GGUF files: how many elements a block has, and in how many bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorType:
    """A type of tensors.

    Attributes:
        name: as llama.cpp writes it.
        block: the elements of a block, which divides the rows.
        block_bytes: the bytes of a block.
    """

    name: str
    block: int
    block_bytes: int


TYPES = {
    0: TensorType("F32", 1, 4),
    1: TensorType("F16", 1, 2),
    2: TensorType("Q4_0", 32, 18),
    3: TensorType("Q4_1", 32, 20),
    6: TensorType("Q5_0", 32, 22),
    7: TensorType("Q5_1", 32, 24),
    8: TensorType("Q8_0", 32, 34),
    10: TensorType("Q2_K", 256, 84),
    11: TensorType("Q3_K", 256, 110),
    12: TensorType("Q4_K", 256, 144),
    13: TensorType("Q5_K", 256, 176),
    14: TensorType("Q6_K", 256, 210),
    30: TensorType("BF16", 1, 2),
}
"""The types that can be read, by their numbers in files."""

OTHERS = dict(
    zip(
        (9, 15, *range(16, 24), *range(24, 30), 34, 35, 39, 40, 41),
        "Q8_1 Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S IQ4_XS I8 I16 I32 I64 F64 "
        "IQ1_M TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0".split(),
        strict=True,
    )
)
"""The names of types that are refused."""
