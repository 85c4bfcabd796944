"""`executorch.backends`: XNNPACK, OpenVINO, Core ML, passes over graphs."""

from __future__ import annotations

_PARTITIONERS = {
    "XnnpackPartitioner": "rushlight.backends.xnnpack",
    **dict.fromkeys(
        (
            "XnnpackDynamicallyQuantizedPartitioner",
            "XnnpackFloatingPointPartitioner",
            "XnnpackQuantizedPartitioner",
        ),
        "rushlight.backends.xnnpack.partitioner",
    ),
}
_XNNPACK = {"XnnpackBackend": "rushlight.backends.xnnpack", **_PARTITIONERS}
_CONFIGS = {
    "get_xnnpack_edge_compile_config": "rushlight.backends.xnnpack.configs",
    "get_xnnpack_executorch_backend_config": "rushlight.backends.xnnpack.configs",
}

MODULES: dict[str, dict[str, str]] = {
    "backends.xnnpack": {
        **_XNNPACK,
        **_CONFIGS,
    },
    "backends.xnnpack._passes": {"XNNPACKPassManager": "rushlight.backends.xnnpack.pass_manager"},
    "backends.xnnpack.partition.config.xnnpack_config": {
        "ConfigPrecisionType": "rushlight.backends.xnnpack.precision"
    },
    "backends.xnnpack.partition.xnnpack_partitioner": dict(_PARTITIONERS),
    "backends.xnnpack.recipes": dict.fromkeys(
        ("XNNPACKRecipeProvider", "XNNPackRecipeType"), "rushlight.backends.xnnpack.recipes"
    ),
    "backends.xnnpack.recipes.xnnpack_recipe_provider": {
        "XNNPACKRecipeProvider": "rushlight.backends.xnnpack.recipes"
    },
    "backends.xnnpack.recipes.xnnpack_recipe_types": {
        "XNNPackRecipeType": "rushlight.backends.xnnpack.recipes"
    },
    "backends.xnnpack.xnnpack_preprocess": {"XnnpackBackend": "rushlight.backends.xnnpack"},
    "backends.xnnpack.utils.configs": {
        **_CONFIGS,
        "get_transform_passes": "rushlight.exir.passes",
    },
    "kernels.portable": {},
    "kernels.quantized": {},
    "backends.xnnpack.quantizer.xnnpack_quantizer": dict.fromkeys(
        ("QuantizationConfig", "XNNPACKQuantizer", "get_symmetric_quantization_config"),
        "rushlight.backends.xnnpack.quantizer",
    ),
    "backends.xnnpack.quantizer.xnnpack_quantizer_utils": {
        "QuantizationConfig": "rushlight.backends.xnnpack.quantizer"
    },
    "backends.transforms.utils": dict.fromkeys(
        (
            "create_constant_placeholder",
            "create_mutable_buffer",
            "delete_constant_placeholder",
        ),
        "rushlight.exir.placeholders",
    ),
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
    "backends.apple.coreml.partition.coreml_partitioner": {
        "CoreMLPartitioner": "rushlight.backends.coreml"
    },
    "backends.apple.coreml.compiler.coreml_preprocess": {
        "CoreMLBackend": "rushlight.backends.coreml"
    },
    "backends.apple.coreml.compiler": {"CoreMLBackend": "rushlight.backends.coreml"},
    "backends.apple.coreml.recipes": {
        **dict.fromkeys(
            ("CoreMLRecipeProvider", "CoreMLRecipeType"), "rushlight.backends.coreml.recipes"
        ),
        "recipe_registry": "rushlight.recipes",
    },
    "backends.apple.coreml.recipes.coreml_recipe_provider": {
        "CoreMLRecipeProvider": "rushlight.backends.coreml.recipes"
    },
    "backends.apple.coreml.recipes.coreml_recipe_types": dict.fromkeys(
        ("COREML_BACKEND", "CoreMLRecipeType"), "rushlight.backends.coreml.recipes"
    ),
}

ABSENT: dict[str, str] = {
    f"backends.{vendor}": "its backend needs the vendor's software: see docs/new-backend.md"
    for vendor in ("qualcomm", "mediatek", "samsung", "nxp", "cadence", "arm")
}
