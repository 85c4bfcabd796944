"""Writes a language model in the form of one runtime, in the environment of that runtime.

Each command returns the CPU seconds and the peak memory that it took. What a first export imports
and keeps counts in it alone: memory of others in one process is that of their weights.
`source` is a folder of Hugging Face, `shape` the sizes in it.

Commands: `rushlight`, `gguf`, `checkpoint` (for `executorch`), `executorch`, `onnxruntime`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "rushlight" / "peers"))

import side

HEAD_DIM, THETA = 64, 500_000.0


class _PrivatePeak(threading.Thread):
    """Samples the process's memory that no file backs, of which the system keeps no peak."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes = side.status_bytes("RssAnon")
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.005):
            self.bytes = max(self.bytes, side.status_bytes("RssAnon"))

    def end(self) -> int:
        """The peak in bytes."""
        self._ended.set()
        self.join()
        return self.bytes


def _measured(make: Callable[[], object]) -> dict[str, float]:
    """CPU seconds of this process and its children, and peaks of memory over that at first: of all
    memory, and of that of this process which no file backs."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak of the resident size
    private = -side.status_bytes("RssAnon")
    sampled = _PrivatePeak()
    sampled.start()
    before = side.status_bytes("VmHWM")
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    cpu = -sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)
    wall = -time.perf_counter()
    make()
    cpu += sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)
    peak = max(side.status_bytes("VmHWM"), resource.getrusage(kinds[1]).ru_maxrss * 1024)
    private += sampled.end()
    wall += time.perf_counter()
    return {"cpu": cpu, "wall": wall, "peak": peak - before, "private": private}


def rushlight(
    source: str,
    file: str,
    recipe: str | None,
    context: int,
    verify: bool = False,
    adapters: int | None = None,
) -> dict[str, float]:
    """By `rushlight.llm.export`; for others to be compared with, it is not verified."""
    import torch
    import transformers  # noqa: F401 - not part of an export

    import rushlight.llm

    torch.set_num_threads(1)

    def make() -> None:
        program = rushlight.llm.export(
            source, quantize=recipe, context=context, adapters=adapters, verify=verify
        )
        program.save(file, quiet=True)

    return _measured(make)


def gguf(source: str, file: str, kind: str) -> dict[str, float]:
    """A GGUF file with a tokenizer, all of whose matrices have one type."""
    return _measured(lambda: _write_gguf(Path(source), file, kind))


def _write_gguf(source: Path, file: str, kind: str) -> None:
    import gguf as library
    import torch
    from safetensors import safe_open

    config = json.loads((source / "config.json").read_text())
    writer = library.GGUFWriter(file, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(THETA)
    writer.add_vocab_size(config["vocab_size"])
    types = library.LlamaFileType
    writer.add_file_type(types.MOSTLY_Q4_0 if kind == "Q4_0" else types.MOSTLY_Q8_0)
    _write_vocabulary(writer, source, config)
    number = library.MODEL_ARCH.LLAMA
    names = library.get_tensor_name_map(number, config["num_hidden_layers"])
    with safe_open(source / "model.safetensors", "pt") as tensors:
        for name in tensors.keys():  # noqa: SIM118 - it is no dict
            tensor = tensors.get_tensor(name)
            heads = {".q_proj.": "num_attention_heads", ".k_proj.": "num_key_value_heads"}
            for part, key in heads.items():
                if part in name:  # pairs of rotary positions are neighbours there
                    split = tensor.unflatten(0, (config[key], 2, HEAD_DIM // 2))
                    tensor = split.transpose(1, 2).flatten(0, 2)
            quantised = library.GGMLQuantizationType[kind if tensor.dim() > 1 else "F32"]
            data = library.quants.quantize(tensor.to(torch.float32).numpy(), quantised)
            stem = names.get_name(name, try_suffixes=(".weight",))
            writer.add_tensor(stem, data, raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_vocabulary(writer: Any, source: Path, config: dict[str, Any]) -> None:
    """Of byte-level BPE; tokens that the tokenizer lacks have texts of their own."""
    model = json.loads((source / "tokenizer.json").read_text())["model"]
    tokens = [f"<|unused{i}|>" for i in range(config["vocab_size"])]
    kinds = [5] * len(tokens)  # unused
    for text, token in model["vocab"].items():
        tokens[token], kinds[token] = text, 3 if token < 2 else 1
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


_META = {
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.": "",
    "embed_tokens": "tok_embeddings",
}


def checkpoint(source: str, file: str) -> dict[str, float]:
    """The weights by the names of Meta's files, and the sizes beside them."""
    import torch
    from safetensors.torch import load_file

    def make() -> None:
        config = json.loads(Path(source, "config.json").read_text())
        weights = {}
        for name, tensor in load_file(Path(source, "model.safetensors")).items():
            for part, other in _META.items():
                name = name.replace(part, other)
            weights[name] = tensor
        weights["output.weight"] = weights["tok_embeddings.weight"]
        torch.save(weights, file)
        sizes = {
            "dim": config["hidden_size"],
            "n_layers": config["num_hidden_layers"],
            "n_heads": config["num_attention_heads"],
            "n_kv_heads": config["num_key_value_heads"],
            "head_dim": HEAD_DIM,
            "hidden_dim": config["intermediate_size"],
            "vocab_size": config["vocab_size"],
            "norm_eps": config["rms_norm_eps"],
            "rope_theta": THETA,
            "use_hf_rope": True,
            "use_scaled_rope": False,
        }
        Path(file).with_suffix(".json").write_text(json.dumps(sizes))

    return _measured(make)


def executorch(source: str, file: str, context: int) -> dict[str, float]:
    """By its own export of Llama: 8da4w in groups of 32, XNNPACK, custom attention."""
    from executorch.examples.models.llama.export_llama_lib import export_llama
    from executorch.extension.llm.export.config import llm_config as configs

    config = configs.LlmConfig()
    config.base.model_class = configs.ModelType.llama3_2
    config.base.checkpoint = source
    config.base.params = str(Path(source).with_suffix(".json"))
    config.base.metadata = json.dumps({"get_bos_id": 1, "get_eos_ids": [0]})
    config.model.use_kv_cache = config.model.use_sdpa_with_kv_cache = True
    # Prompts of one token less than its `max_seq_length` are computed at once.
    config.export.max_seq_length, config.export.max_context_length = 513, context
    config.export.output_name = file
    config.quantization.qmode, config.quantization.group_size = "8da4w", 32
    config.quantization.embedding_quantize = "4,32"
    config.backend.xnnpack.enabled = config.backend.xnnpack.extended_ops = True
    return _measured(lambda: export_llama(config))


def onnxruntime(source: str, file: str) -> dict[str, float]:
    """By its model builder: 4 bits in groups of 32, computed in integers."""
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", file]
    command += ["-p", "int4", "-e", "cpu", "-c", str(Path(file).with_suffix(".cache"))]
    command += ["--extra_options", "block_size=32", "accuracy_level=4", "prune_lm_head=true"]

    def make() -> None:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(done.stdout.strip().splitlines()[-1])

    return _measured(make)


COMMANDS: dict[str, side.Command] = {
    "rushlight": rushlight,
    "gguf": gguf,
    "checkpoint": checkpoint,
    "executorch": executorch,
    "onnxruntime": onnxruntime,
}

if __name__ == "__main__":
    side.main(COMMANDS, __doc__)
