"""`executorch.runtime` and `executorch.extension`: running programs."""

from __future__ import annotations

_PORTABLE = "rushlight.portable_lib"
_RUNTIME = "rushlight.runtime"
_DATA_FILES = "rushlight.exir.data_files"
_EXPORT_UTIL = "rushlight.extension.export_util"
_LLM = "rushlight.extension.llm"
_WEIGHTS = f"{_LLM}.weights"
_CONVERT = dict.fromkeys(
    ("Convert", "fuse_along_output", "identity", "to_default", "to_exportable"),
    f"{_WEIGHTS}.convert",
)
_QUANTIZE = dict.fromkeys(
    ("dequantize_weight", "quantize_model", "quantize_stream", "quantize_weight"),
    f"{_WEIGHTS}.quantize",
)
_RECIPE = dict.fromkeys(("QuantConfig", "QuantRecipe", "QuantRule"), f"{_WEIGHTS}.recipe")

_EXPORTS = dict.fromkeys(
    ("export_to_edge", "export_to_exec_prog", "save_pte_program"), _EXPORT_UTIL
)

MODULES: dict[str, dict[str, str]] = {
    "runtime": {
        "BackendRegistry": "rushlight.runtime.registries",
        "Method": "rushlight.runtime.runtime",
        "OperatorRegistry": "rushlight.runtime.registries",
        "Program": "rushlight.runtime.runtime",
        "Runtime": _RUNTIME,
        "Verification": _RUNTIME,
    },
    "extension.pybindings.portable_lib": {
        **dict.fromkeys(
            (
                "BundledModule",
                "ExecuTorchMethod",
                "ExecuTorchModule",
                "ExecuTorchProgram",
                "_get_operator_names",
                "_get_registered_backend_names",
                "_is_available",
                "_load_bundled_program_from_buffer",
                "_load_for_executorch",
                "_load_for_executorch_from_buffer",
                "_load_for_executorch_from_bundled_program",
                "_load_program",
                "_load_program_from_buffer",
            ),
            _PORTABLE,
        ),
        "MethodMeta": "rushlight.runtime.runtime",
        "TensorInfo": "rushlight.runtime.runtime",
        "Verification": _RUNTIME,
    },
    "extension.flat_tensor.serialize.serialize": dict.fromkeys(
        ("FlatTensorConfig", "FlatTensorHeader", "FlatTensorSerializer"), _DATA_FILES
    ),
    "extension.flat_tensor.serialize.flat_tensor_schema": dict.fromkeys(
        ("DataSegment", "FlatTensor", "NamedData"), "rushlight.schema.flat_tensor"
    ),
    "extension.export_util": dict(_EXPORTS),
    "extension.export_util.utils": dict(_EXPORTS),
    "extension.llm.custom_ops": {},
    "extension.llm.export": {"LLMEdgeManager": f"{_LLM}.builder"},
    "extension.llm.export.builder": dict.fromkeys(("DType", "LLMEdgeManager"), f"{_LLM}.builder"),
    "extension.llm.export.config.llm_config": {
        "LlmConfig": f"{_LLM}.config.llm",
        **dict.fromkeys(
            (
                "BaseConfig",
                "DtypeOverride",
                "LoraConfig",
                "ModelConfig",
                "ModelType",
                "PreqMode",
            ),
            f"{_LLM}.config.model",
        ),
        **dict.fromkeys(
            (
                "DebugConfig",
                "ExportConfig",
                "MethodConfig",
                "MultimethodConfig",
                "Pt2eQuantize",
                "QuantizationConfig",
                "QuantizeScope",
                "SpinQuant",
            ),
            f"{_LLM}.config.export",
        ),
        **dict.fromkeys(
            (
                "BackendConfig",
                "CoreMLComputeUnit",
                "CoreMLConfig",
                "CoreMLQuantize",
                "EthosUConfig",
                "MLXConfig",
                "MPSConfig",
                "OpenvinoConfig",
                "QNNConfig",
                "TorchAOKernelsConfig",
                "TosaConfig",
                "VgfConfig",
                "VgfQuantizeScope",
                "VulkanConfig",
                "XNNPackConfig",
            ),
            f"{_LLM}.config.backends",
        ),
    },
    "extension.llm.export.export_passes": {
        "RemoveRedundantTransposes": f"{_LLM}.passes.remove_transposes",
        "ReplaceSDPAWithCustomSDPAPass": f"{_LLM}.passes.custom_attention",
    },
    "extension.llm.export.gguf": {
        **dict.fromkeys(
            (
                "ExportableGGUFTensor",
                "GGML_F16",
                "GGML_F32",
                "GGML_Q4_K",
                "GGML_Q5_K",
                "GGML_Q6_K",
                "Q4_K_GROUP_SIZE",
                "Q5_K_GROUP_SIZE",
                "Q6_K_GROUP_SIZE",
                "QK_K",
                "dequantize_gguf",
                "iter_gguf",
            ),
            f"{_WEIGHTS}.gguf",
        ),
        "implements": f"{_WEIGHTS}.gguf:ExportableGGUFTensor.implements",
        "_Q4_K_BLOCK_BYTES": f"{_WEIGHTS}.gguf:Q4_K_BLOCK_BYTES",
        "_Q5_K_BLOCK_BYTES": f"{_WEIGHTS}.gguf:Q5_K_BLOCK_BYTES",
        "_Q6_K_BLOCK_BYTES": f"{_WEIGHTS}.gguf:Q6_K_BLOCK_BYTES",
        "_max_uniform_group_size": f"{_WEIGHTS}.gguf:merged_groups",
    },
    "extension.llm.export.int4": {
        **dict.fromkeys(("ExportableInt4Tensor", "dequantize_int4_tensor"), f"{_WEIGHTS}.int4"),
        "implements": f"{_WEIGHTS}.int4:ExportableInt4Tensor.implements",
    },
    "extension.llm.export.load": dict.fromkeys(
        (
            "KeyMap",
            "Pair",
            "RawIter",
            "TieMap",
            "assert_all_materialized",
            "assign_one",
            "assign_state_dict",
            "iter_checkpoint",
            "load_checkpoint",
        ),
        f"{_WEIGHTS}.checkpoint",
    ),
    "extension.llm.export.nvfp4": {
        **dict.fromkeys(
            ("ExportableNVFP4Config", "ExportableNVFP4Tensor", "nvfp4_dequantize"),
            f"{_WEIGHTS}.nvfp4",
        ),
        "implements": f"{_WEIGHTS}.nvfp4:ExportableNVFP4Tensor.implements",
    },
    "extension.llm.export.partitioner_lib": dict.fromkeys(
        ("get_coreml_partitioner", "get_openvino_partitioner", "get_xnnpack_partitioner"),
        f"{_LLM}.partitioners",
    ),
    "extension.llm.export.quant": {**_CONVERT, **_QUANTIZE, **_RECIPE},
    "extension.llm.export.quant.convert": {**_CONVERT, "maybe_cast": f"{_WEIGHTS}.convert"},
    "extension.llm.export.quant.quantize": dict(_QUANTIZE),
    "extension.llm.export.quant.recipe": dict(_RECIPE),
    "extension.llm.export.quantize": {"quantize_model_": f"{_WEIGHTS}.layers"},
    "extension.llm.export.quantizer_lib": dict.fromkeys(
        (
            "DynamicQuantLinearOptions",
            "EmbeddingQuantOptions",
            "PT2EQuantOptions",
            "get_coreml_quantizer",
            "get_pt2e_quantization_params",
            "get_pt2e_quantizers",
        ),
        f"{_LLM}.quantizers",
    ),
    "extension.llm.runner": {
        "GenerationConfig": f"{_LLM}.stats",
        "Stats": f"{_LLM}.stats",
        "TextLLMRunner": f"{_LLM}.runner",
    },
    "extension.training": {},  # a name that is asked for has its own advice
    "extension.pytree": dict.fromkeys(
        ("TreeSpec", "tree_flatten", "tree_map", "tree_unflatten"), "torch.utils._pytree"
    ),
}

