"""GGUF files of small random-weight models, written as llama.cpp's converter writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

NAMES = {"mistral": "llama", "gemma3_text": "gemma3"}
"""Names of architectures in files that differ from those in `transformers`."""
PRE_TOKENIZERS = {
    "gpt2": "gpt-2",
    "smollm": "smollm",
    "llama3": "llama-bpe",
    "qwen2": "qwen2",
    "qwen35": "qwen35",
    "o200k": "gpt-4o",
    "tekken": "tekken",
}
"""Names of pre-tokenizers in files, by the family of the tokenizer."""


def write_gguf(model: Any, path: Path, kind: str = "F32", **changes: Any) -> Path:
    """Write a model of `transformers` to a file.

    Args:
        model: of a supported architecture.
        path: of the file.
        kind: the type of matrices. Those whose rows are no whole blocks, and vectors, are F32.
        changes: further metadata, or None for entries that are left out; "__" stands for ".".
    """
    config = model.config
    name = name_of(config)
    writer = gguf.GGUFWriter(path, name)
    entries = {
        **dict(_sizes(config, name)),
        **{k.replace("__", "."): v for k, v in changes.items()},
    }
    for key, value in entries.items():
        add_entry(writer, key, value)
    for stem, tensor in tensors_of(model):
        add_tensor(writer, stem, tensor, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def take_weights(model: Any, path: Path) -> None:
    """Give a model of `transformers` the weights of a file, as `gguf` dequantises them."""
    stored = {
        one.name: torch.from_numpy(gguf.quants.dequantize(one.data, one.tensor_type).copy())
        for one in gguf.GGUFReader(path).tensors
    }
    own = model.state_dict()
    for full, name in names_of(model):
        own[full].copy_(_converted(model, full, stored[name], back=True).reshape(own[full].shape))


def byte_level_entries(peer: Any, name: str) -> dict[str, Any]:
    """The metadata of a byte-level tokenizer of `tokenizers`.

    Args:
        peer: it has the special tokens "<|start|>" and "<|end|>".
        name: of its pre-tokenizer in files.
    """
    source = json.loads(peer.to_str())
    ordered = sorted(source["model"]["vocab"], key=source["model"]["vocab"].get)
    special = {one["content"] for one in source["added_tokens"]}
    return {
        "model": "gpt2",
        "pre": name,
        "tokens": ordered,
        "token_type": [3 if text in special else 1 for text in ordered],
        "merges": [" ".join(pair) for pair in source["model"]["merges"]],
        "bos_token_id": ordered.index("<|start|>"),
        "eos_token_id": ordered.index("<|end|>"),
    }


def sentence_piece_entries(peer: Any, user: Sequence[str], has_prefix: bool) -> dict[str, Any]:
    """The metadata of a tokenizer of `sentencepiece`.

    Args:
        peer: a model of BPE with byte fallback.
        user: the tokens that users defined.
        has_prefix: whether a space is put before a text.
    """
    tokens = range(peer.get_piece_size())
    kinds = {3: peer.is_control, 2: peer.is_unknown, 6: peer.is_byte, 5: peer.is_unused}
    texts = [peer.id_to_piece(token) for token in tokens]
    types = [
        4 if text in user else next((kind for kind, holds in kinds.items() if holds(token)), 1)
        for token, text in zip(tokens, texts, strict=True)
    ]
    pairs = zip(texts, types, strict=True)
    return {
        "model": "llama",
        # The converter writes the spaces of tokens that users define.
        "tokens": [text.replace("▁", " ") if kind == 4 else text for text, kind in pairs],
        "token_type": types,
        "scores": [peer.get_score(token) for token in tokens],
        "unknown_token_id": peer.unk_id(),
        "bos_token_id": peer.bos_id(),
        "add_space_prefix": has_prefix,
    }


def of_tokenizer(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a tokenizer as changes for `write_gguf`."""
    return {f"tokenizer__ggml__{key}": value for key, value in entries.items()}


def add_entry(writer: Any, key: str, value: Any) -> None:
    """Add metadata whose type follows from its Python type."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value is not None:
        writer.add_array(key, value)


def add_tensor(writer: Any, name: str, tensor: torch.Tensor, kind: str) -> None:
    """Add a tensor in a type; F32 if it does not fit. `gguf` does not quantise to types with
    blocks of 256: tensors of these are random."""
    number = gguf.GGMLQuantizationType[kind]
    if tensor.dim() < 2 or tensor.shape[-1] % gguf.GGML_QUANT_SIZES[number][0]:
        number = gguf.GGMLQuantizationType.F32
    elif kind.endswith("_K"):
        writer.add_tensor(name, random_blocks(kind, *tensor.shape), raw_dtype=number)
        return
    data = gguf.quants.quantize(tensor.float().contiguous().numpy(), number)
    writer.add_tensor(name, data, raw_dtype=number)


def tensors_of(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The names and tensors that the converter writes."""
    tensors = model.state_dict()
    for full, name in names_of(model):
        yield name, _converted(model, full, tensors[full])
    yield from _tables(model.config)


def names_of(model: Any) -> Iterator[tuple[str, str]]:
    """The names of a model's tensors in `transformers` and in files."""
    config = model.config
    key = name_of(config)
    number = next(number for number, name in gguf.MODEL_ARCH_NAMES.items() if name == key)
    names = gguf.get_tensor_name_map(number, config.num_hidden_layers)
    for full in model.state_dict():
        if full != "lm_head.weight" or not config.tie_word_embeddings:
            found = names.get_name(full, try_suffixes=(".weight", ".bias"))
            assert found is not None, full
            yield full, found


