"""Rotary embeddings of GGUF files, in the words of `transformers`."""

from __future__ import annotations

import math
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.llm.gguf.facts import Facts

FREQUENCIES, LONG, SHORT = (
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
)
TABLES = (FREQUENCIES, LONG, SHORT)
"""Tensors with a factor for each frequency, which it is divided by."""
_KINDS = ("none", "linear", "yarn", "longrope")


def rope_of(facts: Facts, width: int, context: int) -> dict[str, Any]:
    """The parameters of the rotary embedding.

    Args:
        facts: of the model.
        width: of a head.
        context: the greatest number of positions that the file gives.

    Raises:
        ExportError: a kind of scaling that is not supported, or a table of another size.
    """
    base: dict[str, Any] = {"rope_theta": facts.positive("rope.freq_base", 10000.0)}
    turned = facts.size("rope.dimension_count", width)
    if turned > width or turned % 2:
        raise ExportError(
            f"{facts.name}.rope.dimension_count of {facts.file.path} is {turned}, and heads have "
            f"{width} elements",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    if turned != width:
        base["partial_rotary_factor"] = turned / width
    kind = facts.text("rope.scaling.type", "none")
    # Files from before there were several kinds have this alone.
    factor = facts.positive("rope.scale_linear", 1.0)
    factor = facts.positive("rope.scaling.factor", factor)
    if kind == "none" and factor != 1:
        kind = "linear"
    if kind not in _KINDS:
        raise ExportError(
            f"{facts.name}.rope.scaling.type of {facts.file.path} is {kind!r}; supported are "
            f"{', '.join(_KINDS)}",
            code=Code.NOT_SUPPORTED,
        )
    original = facts.size("rope.scaling.original_context_length", context)
    attention = facts.positive("rope.scaling.attn_factor", 1.0)
    if any(table in facts.file.tensors for table in TABLES):
        if factor != 1:
            raise ExportError(
                f"{facts.file.path} scales its rotary embedding twice, by tables of factors and by "
                f"the rope.scaling.factor {factor}, which is not supported",
                code=Code.NOT_SUPPORTED,
            )
        return {**base, **_tables(facts, turned // 2, original, attention)}
    if kind in ("none", "linear") and attention != 1:
        raise ExportError(
            f"{facts.name}.rope.scaling.attn_factor of {facts.file.path} is {attention}, which is "
            f"not supported with the rope.scaling.type {kind!r}: export the folder that the file "
            f"was converted from",
            code=Code.NOT_SUPPORTED,
        )
    if kind == "linear" and factor != 1:
        return {**base, "rope_type": "linear", "factor": factor}
    if kind == "yarn":
        return {**base, **_yarn(facts, factor, original, attention)}
    if kind == "longrope":
        raise ExportError(
            f"{facts.file.path} has the rope.scaling.type 'longrope' without {LONG} and {SHORT}: "
            f"convert the model again",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    return {**base, "rope_type": "default"}


def _tables(facts: Facts, count: int, original: int, attention: float) -> dict[str, Any]:
    """Factors in a table: those for all lengths, or those for short and for long contexts."""
    file = facts.file
    short, long = (FREQUENCIES,) * 2 if FREQUENCIES in file.tensors else (SHORT, LONG)
    factors = {}
    for key, name in (("short_factor", short), ("long_factor", long)):
        if name not in file.tensors:
            raise ExportError(
                f"{file.path} has no tensor {name!r}: convert the model again",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        table = file.real(name).float()
        if table.shape != (count,) or not bool((torch.isfinite(table) & (table > 0)).all()):
            raise ExportError(
                f"tensor {name!r} of {file.path} has the shape {list(table.shape)}, or numbers "
                f"that are not above zero; it must have {count} that are",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        factors[key] = table.tolist()
    return {
        "rope_type": "longrope",
        "original_max_position_embeddings": original,
        "attention_factor": attention,
        **factors,
    }


def _yarn(facts: Facts, factor: float, original: int, attention: float) -> dict[str, Any]:
    scaled = attention * facts.positive("rope.scaling.yarn_attn_factor", 1.0)
    return {
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": original,
        "attention_factor": scaled * (0.1 * math.log(max(factor, 1.0)) + 1.0),
        "beta_fast": facts.positive("rope.scaling.yarn_beta_fast", 32.0),
        "beta_slow": facts.positive("rope.scaling.yarn_beta_slow", 1.0),
    }
