"""Small random-weight models of every family that `rushlight.llm.export` takes."""

from __future__ import annotations

import json
from typing import Any

import torch

import rushlight as rl
from rushlight import _core
from rushlight.ir.custom_ops.cached_attention import EagerCache
from rushlight.llm.description import KEY
from rushlight.llm.exporter.families import decoder_of
from rushlight.llm.exporter.recipes import Recipe, convert_layers
from rushlight.llm.exporter.step import Step
from rushlight.serialize.pte import read_pte

# Windows are shorter than the prompts of the tests, several heads share a key, and the width of
# heads is not hidden / heads where a family allows it. None leaves an option to the family.
SMALL: dict[str, Any] = {
    "vocab_size": 320,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "head_dim": 16,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
}
_GPT2 = {
    "hidden_size": None,
    "num_attention_heads": None,
    "num_hidden_layers": None,
    "intermediate_size": None,
    "num_key_value_heads": None,
    "max_position_embeddings": None,
    "head_dim": None,
    "n_embd": 48,
    "n_layer": 2,
    "n_positions": 512,
}
_TIED = {"tie_word_embeddings": True}


def _rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10000.0, "rope_type": kind, **more}}


_ORIGINAL = {"original_max_position_embeddings": 128}
_FREQUENCIES = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LONG = {
    "short_factor": [1.0 + i / 8 for i in range(6)],
    "long_factor": [2.0 + i for i in range(6)],
    "partial_rotary_factor": 0.75,
}
_SLIDING, _FULL = "sliding_attention", "full_attention"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama-linear": ("llama", _rope("linear", factor=4.0)),
    "llama-dynamic": ("llama", _rope("dynamic", factor=4.0)),
    "llama-yarn": ("llama", _rope("yarn", factor=8.0, **_ORIGINAL)),
    "llama3": (
        "llama",
        {
            **_rope("llama3", factor=8.0, **_FREQUENCIES, **_ORIGINAL),
            "attention_bias": True,
            "mlp_bias": True,
        },
    ),
    "smollm": (
        "llama",
        {
            **_TIED,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "head_dim": None,
            "hidden_size": 144,
        },
    ),
    "mistral": ("mistral", {"sliding_window": 48}),
    "qwen2": (
        "qwen2",
        {
            "head_dim": None,
            "use_sliding_window": True,
            "sliding_window": 40,
            "max_window_layers": 1,
        },
    ),
    "qwen3": ("qwen3", _TIED),
    "gemma": ("gemma", _TIED),
    "gemma2": (
        "gemma2",
        {
            **_TIED,
            "sliding_window": 32,
            "query_pre_attn_scalar": 24,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 3.0,
        },
    ),
    "gemma3": (
        "gemma3_text",
        {
            **_TIED,
            "sliding_window": 32,
            "query_pre_attn_scalar": 24,
            "num_hidden_layers": 3,
            "layer_types": [_SLIDING, _FULL, _SLIDING],
        },
    ),
    "phi3": ("phi3", {"head_dim": None, "sliding_window": 60}),
    "phi4": (
        "phi3",
        {
            **_rope("longrope", **_ORIGINAL, **_LONG),
            **_TIED,
            **_ORIGINAL,
            "head_dim": None,
            "hidden_size": 96,
        },
    ),
    "gpt2": ("gpt2", {**_GPT2, **_TIED, "n_head": 6}),
    "gpt2-scaled": ("gpt2", {**_GPT2, "n_head": 4, "scale_attn_by_inverse_layer_idx": True}),
}


def small_model(case: str, **changes: Any) -> Any:
    """A `transformers` model with random weights whose logits differ clearly from each other."""
    from transformers import AutoConfig, AutoModelForCausalLM

    name, own = CASES[case]
    options = {
        key: value for key, value in {**SMALL, **own, **changes}.items() if value is not None
    }
    config = AutoConfig.for_model(name, **options)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 1.5 * parameter.shape[1] ** -0.5)
        else:
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def converted_step(model: Any, recipe: Recipe) -> Step:
    """What an export of a model with a recipe captures."""
    step = Step(*decoder_of(model, 512))
    convert_layers(step, recipe, embedding=step.decoder.embedding if recipe.embedding else None)
    return step


def eager_logits(model: Any, tokens: torch.Tensor, recipe: Recipe | None = None) -> torch.Tensor:
    """The logits of a text, of what an export of a model captures."""
    step = converted_step(model, recipe or Recipe())
    positions = torch.arange(len(tokens))
    with EagerCache().active(), torch.no_grad():
        logits: torch.Tensor = step(tokens, positions, torch.zeros_like(positions), positions)
    return logits


def described(program: Any) -> dict[str, Any]:
    """What a program's file says of the language model to a runner."""
    about: dict[str, Any] = json.loads(bytes(read_pte(program.buffer).named_data[KEY]))
    return about


class Session:
    """One sequence that a program's method continues, with a key-value cache of its own."""

    def __init__(
        self, program: Any, *, sequence: int = 0, positions: int = 512, method: str = "step"
    ) -> None:
        self._method = rl.load(program.buffer)[method]
        about = described(program)
        sizes = (about["layers"], about["key_heads"], about["width"], about["value_width"])
        self._method.set_kv_cache(_core.KvCache("float32", *sizes, sequence + 1, positions))
        self._sequence, self._length = sequence, 0

    def give(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits of tokens that follow those given before."""
        positions = torch.arange(self._length, self._length + len(tokens))
        sequences = torch.full_like(positions, self._sequence)
        self._length += len(tokens)
        return self._method(tokens, positions, sequences, torch.arange(len(tokens)))
