"""The model: which one, its weights, and how it is changed before it is captured."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class ModelType(str, Enum):
    """The models that have a name; here `BaseConfig.checkpoint` says which one it is."""

    stories110m = "stories110m"
    llama2 = "llama2"
    llama3 = "llama3"
    llama3_1 = "llama3_1"
    llama3_2 = "llama3_2"
    llama3_2_vision = "llama3_2_vision"
    static_llama = "static_llama"
    qwen2_5_0_5b = "qwen2_5_0_5b"
    qwen2_5_1_5b = "qwen2_5_1_5b"
    qwen2_5_coder_32b = "qwen2_5_coder_32b"
    qwen3_0_6b = "qwen3_0_6b"
    qwen3_1_7b = "qwen3_1_7b"
    qwen3_4b = "qwen3_4b"
    qwen3_5_0_8b = "qwen3_5_0_8b"
    qwen3_5_2b = "qwen3_5_2b"
    qwen3_5_4b = "qwen3_5_4b"
    phi_4_mini = "phi_4_mini"
    smollm2 = "smollm2"
    lfm2_350m = "lfm2_350m"
    lfm2_700m = "lfm2_700m"
    lfm2_1_2b = "lfm2_1_2b"
    lfm2_5_350m = "lfm2_5_350m"
    lfm2_5_1_2b = "lfm2_5_1_2b"


class PreqMode(str, Enum):
    """How a checkpoint was quantised before."""

    preq_8da4w = "8da4w"
    preq_8da4w_out_8da8w = "8da4w_output_8da8w"


class DtypeOverride(str, Enum):
    """The dtype of weights."""

    fp32 = "fp32"
    fp16 = "fp16"
    bf16 = "bf16"


@dataclass
class LoraConfig:
    """An adapter.

    Attributes:
        adapter_checkpoint: its weights, a safetensors file.
        adapter_config: its JSON file, in place of what follows.
        lora_rank, lora_alpha, target_modules: its rank, its scale times the rank, its layers.
        adapter_quant: "int8", "fp16" or "fp32".
    """

    adapter_checkpoint: str
    adapter_config: str | None = None
    lora_rank: int = 0
    lora_alpha: int = 0
    target_modules: list[str] = field(default_factory=list)
    adapter_quant: str | None = None


@dataclass
class BaseConfig:
    """The model and its files.

    Attributes:
        model_class: its name.
        params: its sizes, a JSON file.
        checkpoint: its weights: a folder as `save_pretrained` of transformers writes it, or a GGUF
            file.
        lora_config: an adapter.
        tokenizer_path: the tokenizer, if it is not the checkpoint's.
        metadata: methods without inputs, as JSON.
        use_lora: the rank of an adapter that was trained with quantisation.
        preq_mode, preq_group_size, preq_embedding_quantize: how the checkpoint was quantised.
    """

    model_class: ModelType = ModelType.llama3
    params: str | None = None
    checkpoint: str | None = None
    lora_config: LoraConfig | None = None
    tokenizer_path: str | None = None
    metadata: str | None = None
    use_lora: int = 0
    preq_mode: PreqMode | None = None
    preq_group_size: int = 32
    preq_embedding_quantize: str = "8,0"


@dataclass
class ModelConfig:
    """How the model is changed.

    Attributes:
        dtype_override: the dtype of weights.
        enable_dynamic_shape: whether a call takes any number of tokens.
        use_shared_embedding: one table for embedding and output.
        use_sdpa_with_kv_cache: attention as one operator.
        expand_rope_table: tables of rotary embeddings for vectors.
        use_attention_sink: "SINK,WINDOW".
        output_prune_map, input_prune_map: JSON files with the tokens that are kept.
        use_kv_cache: whether the program keeps keys and values.
        quantize_kv_cache: keeps them in 8 bits.
        local_global_attention: the window of each layer, 0 for none.

    Raises:
        ValueError: options contradict each other.
    """

    dtype_override: DtypeOverride = DtypeOverride.fp32
    enable_dynamic_shape: bool = True
    use_shared_embedding: bool = False
    use_sdpa_with_kv_cache: bool = False
    expand_rope_table: bool = False
    use_attention_sink: str | None = None
    output_prune_map: str | None = None
    input_prune_map: str | None = None
    use_kv_cache: bool = False
    quantize_kv_cache: bool = False
    local_global_attention: list[int] | None = None

    def __post_init__(self) -> None:
        if self.use_attention_sink and len(self.use_attention_sink.split(",")) != 2:
            raise ValueError(
                f"use_attention_sink={self.use_attention_sink!r}: give '<sink_size>,<window_size>'"
            )
        for name in ("quantize_kv_cache", "local_global_attention"):
            if getattr(self, name) and not self.use_kv_cache:
                raise ValueError(f"{name} needs a cache: set use_kv_cache, too")