def _converted(model: Any, full: str, tensor: torch.Tensor, *, back: bool = False) -> torch.Tensor:
    """A tensor as it lies in files, or a tensor of a file as it lies in the model."""
    config = model.config
    if name_of(config) == "llama" and ".q_proj." in full:
        return _permuted(tensor, config.num_attention_heads, back)
    if name_of(config) == "llama" and ".k_proj." in full:
        return _permuted(tensor, config.num_key_value_heads, back)
    if config.model_type.startswith("gemma") and full.endswith("norm.weight"):
        return tensor - 1 if back else tensor + 1
    module = model.get_submodule(full.rpartition(".")[0])
    is_conv1d = type(module).__name__ == "Conv1D" and tensor.dim() == 2
    return tensor.t() if is_conv1d else tensor


def name_of(config: Any) -> str:
    """The architecture's name in files."""
    return NAMES.get(config.model_type, config.model_type)


def _permuted(weights: torch.Tensor, heads: int, back: bool) -> torch.Tensor:
    """Rows of halves of heads as rows of pairs, or the reverse."""
    pairs = (weights.shape[0] // heads // 2, 2)
    shape = (heads, *(pairs if back else pairs[::-1]), *weights.shape[1:])
    return weights.reshape(shape).transpose(1, 2).reshape(weights.shape)


def _sizes(config: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The metadata of an architecture."""
    heads = config.num_attention_heads
    sizes = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "attention.head_count": heads,
    }
    if name == "gpt2":
        sizes["feed_forward_length"] = 4 * config.hidden_size
        sizes["attention.layer_norm_epsilon"] = config.layer_norm_epsilon
    else:
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        sizes["feed_forward_length"] = config.intermediate_size
        sizes["attention.head_count_kv"] = config.num_key_value_heads
        sizes["attention.layer_norm_rms_epsilon"] = config.rms_norm_eps
        sizes["attention.key_length"] = sizes["attention.value_length"] = width
        sizes |= dict(_rope(config, width))
    if config.model_type in ("mistral", "phi3", "gemma2", "gemma3_text"):
        sizes["attention.sliding_window"] = config.sliding_window or 0
    if name in ("gemma2", "gemma3"):
        sizes["attention.scale"] = config.query_pre_attn_scalar**-0.5
    if name == "gemma2":
        sizes["attn_logit_softcapping"] = config.attn_logit_softcapping
        sizes["final_logit_softcapping"] = config.final_logit_softcapping
    if name == "gemma3":
        kinds = [kind == "sliding_attention" for kind in config.layer_types]
        sizes["attention.sliding_window_pattern"] = kinds
    yield from ((f"{name}.{key}", value) for key, value in sizes.items())
    for role, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        yield f"tokenizer.ggml.{key}_token_id", getattr(config, f"{role}_token_id")


def _rope(config: Any, width: int) -> Iterator[tuple[str, Any]]:
    rope = config.rope_parameters
    if "full_attention" in rope:
        yield "rope.freq_base_swa", float(rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    yield "rope.freq_base", float(rope["rope_theta"])
    yield "rope.dimension_count", int(width * rope.get("partial_rotary_factor", 1))
    kind = rope["rope_type"]
    if kind in ("linear", "yarn", "longrope"):
        yield "rope.scaling.type", kind
    if kind in ("linear", "yarn"):
        yield "rope.scaling.factor", float(rope["factor"])
    if kind in ("yarn", "longrope"):
        original = rope["original_max_position_embeddings"]
        yield "rope.scaling.original_context_length", original
    if kind == "longrope":
        ratio = config.max_position_embeddings / original
        yield "rope.scaling.attn_factor", math.sqrt(1 + math.log(ratio) / math.log(original))


def _tables(config: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The factors of frequencies."""
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        yield "rope_factors_long.weight", torch.tensor(rope["long_factor"])
        yield "rope_factors_short.weight", torch.tensor(rope["short_factor"])
    if rope.get("rope_type") == "llama3":
        frequencies = rope["rope_theta"] ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
        lengths = 2 * math.pi / frequencies
        original, factor = rope["original_max_position_embeddings"], rope["factor"]
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = np.clip((original / lengths - low) / (high - low), 0, 1)
        yield "rope_freqs.weight", torch.tensor(1 / ((1 - smooth) / factor + smooth)).float()


def random_blocks(kind: str, rows: int, depth: int) -> np.ndarray:
    """Rows of random blocks of a type that stand for numbers of the size of small weights.

    The scales of blocks, which are float16 numbers, have both signs.
    """
    number = gguf.GGMLQuantizationType[kind]
    elements, size = gguf.GGML_QUANT_SIZES[number]
    blocks = np.random.randint(0, 256, (rows * depth // elements, size), dtype=np.uint8)
    for at in _HALVES[kind]:
        scales = np.random.uniform(0.5, 1, len(blocks)) * np.random.choice([-1, 1], len(blocks))
        blocks[:, at : at + 2] = scales.astype(np.float16)[:, None].view(np.uint8)
    deviation = gguf.quants.dequantize(blocks, number).std() * math.sqrt(depth)
    for at in _HALVES[kind]:
        scales = np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16) / deviation
        blocks[:, at : at + 2] = scales.astype(np.float16).view(np.uint8)
    return blocks.reshape(rows, -1)


_HALVES = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
}
"""Where the float16 numbers of blocks are."""
