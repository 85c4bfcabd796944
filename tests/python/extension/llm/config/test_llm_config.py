"""Configurations: what contradicts itself is refused, and arguments fill fields."""

from __future__ import annotations

from argparse import Namespace

import pytest

from rushlight.extension.llm.config.backends import CoreMLConfig, XNNPackConfig
from rushlight.extension.llm.config.export import (
    ExportConfig,
    MethodConfig,
    MultimethodConfig,
    Pt2eQuantize,
    QuantizationConfig,
    QuantizeScope,
)
from rushlight.extension.llm.config.llm import LlmConfig
from rushlight.extension.llm.config.model import DtypeOverride, ModelConfig, ModelType


def test_arguments_fill_fields() -> None:
    made = LlmConfig.from_args(
        Namespace(
            model="qwen3_0_6b",
            checkpoint="folder",
            adapter_checkpoint="a.safetensors",
            adapter_config="a.json",
            dtype_override="bf16",
            use_kv_cache=True,
            max_seq_length=64,
            quantization_mode="8da4w",
            group_size=64,
            pt2e_quantize=None,
            xnnpack=True,
            vgf_quantize_scope="linear",
            use_torchao_kernels=True,
        )
    )
    assert made.base.model_class is ModelType.qwen3_0_6b and made.base.checkpoint == "folder"
    assert made.base.lora_config is not None
    assert made.base.lora_config.adapter_config == "a.json"
    assert made.model.dtype_override is DtypeOverride.bf16 and made.model.use_kv_cache
    assert (made.export.max_seq_length, made.export.max_context_length) == (64, 128)
    assert (made.quantization.qmode, made.quantization.group_size) == ("8da4w", 64)
    assert made.quantization.pt2e_quantize is None
    assert made.quantization.quantize_scope is QuantizeScope.linear
    assert made.backend.xnnpack == XNNPackConfig(enabled=True)
    assert made.backend.openvino.nncf_compression_group_size == 64
    assert made.backend.torchao.use_torchao_kernels_tied_embedding
    assert LlmConfig.from_args(Namespace()) == LlmConfig()
    with pytest.raises(ValueError, match="--adapter_config"):
        LlmConfig.from_args(Namespace(adapter_checkpoint="a"))
    with pytest.raises(ValueError, match="llama9"):
        LlmConfig.from_args(Namespace(model="llama9"))


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="sink_size"):
        ModelConfig(use_attention_sink="4")
    with pytest.raises(ValueError, match="quantize_kv_cache needs a cache"):
        ModelConfig(quantize_kv_cache=True)
    with pytest.raises(ValueError, match="max_seq_length=256"):
        ExportConfig(max_seq_length=256)
    with pytest.raises(ValueError, match="qmode='5w'"):
        QuantizationConfig(qmode="5w")
    with pytest.raises(ValueError, match="ios=14"):
        CoreMLConfig(ios=14)
    low_bit = LlmConfig(quantization=QuantizationConfig(qmode="torchao:8da4w"))
    assert low_bit.quantization.is_low_bit
    low_bit.backend.xnnpack.enabled = True
    with pytest.raises(ValueError, match="XNNPACK"):
        LlmConfig(quantization=low_bit.quantization, backend=low_bit.backend)
    with pytest.raises(ValueError, match="use_shared_embedding"):
        LlmConfig(
            model=ModelConfig(use_shared_embedding=True),
            quantization=QuantizationConfig(qmode="8da4w"),
        )


def test_members_are_texts_and_methods_make_programs_of_several() -> None:
    assert Pt2eQuantize.xnnpack_dynamic == "xnnpack_dynamic"
    assert not MultimethodConfig().enabled
    assert MultimethodConfig([MethodConfig("forward")]).enabled