# Scripts replace functions of the first; importing the second defines operators.
WHOLE: dict[str, str] = {
    "extension.llm.export.export_llm": f"{_LLM}.command",
    **dict.fromkeys(
        (
            "extension.llm.custom_ops.custom_ops",
            "extension.llm.custom_ops.op_fallback",
            "extension.llm.custom_ops.op_tile_crop_aot",
            "extension.llm.custom_ops.preprocess_custom_ops",
        ),
        f"{_LLM}.custom_operators",
    ),
}

_VENDOR = (
    "its backend needs the vendor's software and ExecuTorch itself; use get_xnnpack_partitioner, "
    "get_openvino_partitioner or get_coreml_partitioner"
)
_VENDOR_QUANTISER = (
    "its backend needs the vendor's software and ExecuTorch itself; get_pt2e_quantizers has "
    "quantisers for XNNPACK"
)
_MULTIMODAL = (
    "models of images and sound have no runner: run text with TextLLMRunner, and the encoder of a "
    "model of your own with rushlight.load"
)
_GGUF = (
    "a GGUF file is exported whole: rushlight.llm.export('m.gguf'); its tensors are read by "
    "executorch.extension.llm.export.gguf.iter_gguf"
)
_EXAMPLE = "an example of training on a device, which is not built: train in PyTorch"

