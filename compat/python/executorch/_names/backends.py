"""`executorch.backends`: XNNPACK, OpenVINO, Core ML, passes over graphs."""

from __future__ import annotations

_XNNPACK = {
    "XnnpackBackend": "rushlight.backends.xnnpack",
    "XnnpackPartitioner": "rushlight.backends.xnnpack",
}
_CONFIGS = {
    "get_xnnpack_edge_compile_config": "rushlight.backends.xnnpack.configs",
    "get_xnnpack_executorch_backend_config": "rushlight.backends.xnnpack.configs",
}

MODULES: dict[str, dict[str, str]] = {
    "backends.xnnpack": {
        **_XNNPACK,
        **_CONFIGS,
    },
    "backends.xnnpack.partition.xnnpack_partitioner": {
        "XnnpackPartitioner": "rushlight.backends.xnnpack"
    },
    "backends.xnnpack.xnnpack_preprocess": {"XnnpackBackend": "rushlight.backends.xnnpack"},
    "backends.xnnpack.utils.configs": dict(_CONFIGS),
    "backends.xnnpack.quantizer.xnnpack_quantizer": {
        "XNNPACKQuantizer": "rushlight.quantization:CpuQuantizer",
        "get_symmetric_quantization_config": "rushlight.quantization",
    },
    "backends.xnnpack.quantizer.xnnpack_quantizer_utils": {
        "QuantizationConfig": "rushlight.quantization"
    },
    "backends.transforms.duplicate_dynamic_quant_chain": {
        "DuplicateDynamicQuantChainPass": "rushlight.quantization",
    },
    "backends.openvino": {
        "OpenvinoBackend": "rushlight.backends.openvino",
        "OpenvinoPartitioner": "rushlight.backends.openvino",
    },
    "backends.openvino.partitioner": {"OpenvinoPartitioner": "rushlight.backends.openvino"},
    "backends.openvino.preprocess": {"OpenvinoBackend": "rushlight.backends.openvino"},
    "backends.apple.coreml.partition": {"CoreMLPartitioner": "rushlight.backends.coreml"},
    "backends.apple.coreml.compiler": {"CoreMLBackend": "rushlight.backends.coreml"},
}

ABSENT: dict[str, str] = {
    f"backends.{vendor}": "its backend needs the vendor's software: see docs/new-backend.md"
    for vendor in ("qualcomm", "mediatek", "samsung", "nxp", "cadence", "arm")
}
