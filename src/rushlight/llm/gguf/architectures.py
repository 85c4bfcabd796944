"""The architectures of GGUF files: their configurations and names in `transformers`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.gguf.facts import Facts
from rushlight.llm.gguf.rope import rope_of

Fields = dict[str, Any]
_LEAST_SCALE = 1e-4  # of scores, for heads of up to 10^8 elements
EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"

_LLAMA = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GEMMA2 = {
    **_LLAMA,
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_PHI3 = {**_LLAMA, "attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
_GPT2 = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
_TOP = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_GPT2_TOP = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
}


@dataclass(frozen=True)
class Architecture:
    """How the models of an architecture lie in files.

    Attributes:
        config: the fields of the configuration that others do not have; "model_type" among them.
        top: names of modules outside layers, by their names in files.
        layers: what the name of a layer's modules begins with, before its number.
        layer: names of modules in a layer.
        turns_pairs: whether the rows of queries and keys are ordered by pairs of neighbours that
            the rotary embedding turns; `transformers` turns an element and one half a head away.
        norm_offset: what norms in files have more than those of `transformers`.
    """

    config: Callable[[Facts], Fields]
    top: Mapping[str, str]
    layers: str
    layer: Mapping[str, str]
    turns_pairs: bool = False
    norm_offset: float = 0.0

    def name(self, stem: str) -> str | None:
        """The module's name of a tensor's name without its last part; None for another tensor."""
        kind, _, rest = stem.partition(".")
        if kind != "blk":
            return self.top.get(stem)
        number, _, part = rest.partition(".")
        if not number.isascii() or not number.isdigit() or part not in self.layer:
            return None
        return f"{self.layers}.{int(number)}.{self.layer[part]}"


def architecture_of(facts: Facts) -> Architecture:
    """The architecture of a file.

    Raises:
        ExportError: it is not supported.
    """
    if facts.name not in ARCHITECTURES:
        supported = ", ".join(ARCHITECTURES)
        raise ExportError(
            f"{facts.file.path} has a model of the architecture {facts.name!r}, which is not "
            f"supported; supported are {supported}",
            code=Code.NOT_SUPPORTED,
        )
    return ARCHITECTURES[facts.name]


def _common(facts: Facts) -> Fields:
    """What all configurations have."""
    layers = facts.size("block_count")
    tensors = facts.file.tensors
    if layers > len(tensors) or f"blk.{layers - 1}.attn_norm.weight" not in tensors:
        raise ExportError(
            f"{facts.file.path} has no tensor 'blk.{layers - 1}.attn_norm.weight', and "
            f"{facts.name}.block_count is {layers}: copy or download it again",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    vocabulary = facts.file.tensors.get(EMBEDDING)
    if vocabulary is None or len(vocabulary.shape) != 2:
        raise ExportError(
            f"{facts.file.path} has no matrix {EMBEDDING!r}: it is no language model, or one part "
            f"of several",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    fields: Fields = {
        "vocab_size": vocabulary.shape[0],
        "tie_word_embeddings": OUTPUT not in facts.file.tensors,
    }
    for role, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        full = f"tokenizer.ggml.{key}_token_id"
        token = facts.file.integer(full, -1)
        if token >= vocabulary.shape[0]:
            raise ExportError(
                f"{full} of {facts.file.path} is {token}, and {EMBEDDING!r} has "
                f"{vocabulary.shape[0]} rows",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        fields[f"{role}_token_id"] = token if token >= 0 else None
    if not facts.flag("attention.causal", True):
        raise ExportError(
            f"{facts.file.path} is an encoder: its {facts.name}.attention.causal is false; only "
            f"decoders are supported",
            code=Code.NOT_SUPPORTED,
        )
    return fields


def _decoder(facts: Facts, turns_part: bool = False) -> Fields:
    """What Llama and those that follow it have; `turns_part`: rotary embeddings may turn a part of
    each head."""
    hidden, heads = facts.size("embedding_length"), facts.size("attention.head_count")
    context = facts.size("context_length")
    width = facts.size("attention.key_length", max(hidden // heads, 1))
    if facts.size("attention.value_length", width) != width:
        raise ExportError(
            f"{facts.file.path} has keys of {width} elements and values of others, which is not "
            f"supported for the architecture {facts.name!r}",
            code=Code.NOT_SUPPORTED,
        )
    rope = rope_of(facts, width, context)
    if "partial_rotary_factor" in rope and not turns_part:
        raise ExportError(
            f"{facts.file.path} rotates only a part of each head "
            f"({facts.name}.rope.dimension_count), which is not supported for the architecture "
            f"{facts.name!r}",
            code=Code.NOT_SUPPORTED,
        )
    return {
        **_common(facts),
        "hidden_size": hidden,
        "intermediate_size": facts.size("feed_forward_length"),
        "num_hidden_layers": facts.size("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": facts.size("attention.head_count_kv", heads),
        "head_dim": width,
        "max_position_embeddings": context,
        "rms_norm_eps": facts.positive("attention.layer_norm_rms_epsilon"),
        "rope_parameters": rope,
    }


def _scale(facts: Facts, fields: Fields) -> None:
    """Refuse a scale of scores that is not the usual one."""
    usual = fields["head_dim"] ** -0.5
    scale = facts.number("attention.scale", usual) or usual
    if not math.isclose(scale, usual, rel_tol=1e-5):
        raise ExportError(
            f"{facts.name}.attention.scale of {facts.file.path} is {scale}; supported is 1 / "
            f"sqrt({fields['head_dim']})",
            code=Code.NOT_SUPPORTED,
        )


def _llama(facts: Facts) -> Fields:
    fields = _decoder(facts)
    _scale(facts, fields)
    tensors = facts.file.tensors
    window = _window(facts)
    if window is not None:
        return {**fields, "model_type": "mistral", "sliding_window": window}
    return {
        **fields,
        "model_type": "llama",
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in tensors,
    }


def _qwen(facts: Facts) -> Fields:
    fields = _decoder(facts)
    _scale(facts, fields)
    return {**fields, "model_type": facts.name}


def _phi3(facts: Facts) -> Fields:
    fields = _decoder(facts, turns_part=True)
    _scale(facts, fields)
    rope = fields["rope_parameters"]
    original = rope.get("original_max_position_embeddings", fields["max_position_embeddings"])
    return {
        **fields,
        "model_type": "phi3",
        "original_max_position_embeddings": original,
        "sliding_window": _window(facts),
        "partial_rotary_factor": rope.get("partial_rotary_factor", 1.0),
    }


def _window(facts: Facts) -> int | None:
    """How many positions a token sees; None for all."""
    key = "attention.sliding_window"
    return facts.size(key) if facts.number(key, 0) else None


def _gemma(facts: Facts) -> Fields:
    fields = _decoder(facts)
    _scale(facts, fields)
    return {**fields, "model_type": "gemma"}


def _gemma_scale(facts: Facts, fields: Fields, largest: int) -> int:
    """What the width of heads is replaced by in the scale of scores.

    Files of the largest model do not say it; it is known by the number of layers.
    """
    scale = facts.number("attention.scale", 0.0)
    if scale > _LEAST_SCALE:
        return max(round(scale**-2), 1)
    if fields["num_hidden_layers"] == largest:
        return max(int(fields["hidden_size"]) // int(fields["num_attention_heads"]), 1)
    return int(fields["head_dim"])


def _gemma2(facts: Facts) -> Fields:
    fields = _decoder(facts)
    return {
        **fields,
        "model_type": "gemma2",
        "sliding_window": facts.size("attention.sliding_window", 4096),
        "attn_logit_softcapping": facts.positive("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": facts.positive("final_logit_softcapping", 30.0),
        "query_pre_attn_scalar": _gemma_scale(facts, fields, 46),
    }


def _gemma3(facts: Facts) -> Fields:
    fields = _decoder(facts)
    local = {"rope_type": "default", "rope_theta": facts.positive("rope.freq_base_swa", 10000.0)}
    cap = facts.number("final_logit_softcapping", 0.0)
    return {
        **fields,
        "model_type": "gemma3_text",
        "sliding_window": facts.size("attention.sliding_window", 1024),
        "layer_types": _gemma3_kinds(facts, fields["num_hidden_layers"]),
        "rope_parameters": {
            "full_attention": fields["rope_parameters"],
            "sliding_attention": local,
        },
        "final_logit_softcapping": cap if cap > 0 else None,
        "query_pre_attn_scalar": _gemma_scale(facts, fields, 62),
    }


def _gemma3_kinds(facts: Facts, layers: int) -> list[str]:
    """The kind of attention of each layer; files say it or how many layers follow each other."""
    kinds = ("full_attention", "sliding_attention")
    listed = facts.listed("attention.sliding_window_pattern", layers)
    if listed is not None:
        return [kinds[bool(has_window)] for has_window in listed]
    every = facts.size("attention.sliding_window_pattern", 6)
    return [kinds[(i + 1) % every != 0] for i in range(layers)]


def _gpt2(facts: Facts) -> Fields:
    hidden = facts.size("embedding_length")
    return {
        **_common(facts),
        "model_type": "gpt2",
        "n_embd": hidden,
        "n_head": facts.size("attention.head_count"),
        "n_layer": facts.size("block_count"),
        "n_positions": facts.size("context_length"),
        "n_inner": facts.size("feed_forward_length", 4 * hidden),
        "layer_norm_epsilon": facts.positive("attention.layer_norm_epsilon"),
    }


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture(_llama, _TOP, "model.layers", _LLAMA, turns_pairs=True),
    "qwen2": Architecture(_qwen, _TOP, "model.layers", _LLAMA),
    "qwen3": Architecture(_qwen, _TOP, "model.layers", _LLAMA),
    "gemma": Architecture(_gemma, _TOP, "model.layers", _LLAMA, norm_offset=1.0),
    "gemma2": Architecture(_gemma2, _TOP, "model.layers", _GEMMA2, norm_offset=1.0),
    "gemma3": Architecture(_gemma3, _TOP, "model.layers", _GEMMA2, norm_offset=1.0),
    "phi3": Architecture(_phi3, _TOP, "model.layers", _PHI3),
    "gpt2": Architecture(_gpt2, _GPT2_TOP, "transformer.h", _GPT2),
}
"""By their names in files. Mistral and SmolLM are "llama" there, Phi-4 is "phi3"."""
