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

_OPERATOR_CONFIGS = "rushlight.backends.xnnpack.operator_configs"
_ANNOTATORS = "rushlight.backends.xnnpack.annotators"
_PATTERNS = "rushlight.exir.xnnpack.patterns"
_OPENVINO_QUANTIZER = "rushlight.backends.openvino.quantizer"
_NNCF = ("OpenVINOQuantizer", "QuantizationMode", "quantize_model")
_COREML_FILES = "rushlight.backends.coreml.files"
_GENERIC = (
    "Abs Add AvgPooling BMM Cat Ceil Clamp Clone CloneDimOrder ConstantPad Cos "
    "DeQuantizedPerTensor Div Elu Exp Floor Gelu Hardswish Hardtanh LeakyReLU Log MaxPool2d "
    "Maximum MeanDim Minimum Mul Neg Permute Pow QuantizedPerTensor ReLU ReciprocalSquareRoot "
    "Sigmoid Sin SliceCopy Softmax SquareRoot Sub Tanh ToDimOrderCopy UnsqueezeCopy "
    "UpsampleBilinear2d ViewCopy"
)
_WEIGHTED = "Addmm Convolution Linear MM"
_OTHER = "BatchNorm MaxDim Prelu"
_AFFINE = "ChooseQParamsAffine DeQuantizeAffine QuantizeAffine"


def _operators(names: str) -> tuple[str, ...]:
    return tuple(f"{name}Config" for name in names.split())


# Modules of `backends.transforms`, where their names are here, and these names.
_TRANSFORMS = {
    "addmm_mm_to_linear": (
        "addmm_to_linear",
        "AddmmToLinearTransform apply_addmm_mm_to_linear_transform get_dqlinear_input get_shape "
        "replace_addmm_mm_with_linear replace_linear_view_copy_input_output",
    ),
    "aten_to_dialect_pass": (
        "aten_to_dialect",
        "AtenToDialectPass DialectNodeSpec SubstitutionFn",
    ),
    "convert_dtype_pass": ("convert_dtype", "ConvertDtypePass I64toI32"),
    "decompose_channels_last_pass": ("decompose_channels_last", "DecomposeChannelsLastPass"),
    "decompose_sdpa": ("decompose_attention", "DecomposeScaledDotProductAttention"),
    "fuse_batch_norm_with_conv": ("fuse_batch_norm", "FuseBatchNormWithConvPass"),
    "fuse_cascaded_transpose_or_permute_ops": (
        "layout.fuse_cascaded_reorders",
        "FuseCascadedTransposeOrPermuteOps",
    ),
    "fuse_cascaded_view_ops": ("layout.fuse_cascaded_views", "FuseCascadedViewOps"),
    "fuse_transpose_or_permute_op_pairs_pass": (
        "layout.fuse_reorder_pairs",
        "FuseTransposeOrPermuteOpPairsPass",
    ),
    "fuse_view_copy": ("layout.fuse_views", "FuseViewCopyTransform"),
    "mean_to_sum_div": ("mean_to_sum_div", "MeanToSumDiv"),
    "postpone_permute_below_squeeze_view": (
        "layout.postpone_permutes",
        "PostponePermuteOpBelowSqueezeOrUnsqueezeLikeView",
    ),
    "quantize_fused_convbn_bias_pass": ("quantize_bias", "QuantizeFusedConvBnBiasAtenPass"),
    "rank_0_to_rank_1": ("rank_0_to_rank_1", "Rank0ToRank1Pass"),
    "remove_clone_ops": ("remove_clones", "RemoveCloneOpsTransform"),
    "remove_getitem_op": ("remove_getitem", "RemoveGetItemPass"),
    "remove_permutes_around_elementwise_ops": (
        "layout.remove_permutes",
        "RemovePermutesAroundElementwiseOps",
    ),
    "replace_nop_transpose_or_permute_with_view": (
        "layout.reorders_to_views",
        "ReplaceNopTransposeOrPermuteWithViewPass",
    ),
    "replace_scalar_with_tensor": ("scalars_to_tensors", "ReplaceScalarWithTensorArgPass"),
    "view_copy_to_squeeze_unsqueeze": (
        "layout.views_to_squeezes",
        "ViewCopyToSqueezeUnsqueezePass",
    ),
}

