"""Language models with random weights at the shapes of known ones, as folders of Hugging Face.

All matrices are random but those that write attention to the residual stream, which are zero, and
the later ones of multilayer perceptrons, which are small. So the most probable next token depends
on the last token alone, and a text goes on as it did where the same token stood before: what
speculation and structured output are measured with is known, at the speed of any other model.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python" / "llm" / "tokenizer"))

SHAPES: dict[str, dict[str, Any]] = {
    "135m": {
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    },
    "1b": {
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
}
HEAD_DIM, CONTEXT, THETA = 64, 8192, 500_000.0
BOS, EOS = 1, 0
_TEXT_BYTES = 12 << 20  # that the tokenizer is trained on


def shape_of(name: str, layers: int | None) -> dict[str, Any]:
    """The sizes of a model, with other than its own number of layers."""
    return {**SHAPES[name], **({"num_hidden_layers": layers} if layers else {})}


def parameters_of(shape: dict[str, Any]) -> int:
    """The weights that a token is multiplied by."""
    hidden, heads = shape["hidden_size"], shape["num_attention_heads"]
    keys = shape["num_key_value_heads"]
    attention = hidden * HEAD_DIM * (2 * heads + 2 * keys)
    layer = attention + 3 * hidden * shape["intermediate_size"]
    total: int = shape["num_hidden_layers"] * layer + shape["vocab_size"] * hidden
    return total


def write_source(folder: Path, shape: dict[str, Any]) -> None:
    """Write a folder as `save_pretrained` of `transformers` does."""
    from safetensors.torch import save_file
    from transformers import LlamaConfig

    folder.mkdir(parents=True, exist_ok=True)
    config = LlamaConfig(
        **shape,
        head_dim=HEAD_DIM,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        tie_word_embeddings=True,
        rms_norm_eps=1e-5,
        bos_token_id=BOS,
        eos_token_id=EOS,
        dtype="bfloat16",
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(folder)
    save_file(_weights(shape), folder / "model.safetensors", metadata={"format": "pt"})
    _write_tokenizer(folder, shape["vocab_size"])


def _weights(shape: dict[str, Any]) -> dict[str, Any]:
    import torch

    generator = torch.Generator().manual_seed(0)
    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    queries = HEAD_DIM * shape["num_attention_heads"]
    keys = HEAD_DIM * shape["num_key_value_heads"]

    def drawn(rows: int, columns: int, deviation: float) -> torch.Tensor:
        weight = torch.empty(rows, columns, dtype=torch.bfloat16)
        return weight.normal_(0, deviation, generator=generator)

    weights = {"model.embed_tokens.weight": drawn(shape["vocab_size"], hidden, 0.02)}
    for i in range(shape["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        for name, rows in (("q", queries), ("k", keys), ("v", keys)):
            weights[f"{layer}.self_attn.{name}_proj.weight"] = drawn(rows, hidden, hidden**-0.5)
        zeros = torch.zeros(hidden, queries, dtype=torch.bfloat16)
        weights[f"{layer}.self_attn.o_proj.weight"] = zeros
        for name in ("gate", "up"):
            weights[f"{layer}.mlp.{name}_proj.weight"] = drawn(inner, hidden, hidden**-0.5)
        # The first one outweighs the embedding, or the next token would be the same again.
        deviation = inner**-0.5 * (1.0 if i == 0 else 1e-3)
        weights[f"{layer}.mlp.down_proj.weight"] = drawn(hidden, inner, deviation)
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{layer}.{name}.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
    weights["model.norm.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
    return weights


def _write_tokenizer(folder: Path, size: int) -> None:
    import tokenizer_byte_level as byte_level

    text, total = [], 0
    for path in sorted(Path(os.__file__).parent.rglob("*.py")):
        if total > _TEXT_BYTES:
            break
        text.append(path.read_text("utf-8", "replace"))
        total += len(text[-1])
    byte_level.train("llama3", size, "\n".join(text)).save(str(folder / "tokenizer.json"))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|start|>",
        "eos_token": "<|end|>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
