"""The backends, each with its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


@dataclass
class XNNPackConfig:
    """XNNPACK.

    Attributes:
        enabled: use it.
        extended_ops: for all calls that it takes, not for linear layers alone.
    """

    enabled: bool = False
    extended_ops: bool = False


class CoreMLQuantize(str, Enum):
    """How Core ML stores weights: 4 bits with a scale for each block, or for each output."""

    b4w = "b4w"
    c4w = "c4w"


class CoreMLComputeUnit(str, Enum):
    """Where Core ML computes."""

    cpu_only = "cpu_only"
    cpu_and_gpu = "cpu_and_gpu"
    cpu_and_ne = "cpu_and_ne"
    all = "all"


@dataclass
class CoreMLConfig:
    """Core ML.

    Attributes:
        enabled: use it.
        enable_state: keep keys and values in its state.
        preserve_sdpa: keep attention as one operator.
        quantize: how weights are stored.
        ios: the oldest release that it must run on.
        compute_units: where it computes.

    Raises:
        ValueError: there is no such release.
    """

    enabled: bool = False
    enable_state: bool = False
    preserve_sdpa: bool = False
    quantize: CoreMLQuantize | None = None
    ios: int = 15
    compute_units: CoreMLComputeUnit = CoreMLComputeUnit.cpu_only

    def __post_init__(self) -> None:
        if self.ios not in (15, 16, 17, 18):
            raise ValueError(f"ios={self.ios}: give 15, 16, 17 or 18")


@dataclass
class VulkanConfig:
    """Vulkan, which needs ExecuTorch itself."""

    enabled: bool = False
    force_fp16: bool = False


@dataclass
class QNNConfig:
    """Qualcomm's processors, which need ExecuTorch itself."""

    enabled: bool = False
    use_sha: bool = False
    soc_model: str = "SM8650"
    use_qnn_sha: bool = False
    optimized_rotation_path: str | None = None
    num_sharding: int = 0


@dataclass
class MPSConfig:
    """Metal Performance Shaders, which need ExecuTorch itself."""

    enabled: bool = False


@dataclass
class OpenvinoConfig:
    """OpenVINO.

    Attributes:
        enabled: use it.
        device: where it computes.
        nncf_compression_group_size, openvino_awq, openvino_scale_estimation: how NNCF stores
            weights.
    """

    enabled: bool = False
    device: str = "CPU"
    nncf_compression_group_size: int = 32
    openvino_awq: bool = False
    openvino_scale_estimation: bool = False


@dataclass
class TorchAOKernelsConfig:
    """Torchao's kernels for ARM, which need ExecuTorch itself."""

    use_torchao_kernels_linear: bool = False
    use_torchao_kernels_tied_embedding: bool = False


@dataclass
class TosaConfig:
    """TOSA, which needs ExecuTorch itself."""

    enabled: bool = False
    version: str = "TOSA-1.0+INT"


@dataclass
class EthosUConfig:
    """Arm's Ethos-U, which needs ExecuTorch itself."""

    enabled: bool = False
    target: str = "ethos-u85-128"
    memory_mode: str = "default"
    system_config: str = "default"
    extra_flags: list[str] = field(default_factory=list)


class VgfQuantizeScope(str, Enum):
    """Which calls are quantised for VGF."""

    full = "full"
    linear = "linear"


@dataclass
class VgfConfig:
    """VGF, which needs ExecuTorch itself."""

    enabled: bool = False
    compile_spec: str | None = "TOSA-1.0+INT"
    compiler_flags: list[str] = field(default_factory=list)
    quantize_scope: VgfQuantizeScope = VgfQuantizeScope.full


@dataclass
class MLXConfig:
    """MLX, which needs ExecuTorch itself."""

    enabled: bool = False


@dataclass
class BackendConfig:
    """The backends."""

    xnnpack: XNNPackConfig = field(default_factory=XNNPackConfig)
    coreml: CoreMLConfig = field(default_factory=CoreMLConfig)
    vulkan: VulkanConfig = field(default_factory=VulkanConfig)
    qnn: QNNConfig = field(default_factory=QNNConfig)
    mps: MPSConfig = field(default_factory=MPSConfig)
    openvino: OpenvinoConfig = field(default_factory=OpenvinoConfig)
    torchao: TorchAOKernelsConfig = field(default_factory=TorchAOKernelsConfig)
    tosa: TosaConfig = field(default_factory=TosaConfig)
    ethosu: EthosUConfig = field(default_factory=EthosUConfig)
    vgf: VgfConfig = field(default_factory=VgfConfig)
    mlx: MLXConfig = field(default_factory=MLXConfig)