MODULES: dict[str, dict[str, str]] = {
    **{
        f"backends.transforms.{name}": dict.fromkeys(
            names.split(), f"rushlight.exir.transforms.{ours}"
        )
        for name, (ours, names) in _TRANSFORMS.items()
    },
    "backends.transforms": dict.fromkeys(
        ("apply_addmm_mm_to_linear_transform", "get_shape"),
        "rushlight.exir.transforms.addmm_to_linear",
    ),
    "backends.transforms.permute_pass_utils": {
        **dict.fromkeys(
            (
                "FuseOpPairsAcrossBranchesPass",
                "HierarchicalInplacePassInterface",
                "RemoveOrReplacePassInterface",
            ),
            "rushlight.exir.transforms.bases",
        ),
        **dict.fromkeys(
            ("get_arg", "get_edge_overload_packet", "set_arg"),
            "rushlight.exir.transforms.arguments",
        ),
        **dict.fromkeys(
            ("get_permuted_dims", "get_shape", "get_transposed_dims"),
            "rushlight.exir.transforms.layout.orders",
        ),
    },
    "backends.xnnpack": {
        **_XNNPACK,
        **_CONFIGS,
    },
    "backends.xnnpack._passes": {"XNNPACKPassManager": "rushlight.backends.xnnpack.pass_manager"},
    "backends.xnnpack.partition.config": dict.fromkeys(
        (
            *_operators(_GENERIC.replace(" Elu ", " ")),
            *_operators(_WEIGHTED),
            *_operators(_OTHER),
            *_operators(_AFFINE),
            "ALL_PARTITIONER_CONFIGS",
            "XNNPartitionerConfig",
        ),
        _OPERATOR_CONFIGS,
    ),
    "backends.xnnpack.partition.config.gemm_configs": dict.fromkeys(
        ("GEMMConfig", *_operators(_WEIGHTED)), _OPERATOR_CONFIGS
    ),
    "backends.xnnpack.partition.config.generic_node_configs": dict.fromkeys(
        ("GenericNodePartitionerConfig", *_operators(_GENERIC)), _OPERATOR_CONFIGS
    ),
    "backends.xnnpack.partition.config.node_configs": dict.fromkeys(
        _operators(_OTHER), _OPERATOR_CONFIGS
    ),
    "backends.xnnpack.partition.config.quant_affine_configs": dict.fromkeys(
        ("QDQAffineConfigs", *_operators(_AFFINE)), _OPERATOR_CONFIGS
    ),
    "backends.xnnpack.partition.config.xnnpack_config": {
        "ConfigPrecisionType": "rushlight.backends.xnnpack.precision",
        "XNNPartitionerConfig": _OPERATOR_CONFIGS,
    },
    "backends.xnnpack.partition.graphs.bilinear_2d": {
        "get_graphs": f"{_PATTERNS}:resizing_graphs",
        "get_graphs_dict": f"{_PATTERNS}:resizing",
    },
    "backends.xnnpack.partition.graphs.sdpa": {"get_graphs": f"{_PATTERNS}:attention_graphs"},
    "backends.xnnpack.partition.xnnpack_partitioner": dict(_PARTITIONERS),
    "backends.xnnpack.recipes": dict.fromkeys(
        ("XNNPACKRecipeProvider", "XNNPackRecipeType", "recipe_registry"),
        "rushlight.backends.xnnpack.recipes",
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
    "backends.xnnpack.utils.quant_utils": dict.fromkeys(
        (
            *("IS_IMPLICIT_Q_DQ_TAG", "is_tagged_as_implicit_q_dq", "tag_as_implicit_q_dq"),
            *("is_affine_qdq", "is_dequant", "is_dynamic_qdq", "is_qparam", "is_quant"),
            *("is_per_channel", "is_per_channel_group", "is_per_tensor", "is_per_token"),
            *("is_tensor_subnormal", "validate_quant_scales", "validate_quant_zeropoints"),
            "extract_qdq_affine_op_args_for_decomposed_ops",
        ),
        "rushlight.exir.xnnpack.quantizing",
    ),
    "backends.xnnpack.utils.utils": {
        **dict.fromkeys(
            (
                *("PERM_NCHW_TO_NHWC", "PERM_NHWC_TO_NCHW", "check_or_raise", "get_input_node"),
                *("get_relu_fused_node", "get_source_fn", "is_getitem", "is_node"),
                "normalize_mean_dims",
            ),
            "rushlight.exir.xnnpack.nodes",
        ),
        **dict.fromkeys(
            ("get_param_tensor", "get_tensor_name", "is_get_attr_node", "is_param_node"),
            "rushlight.exir.placeholders",
        ),
        "get_groups_from_conv": _ANNOTATORS,
        "is_depthwise_conv": "rushlight.backends.xnnpack.operator_facts",
    },
    "kernels.portable": {},
    "kernels.quantized": {},
    "backends.xnnpack.quantizer.xnnpack_quantizer": {
        **dict.fromkeys(
            (
                *("QuantPattern", "QuantizationConfig", "XNNPACKQuantizer"),
                "get_symmetric_quantization_config",
            ),
            "rushlight.backends.xnnpack.quantizer",
        ),
        **dict.fromkeys(
            (
                *("ADAPTIVE_AVG_POOL2D_TARGETS", "ADD_TARGETS", "CAT_TARGETS", "CONV_TARGETS"),
                *("CONV_TRANSPOSE_TARGETS", "LINEAR_TARGETS", "MUL_TARGETS"),
            ),
            _ANNOTATORS,
        ),
    },
    "backends.xnnpack.quantizer.xnnpack_quantizer_utils": {
        **dict.fromkeys(
            (
                *("OperatorConfig", "OperatorPatternType", "QuantizationConfig"),
                *("QuantizationSpec", "get_bias_qspec", "get_input_act_qspec"),
                *("get_output_act_qspec", "get_weight_qspec"),
            ),
            "torchao.quantization.pt2e.quantizer",
        ),
        **dict.fromkeys(
            (
                *("AnnotatorType", "OP_TO_ANNOTATOR", "change_quantization_config"),
                *("is_relu_node", "register_annotator"),
            ),
            _ANNOTATORS,
        ),
        "propagate_annotation": "rushlight.backends.xnnpack.quantizer",
    },
    "backends.transforms.utils": dict.fromkeys(
        (
            "create_constant_placeholder",
            "create_mutable_buffer",
            "delete_constant_placeholder",
            "get_param_tensor",
            "is_get_attr_node",
            "is_param_node",
        ),
        "rushlight.exir.placeholders",
    ),
    "backends.transforms.duplicate_dynamic_quant_chain": {
        "DuplicateDynamicQuantChainPass": "rushlight.quantization",
    },
    "backends.openvino": {
        "OpenVINOQuantizer": _OPENVINO_QUANTIZER,
        "OpenvinoBackend": "rushlight.backends.openvino",
        "OpenvinoPartitioner": "rushlight.backends.openvino",
    },
    "backends.openvino.partitioner": {
        "OpenvinoOperatorsSupport": "rushlight.backends.openvino.partitioner",
        "OpenvinoPartitioner": "rushlight.backends.openvino",
    },
    "backends.openvino.quantizer": dict.fromkeys(_NNCF, _OPENVINO_QUANTIZER),
    "backends.openvino.quantizer.quantizer": {
        **dict.fromkeys(_NNCF, _OPENVINO_QUANTIZER),
        "QUANT_ANNOTATION_KEY": "torchao.quantization.pt2e.quantizer.quantizer:Q_ANNOTATION_KEY",
    },
    "backends.openvino.preprocess": {"OpenvinoBackend": "rushlight.backends.openvino"},
    "backends.apple.coreml.partition": {"CoreMLPartitioner": "rushlight.backends.coreml"},
    "backends.apple.coreml.partition.coreml_partitioner": {
        "CoreMLPartitioner": "rushlight.backends.coreml"
    },
    "backends.apple.coreml.compiler.coreml_preprocess": {
        "COMPILE_SPEC_KEYS": f"{_COREML_FILES}:SpecKey",
        "CoreMLBackend": "rushlight.backends.coreml",
        "MODEL_PATHS": f"{_COREML_FILES}:ModelPath",
        "ModelDebugInfo": _COREML_FILES,
        "ModelMetadata": _COREML_FILES,
    },
    "backends.apple.coreml.compiler.torch_ops": {"is_fbcode": "rushlight.exir.target_recipes"},
    "backends.apple.coreml.logging": {"get_coreml_log_level": "rushlight.backends.coreml.tools"},
    "backends.apple.coreml.quantizer": {"CoreMLQuantizer": "rushlight.backends.coreml.quantizer"},
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

WHOLE: dict[str, str] = {
    # Importing it defines operators.
    "backends.xnnpack.utils.xnnpack_constants": "rushlight.backends.xnnpack.constants",
    "backends.transforms.channels_last_ops": "rushlight.exir.transforms.channels_last_ops",
}

ABSENT: dict[str, str] = {
    f"backends.{vendor}": "its backend needs the vendor's software: see docs/new-backend.md"
    for vendor in ("qualcomm", "mediatek", "samsung", "nxp", "cadence", "arm")
}
