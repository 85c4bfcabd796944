"""Encoders of `transformers`: models whose tokens see the whole text, which become embeddings.

A call has the tokens of several texts, one after the other; a mask keeps the texts apart. So no
text is padded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.llm.description import Description
from rushlight.llm.exporter.rope import rotary_of
from rushlight.llm.exporter.step import copied

Tensor = torch.Tensor


@dataclass(frozen=True)
class EncoderFamily:
    """How the encoders of an architecture differ from BERT.

    Attributes:
        positions: "rope" or "learned".
        has_types: whether tokens have types, which are 0 here.
        skips_padding: whether positions are counted from behind the number of the padding token.
    """

    positions: str = "learned"
    has_types: bool = True
    skips_padding: bool = False

    def first_position(self, config: Any) -> int:
        """The model's number of the position of a text's first token."""
        return config.pad_token_id + 1 if self.skips_padding else 0


_ROBERTA = EncoderFamily(skips_padding=True)
ENCODERS: Mapping[str, EncoderFamily] = {
    "bert": EncoderFamily(),
    "distilbert": EncoderFamily(has_types=False),
    "electra": EncoderFamily(),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "modernbert": EncoderFamily(positions="rope", has_types=False),
}
"""By `model_type`. MiniLM, BGE and E5 are BERT or XLM-RoBERTa."""


def is_encoder(model_type: str) -> bool:
    """Whether models of an architecture are encoders that are supported."""
    return model_type in ENCODERS


def most_tokens(config: Any) -> int:
    """The most tokens of a text that an encoder with this configuration has positions for."""
    first = ENCODERS[config.model_type].first_position(config)
    most: int = config.max_position_embeddings - first
    return most


def encoder_description(config: Any, context: int | None) -> Description:
    """What a runner must know of an encoder with this configuration.

    Args:
        config: of `transformers`.
        context: the most tokens of a text; None for as many as the model has positions.

    Raises:
        ExportError: a context beyond the model's positions, or a decoder of this architecture.
    """
    family = ENCODERS[config.model_type]
    for option in ("is_decoder", "add_cross_attention"):
        if getattr(config, option, False):
            raise ExportError(
                f"a {config.model_type} model with {option}=True is no encoder: export one with "
                f"{option}=False",
                code=Code.NOT_SUPPORTED,
            )
    most = most_tokens(config)
    if context is not None and context > most:
        raise ExportError(
            f"context={context}: the model has {most} positions: export with context={most} or "
            f"less",
            code=Code.INVALID_ARGUMENT,
        )
    context = most if context is None else context
    return Description(
        vocabulary=config.vocab_size,
        layers=0,
        key_heads=0,
        width=0,
        context=context,
        batch=context,
        wanted=context,
        family=config.model_type,
        positions=family.positions,
        hidden=config.hidden_size,
        pooling="mean",
    )


class Encoder(torch.nn.Module):
    """An encoder over the rows of several texts.

    Args:
        base: the model of `transformers`, without heads.
    """

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base = base
        family = ENCODERS[base.config.model_type]
        self._has_types = family.has_types
        self._first = family.first_position(base.config)
        self._window: int | None = None
        if "sliding_attention" in (getattr(base.config, "layer_types", None) or ()):
            self._window = base.config.sliding_window

    def forward(self, tokens: Tensor, positions: Tensor, sequences: Tensor) -> Tensor:
        """Hidden states [n, hidden]."""
        types = {"token_type_ids": torch.zeros_like(tokens)[None]} if self._has_types else {}
        result = self.base(
            input_ids=tokens[None],
            position_ids=(positions + self._first if self._first else positions)[None],
            attention_mask=self._masks(positions, sequences),
            **types,
        )
        hidden: Tensor = result.last_hidden_state.squeeze(0)
        return hidden

    def _masks(self, positions: Tensor, sequences: Tensor) -> Tensor | dict[str, Tensor]:
        """Which rows see which: a mask, or one for each kind of layer."""
        if self._window is None:
            return _mask(positions, sequences, None)
        return {
            "full_attention": _mask(positions, sequences, None),
            "sliding_attention": _mask(positions, sequences, self._window),
        }


_FAR = 2.0**24  # positions between texts: more than a text has


def _mask(positions: Tensor, sequences: Tensor, window: int | None) -> Tensor:
    """What is added to scores [1, 1, rows, rows]: -inf for rows of other texts, and for those at
    more than `window` positions.

    Backends compute it as one fused operator, as it is made of floats.
    """
    text = sequences.float()
    distance = (text[:, None] - text).abs() * _FAR
    if window is not None:
        place = positions.float()
        distance = distance + (place[:, None] - place).abs()
    reach = _FAR / 2 if window is None else float(window)
    return torch.where(distance <= reach, 0.0, -torch.inf)[None, None]


def encoder_of(model: Any, context: int) -> Encoder:
    """The encoder of a `transformers` model, which is not changed. They share its weights.

    Args:
        model: with heads or without.
        context: the most tokens of a text.
    """
    base = copied(model.base_model)
    base.config._attn_implementation = "sdpa"
    if getattr(base, "pooler", None) is not None:
        base.pooler = None
    for part in base.modules():
        for name in part._non_persistent_buffers_set:  # of numbers that a call has as inputs
            part._buffers[name] = None
    if ENCODERS[base.config.model_type].positions == "rope":
        base.rotary_emb = rotary_of(base.rotary_emb, base.config, context)
    return Encoder(base)


def encoder_weights(base: Any, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of an encoder among the tensors of a checkpoint, by the encoder's names for them.

    Args:
        base: the model without heads.
        tensors: by the names of a checkpoint, which may have heads.
    """
    prefix = f"{base.base_model_prefix}."
    if any(name.startswith(prefix) for name in tensors):  # all without it are of heads
        tensors = {
            name.removeprefix(prefix): tensor
            for name, tensor in tensors.items()
            if name.startswith(prefix)
        }
    return {
        _renamed(name): tensor for name, tensor in tensors.items() if not name.startswith("pooler.")
    }


_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def _renamed(name: str) -> str:
    for old, new in _OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
