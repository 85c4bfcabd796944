"""`LlmConfig`: all that an export of a language model is told."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rushlight.extension.llm.config.backends import (
    BackendConfig,
    CoreMLComputeUnit,
    CoreMLQuantize,
    VgfQuantizeScope,
)
from rushlight.extension.llm.config.export import (
    DebugConfig,
    ExportConfig,
    MultimethodConfig,
    Pt2eQuantize,
    QuantizationConfig,
    QuantizeScope,
    SpinQuant,
)
from rushlight.extension.llm.config.model import (
    BaseConfig,
    DtypeOverride,
    LoraConfig,
    ModelConfig,
    ModelType,
    PreqMode,
)


@dataclass
class LlmConfig:
    """All that an export of a language model is told.

    Raises:
        ValueError: options contradict each other.
    """

    base: BaseConfig = field(default_factory=BaseConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    debug: DebugConfig = field(default_factory=DebugConfig)
    multimethod: MultimethodConfig = field(default_factory=MultimethodConfig)
    quantization: QuantizationConfig = field(default_factory=QuantizationConfig)
    backend: BackendConfig = field(default_factory=BackendConfig)

    def __post_init__(self) -> None:
        is_low_bit = self.quantization.is_low_bit
        if is_low_bit and self.backend.xnnpack.enabled:
            raise ValueError(
                f"qmode={self.quantization.qmode!r} has kernels of torchao's, which XNNPACK would "
                f"not call: leave one of both out"
            )
        if self.quantization.qmode and self.model.use_shared_embedding and not is_low_bit:
            raise ValueError(
                "use_shared_embedding needs kernels of torchao's: set qmode to 'torchao:8da4w'"
            )

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> LlmConfig:
        """A configuration of the arguments of an older command line.

        Args:
            args: arguments that are not there leave the defaults.

        Raises:
            ValueError: an argument has no such value, or an adapter has no configuration.
        """
        made = cls()
        for name, (paths, convert) in _ARGUMENTS.items():
            value = getattr(args, name, None)
            if not hasattr(args, name) or (convert is not None and not value):
                continue
            for path in paths.split():
                owner, _, last = path.rpartition(".")
                setattr(_inside(made, owner), last, value if convert is None else convert(value))
        made.base.lora_config = _adapter(args)
        if getattr(args, "vgf_quantize_scope", None):
            made.quantization.quantize_scope = QuantizeScope(args.vgf_quantize_scope)
        if getattr(args, "group_size", None):
            made.backend.openvino.nncf_compression_group_size = args.group_size
        if getattr(args, "mlx", False):
            made.model.use_kv_cache = True
        if getattr(args, "use_torchao_kernels", False):
            made.backend.torchao.use_torchao_kernels_linear = True
            made.backend.torchao.use_torchao_kernels_tied_embedding = True
        return made


def _inside(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, name)
    return config


def _adapter(args: argparse.Namespace) -> LoraConfig | None:
    weights = getattr(args, "adapter_checkpoint", None)
    if not weights:
        return None
    config = getattr(args, "adapter_config", None)
    if not config:
        raise ValueError("--adapter_checkpoint needs --adapter_config: give both")
    return LoraConfig(adapter_checkpoint=weights, adapter_config=config)


Convert = Callable[[Any], Any]


def _same(section: str, names: str) -> dict[str, tuple[str, Convert | None]]:
    """Arguments that are fields of a section under the same names."""
    return {name: (f"{section}.{name}", None) for name in names.split()}


# The path of each argument's field, and how it is converted; such arguments may be empty.
_ARGUMENTS: dict[str, tuple[str, Convert | None]] = {
    "model": ("base.model_class", ModelType),
    **_same("base", "params checkpoint tokenizer_path metadata use_lora"),
    "preq_mode": ("base.preq_mode", PreqMode),
    **_same("base", "preq_group_size preq_embedding_quantize"),
    "dtype_override": ("model.dtype_override", DtypeOverride),
    **_same(
        "model",
        "enable_dynamic_shape use_shared_embedding use_sdpa_with_kv_cache expand_rope_table "
        "use_attention_sink output_prune_map input_prune_map use_kv_cache quantize_kv_cache "
        "local_global_attention",
    ),
    **_same(
        "export",
        "max_seq_length max_context_length output_dir output_name so_library export_only "
        "foundation_weights_file lora_weights_file",
    ),
    "quantization_mode": ("quantization.qmode", None),
    "pt2e_quantize": ("quantization.pt2e_quantize", Pt2eQuantize),
    "use_spin_quant": ("quantization.use_spin_quant", SpinQuant),
    **_same(
        "quantization",
        "embedding_quantize group_size use_qat calibration_tasks calibration_limit "
        "calibration_seq_length calibration_data",
    ),
    **_same("debug", "profile_memory profile_path generate_etrecord generate_full_logits verbose"),
    **{
        name: (f"backend.{name}.enabled", None)
        for name in ("xnnpack", "coreml", "vulkan", "qnn", "mps", "mlx", "openvino", "vgf")
    },
    "xnnpack_extended_ops": ("backend.xnnpack.extended_ops", None),
    "coreml_enable_state": ("backend.coreml.enable_state", None),
    "coreml_preserve_sdpa": ("backend.coreml.preserve_sdpa", None),
    "coreml_quantize": ("backend.coreml.quantize", CoreMLQuantize),
    "coreml_ios": ("backend.coreml.ios", None),
    "coreml_compute_units": ("backend.coreml.compute_units", CoreMLComputeUnit),
    "vulkan_force_fp16": ("backend.vulkan.force_fp16", None),
    "use_qnn_sha": ("backend.qnn.use_sha", None),
    **_same("backend.qnn", "soc_model optimized_rotation_path num_sharding"),
    "openvino_device": ("backend.openvino.device", None),
    **_same("backend.openvino", "openvino_awq openvino_scale_estimation"),
    "vgf_compile_spec": ("backend.vgf.compile_spec", None),
    "vgf_quantize_scope": ("backend.vgf.quantize_scope", VgfQuantizeScope),
    **_same("backend.torchao", "use_torchao_kernels_linear use_torchao_kernels_tied_embedding"),
}
