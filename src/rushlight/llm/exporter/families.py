"""The families of `transformers` models that become language models here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.llm.description import Description
from rushlight.llm.exporter.attention import INTERFACE, register
from rushlight.llm.exporter.rope import rotary_of
from rushlight.llm.exporter.step import copied
from rushlight.llm.weights.layers import QuantizedEmbedding, StoredEmbedding

Tensor = torch.Tensor


@dataclass(frozen=True)
class Family:
    """How the models of an architecture differ from Llama's.

    Attributes:
        norm: the name of the last norm.
        positions: "rope" or "learned".
    """

    norm: str = "norm"
    positions: str = "rope"


FAMILIES: Mapping[str, Family] = {
    "llama": Family(),
    "mistral": Family(),
    "qwen2": Family(),
    "qwen3": Family(),
    "gemma": Family(),
    "gemma2": Family(),
    "gemma3_text": Family(),
    "phi3": Family(),
    "gpt2": Family(norm="ln_f", positions="learned"),
}
"""By `model_type`. SmolLM is a Llama; Phi-4 is a Phi-3."""


def family_of(config: Any) -> Family:
    """The family of a configuration of `transformers`.

    Raises:
        ExportError: another architecture, or an option of it that is not supported.
    """
    name = getattr(config, "model_type", "") or type(config).__name__
    supported = ", ".join(FAMILIES)
    if name not in FAMILIES:
        raise ExportError(
            f"models of the architecture {name!r}{_kind(config)} are not supported; supported are "
            f"{supported}. An nn.Module of your own is exported with description=",
            code=Code.NOT_SUPPORTED,
        )
    for option in ("add_cross_attention", "use_bidirectional_attention", "is_encoder_decoder"):
        if getattr(config, option, False):
            raise ExportError(
                f"a {name} model with {option}=True is no decoder of text alone: export one with "
                f"{option}=False",
                code=Code.NOT_SUPPORTED,
            )
    return FAMILIES[name]


def _kind(config: Any) -> str:
    """What makes an architecture an unsupported one, in brackets, if its configuration says it."""
    if any("expert" in name for name in vars(config)):
        return " (a mixture of experts)"
    if hasattr(config, "vision_config") or hasattr(config, "audio_config"):
        return " (with images or sound)"
    return ""


def description_of(config: Any, context: int | None, **given: Any) -> Description:
    """What a runner must know of a model with this configuration.

    Args:
        config: of `transformers`.
        context: the greatest number of positions; None for the configuration's.
        given: other fields of the description.

    Raises:
        ExportError: a context beyond the learned positions.
    """
    family = family_of(config)
    most = config.max_position_embeddings
    if family.positions == "learned" and context is not None and context > most:
        raise ExportError(
            f"context={context}: the model has learned {most} positions: export with context="
            f"{most} or less",
            code=Code.INVALID_ARGUMENT,
        )
    heads = config.num_attention_heads
    eos = config.eos_token_id
    fields: dict[str, Any] = {
        "vocabulary": config.vocab_size,
        "layers": config.num_hidden_layers,
        "key_heads": getattr(config, "num_key_value_heads", None) or heads,
        "width": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "context": most if context is None else context,
        "family": config.model_type,
        "positions": family.positions,
        "bos": config.bos_token_id,
        "eos": list(eos) if isinstance(eos, list | tuple) else [] if eos is None else [eos],
    }
    return Description(**{**fields, **given})


class Decoder(torch.nn.Module):
    """The layers of a `transformers` model, without its last norm, with the cache of a runner.

    Args:
        embedding: of tokens.
        base: the model, without its embedding.
    """

    def __init__(self, embedding: torch.nn.Module, base: Any) -> None:
        super().__init__()
        self.embedding, self.base = embedding, base

    def forward(self, tokens: Tensor, positions: Tensor, sequences: Tensor) -> Tensor:
        """Hidden states [n, hidden]."""
        result = self.base(
            inputs_embeds=self.embedding(tokens).unsqueeze(0),
            position_ids=positions.unsqueeze(0),
            use_cache=False,
        )
        hidden: Tensor = result.last_hidden_state.squeeze(0)
        return hidden


class Head(torch.nn.Module):
    """The last norm of a model and its output layer: from hidden states to logits.

    Args:
        norm: the last norm.
        output: the layer; None for hidden states.
        softcap: unless it is 0, logits become softcap * tanh(logit / softcap).
    """

    def __init__(self, norm: Any, output: Any, softcap: float) -> None:
        super().__init__()
        self.norm, self.output, self.softcap = norm, output, softcap

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits [m, vocabulary]."""
        hidden = self.norm(hidden)
        if self.output is None:
            return hidden
        logits: Tensor = self.output(hidden)
        if self.softcap:
            logits = torch.tanh(logits / self.softcap) * self.softcap
        return logits


def decoder_of(model: Any, context: int) -> tuple[Decoder, Head]:
    """The decoder and the head of a `transformers` model, which is not changed.

    They share its weights.

    Args:
        model: with an output layer, such as `LlamaForCausalLM`.
        context: the greatest number of positions of a sequence.

    Raises:
        ExportError: the model is not supported.
    """
    family = family_of(model.config)
    if model.get_output_embeddings() is None:
        raise ExportError(
            f"{type(model).__name__} has no output layer: pass the model for causal language "
            f"modelling, such as AutoModelForCausalLM gives it",
            code=Code.INVALID_ARGUMENT,
        )
    register()
    model = copied(model)
    model.config._attn_implementation = INTERFACE
    base = model.base_model
    if family.positions == "rope":
        base.rotary_emb = rotary_of(base.rotary_emb, model.config, context)
    norm = getattr(base, family.norm)
    setattr(base, family.norm, torch.nn.Identity())
    softcap = getattr(model.config, "final_logit_softcapping", None) or 0.0
    embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    model.set_input_embeddings(torch.nn.Identity())
    if not isinstance(embedding, StoredEmbedding | QuantizedEmbedding):
        factor = getattr(embedding, "scalar_embed_scale", 1.0)  # of Gemma
        embedding = StoredEmbedding(embedding.weight, factor)
    return Decoder(embedding, base), Head(norm, output, softcap)