ABSENT: dict[str, str] = {
    "extension.audio": "compute features before the program runs, such as with "
    "WhisperFeatureExtractor of transformers",
    "extension.gguf_util": _GGUF,
    "extension.llm.custom_ops.model_sharding": "it splits programs for Qualcomm's processors",
    "extension.llm.custom_ops.spinquant": "it generates C code that our kernels do not need; "
    "torch.ops.llama.fast_hadamard_transform is defined by "
    "executorch.extension.llm.custom_ops.custom_ops",
    **{
        f"extension.llm.export.partitioner_lib.get_{name}_partitioner": _VENDOR
        for name in ("ethosu", "mps", "qnn", "tosa", "vgf", "vulkan")
    },
    **{
        f"extension.llm.export.quantizer_lib.get_{name}_quantizer": _VENDOR_QUANTISER
        for name in ("ethosu", "qnn", "tosa", "vgf", "vulkan")
    },
    "extension.llm.export.quantizer_lib.get_ov_quantizer": "it is NNCF's: quantise with "
    "nncf.torch.quantize_pt2e, or rushlight.llm.export(quantize='8da4w', backend='openvino')",
    "extension.llm.modules": "layers for torchtune's models: rushlight.llm.export takes models of "
    "transformers, and modules of your own that call rushlight.llm.attention",
    **{
        f"extension.llm.runner.{name}": _MULTIMODAL
        for name in ("Image", "MultimodalInput", "MultimodalRunner", "make_image_input")
    },
    **{
        f"extension.llm.runner.{name}": "it makes an input of MultimodalRunner, which is not here: "
        "give TextLLMRunner.generate a text"
        for name in ("make_audio_input", "make_raw_audio_input", "make_text_input")
    },
    "extension.llm.runner.make_token_input": "rushlight.llm.load(…).generate takes token ids",
    **{
        f"extension.llm.runner.{name}": "models of images have no runner; of text alone, give the "
        "ids of transformers' tokenizer to rushlight.llm.load(…).generate"
        for name in ("generate_hf", "generate_text_hf")
    },
    "extension.llm.tokenizers": "pip install pytorch-tokenizers has these classes; "
    "rushlight.llm.tokenizer.compile reads the same files",
    "extension.pybindings.aten_lib": "use executorch.extension.pybindings.portable_lib: kernels on "
    "ATen tensors are not built",
    "extension.training": "training on a device is not built: train in PyTorch, and export again",
    "extension.training.TrainingModule": "programs with gradients are not run on a device: train "
    "in PyTorch, and export again",
    "extension.training.get_sgd_optimizer": "weights of a program are not changed on a device: use "
    "torch.optim.SGD, and export again",
    "extension.training.examples.CIFAR": _EXAMPLE,
    "extension.training.examples.XOR": _EXAMPLE,
}
