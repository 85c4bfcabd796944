"""The export: sizes, files, what is logged, methods, and how weights are quantised."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar  # OmegaConf reads these

from rushlight.extension.llm.config.model import LoraConfig


@dataclass
class ExportConfig:
    """Sizes and files.

    Attributes:
        max_seq_length: the greatest number of tokens of a call.
        max_context_length: the greatest number of tokens of a text.
        output_dir: the folder of the program.
        output_name: the name of its file.
        so_library: a library of operators.
        export_only: write what is captured, and stop.
        foundation_weights_file, lora_weights_file: data files for weights.

    Raises:
        ValueError: a text has fewer tokens than a call.
    """

    max_seq_length: int = 128
    max_context_length: int = 128
    output_dir: str = "."
    output_name: str | None = None
    so_library: str | None = None
    export_only: bool = False
    foundation_weights_file: str | None = None
    lora_weights_file: str | None = None

    def __post_init__(self) -> None:
        if self.max_context_length < self.max_seq_length:
            raise ValueError(
                f"max_context_length={self.max_context_length} is less than "
                f"max_seq_length={self.max_seq_length}: raise the first, or lower the second"
            )


@dataclass
class DebugConfig:
    """What is told of an export.

    Attributes:
        profile_memory: write a trace of planned memory.
        profile_path: profile the export, into this file.
        generate_etrecord: write a record for developer tools.
        generate_full_logits: return the logits of all tokens, not of the last alone.
        verbose: log each step.
    """

    profile_memory: bool = False
    profile_path: str | None = None
    generate_etrecord: bool = False
    generate_full_logits: bool = False
    verbose: bool = False


@dataclass
class MethodConfig:
    """A method of a program that has several.

    Attributes:
        method_name: its name.
        lora_config: its adapter.
        export_seq_len: how many tokens it is captured with.
    """

    method_name: str
    lora_config: LoraConfig | None = None
    export_seq_len: int | None = None


@dataclass
class MultimethodConfig:
    """Several methods in one program.

    Attributes:
        methods: the methods.
        share_mutable_buffers: whether buffers of one name are one.
    """

    methods: list[MethodConfig] = field(default_factory=list)
    share_mutable_buffers: bool = False

    @property
    def enabled(self) -> bool:
        """Whether there are methods."""
        return bool(self.methods)


class Pt2eQuantize(str, Enum):
    """Ways to quantise a captured graph, each for one backend."""

    xnnpack_dynamic = "xnnpack_dynamic"
    xnnpack_dynamic_qc4 = "xnnpack_dynamic_qc4"
    openvino_4wo = "openvino_4wo"
    openvino_8wo = "openvino_8wo"
    qnn_8a8w = "qnn_8a8w"
    qnn_16a16w = "qnn_16a16w"
    qnn_16a4w = "qnn_16a4w"
    coreml_c4w = "coreml_c4w"
    coreml_8a_c8w = "coreml_8a_c8w"
    coreml_8a_c4w = "coreml_8a_c4w"
    coreml_baseline_8a_c8w = "coreml_baseline_8a_c8w"
    coreml_baseline_8a_c4w = "coreml_baseline_8a_c4w"
    vulkan_8w = "vulkan_8w"
    tosa_8a8w = "tosa_8a8w"
    ethosu_8a8w = "ethosu_8a8w"
    ethosu_16a8w = "ethosu_16a8w"
    vgf_8a8w = "vgf_8a8w"
    vgf_16a8w = "vgf_16a8w"


class SpinQuant(str, Enum):
    """Where weights are rotated before they are quantised."""

    cuda = "cuda"
    native = "native"


class QuantizeScope(str, Enum):
    """Which calls Arm's quantisers take."""

    full = "full"
    linear = "linear"


@dataclass
class QuantizationConfig:
    """How weights are quantised.

    Attributes:
        qmode: linear layers: one of `QMODE_OPTIONS`, or what an expression of `AO_QUANT_PATTERNS`
            finds.
        embedding_quantize: the embedding, "BITS,GROUP_SIZE"; a group of 0 is a row.
        pt2e_quantize: the captured graph, in place of `qmode`.
        group_size: how many neighbours of a row share a scale.
        use_spin_quant: rotate weights.
        use_qat: the checkpoint was trained with quantisation.
        quantize_scope: for Arm's quantisers.
        calibration_tasks, calibration_limit, calibration_seq_length, calibration_data: what it is
            calibrated with.
        use_hqq: search for scales.

    Raises:
        ValueError: there is no such `qmode`.
    """

    QMODE_OPTIONS: ClassVar[list[str]] = ["int8", "8da4w", "8da4w-gptq", "4w"]
    AO_QUANT_PATTERNS: ClassVar[list[str]] = [r"torchao:8da(\d+)w", r"torchao:fpa(\d+)w"]

    qmode: str | None = None
    embedding_quantize: str | None = None
    pt2e_quantize: Pt2eQuantize | None = None
    group_size: int | None = None
    use_spin_quant: SpinQuant | None = None
    use_qat: bool = False
    quantize_scope: QuantizeScope = QuantizeScope.full
    calibration_tasks: list[str] | None = None
    calibration_limit: int | None = None
    calibration_seq_length: int | None = None
    calibration_data: str = "Once upon a time"
    use_hqq: bool = True

    def __post_init__(self) -> None:
        if self.qmode and self.qmode not in self.QMODE_OPTIONS and not self.is_low_bit:
            raise ValueError(
                f"qmode={self.qmode!r}: give one of {self.QMODE_OPTIONS}, or a text that one of "
                f"{self.AO_QUANT_PATTERNS} finds"
            )

    @property
    def is_low_bit(self) -> bool:
        """Whether `qmode` names kernels of torchao's."""
        found = (re.findall(pattern, self.qmode or "") for pattern in self.AO_QUANT_PATTERNS)
        return any(len(matches) == 1 for matches in found)
