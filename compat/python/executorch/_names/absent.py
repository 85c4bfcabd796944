"""What to use in place of modules, and of names in modules, that do not exist here.

An entry for a module stands for all of its names that are not in the tables.
"""

from __future__ import annotations

_LOWERING = "to_edge and to_executorch do this step themselves"
_TRACE = "torch.export.export captures models"
_SERIALIZER = "serialize and deserialize take whole programs: make one of the graph"
_MOVE = "programs move values by instructions, which Interpreter.run follows; x.clone() copies"
_OWN_PASS = "a part of ExecuTorch's own lowering. " + _LOWERING
_SCRATCH = (
    "kernels get scratch memory from their context: an operator needs no variant that takes it "
    "as an argument"
)
_DEVICES = (
    "programs keep tensors in the memory of the processor, and a delegate copies what its device "
    "needs: leave propagate_device_config and the compile spec target_device out"
)
_LLM = "rushlight.llm exports and runs language models: see docs/llm/"
_XNNPACK_CONFIG = (
    "XnnpackPartitioner takes every operator that it can; leave calls out with "
    "executorch.exir.backend.operator_support.DontPartition"
)
_NNCF_WEIGHTS = (
    "rushlight.llm.export(..., quantize=...) quantises the weights of language models, and "
    "rushlight.quantize(model, args, recipe='int4-weights') those of others"
)
_ONE_METHOD = "each method has a Core ML model of its own, with ModelMetadata; none has several"
_COREML = "CoreMLPartitioner and CoreMLBackend give payloads; coremltools itself has the rest"

ABSENT: dict[str, str] = {
    # exir
    "exir": f"{_LOWERING}; {_TRACE}",
    "exir.control_flow.shape": "x.shape gives sizes, and torch.tensor(x.shape) a tensor of them",
    "exir.control_flow.tracing_context": "leave the decorator out: torch.cond, map and while_loop "
    "trace branches and bodies with their own operands",
    "exir.dim_order_utils": "rushlight.ir.spec.dim_order_of gives a tensor's dim order",
    "exir.pass_base": "a type of ExecuTorch's own sources; ExportPass has the methods to override",
    "exir.pass_manager": "PassManager runs passes over graphs",
    "exir.operator.convert.set_mapping_for_op": "to_out_variant looks operators up by itself",
    "exir.operator.convert.to_scratch_op": _SCRATCH,
    "exir.operator.manip": _SCRATCH,
    "exir.operator.manip.attach_calculate_upper_bound_shape_fn": (
        "ExecuTorch itself reads it nowhere; register_upper_bound_inference of "
        "executorch.exir.passes.sym_shape_eval_pass takes the rule"
    ),
    "exir.passes": _OWN_PASS,
    "exir.passes.constant_prop_pass": (
        "constant_prop_pass does it; create_constant_placeholder and delete_constant_placeholder "
        "of executorch.backends.transforms.utils add and remove one constant"
    ),
    "exir.passes.dynamic_shape_prop_pass": (
        "ExecuTorch 1.4.1 cannot import this module of its own either; "
        "ConstraintBasedSymShapeEvalPass gives specs their greatest sizes"
    ),
    "exir.passes.propagate_device_config": _DEVICES,
    "exir.passes.propagate_device_pass": _DEVICES,
    "exir.passes.to_scratch_op": _SCRATCH,
    "exir.passes.to_scratch_op_pass": _SCRATCH,
    "exir.passes.update_args": "node.update_arg and node.update_kwarg of torch.fx change one",
    "exir.program.get_real_program": (
        "ExecuTorch lists the name and does not define it; update_to_real_program of "
        "executorch.exir.program._fake_program gives a fake program the weights"
    ),
    "exir.schema": "a program's tables are those of rushlight.schema.program",
    "exir.serde.serialize.GraphModuleDeserializer": _SERIALIZER,
    "exir.serde.serialize.GraphModuleSerializer": _SERIALIZER,
    "exir.verification": "to_edge verifies, if EdgeCompileConfig._check_ir_validity is True",
    "exir.verification.interpreter.Uninitialized": "Interpreter.get_value_list has None for values "
    "that were not loaded",
    "exir.verification.interpreter.executorch_lib": _MOVE,
    "exir.verification.interpreter.move_impl": _MOVE,
    "exir.wrap": "torch.fx.experimental.proxy_tensor.make_fx gives tensors their proxies",
    # extension
    "extension.flat_tensor": "rushlight.serialize.ptd reads and writes data files (.ptd)",
    "extension.llm": _LLM,
    "extension.pybindings": "see executorch.extension.pybindings.portable_lib",
    # backends
    "backends.xnnpack": "see executorch.backends.xnnpack.partition.xnnpack_partitioner",
    "backends.xnnpack.partition.config": _XNNPACK_CONFIG,
    "backends.xnnpack.partition.xnnpack_partitioner": _XNNPACK_CONFIG,
    "backends.transforms.fuse_conv_with_clamp": (
        "it makes calls of Vulkan's own operators; our backends fuse clamps into convolutions"
    ),
    "backends.openvino.partitioner.PatternNode": (
        "it finds weights that NNCF packs in 4 bits; OpenvinoPartitioner takes those of "
        "rushlight.quantize(model, args, recipe='int4-weights') without it"
    ),
    "backends.openvino.quantizer.apply_nncf_data_aware_compression": _NNCF_WEIGHTS,
    "backends.openvino.quantizer.llm_compression": _NNCF_WEIGHTS,
    "backends.openvino.quantizer.observers": (
        "prepare_pt2e needs no observers of NNCF for weights alone: use "
        "rushlight.quantize(model, args, recipe='int8-weights') or 'int4-weights'"
    ),
    "backends.apple.coreml": _COREML,
    "backends.apple.coreml.compiler.coreml_preprocess.MULTIMETHOD_WEIGHT_SHARING_STRATEGY": (
        _ONE_METHOD
    ),
    "backends.apple.coreml.compiler.coreml_preprocess.MethodMetadata": _ONE_METHOD,
    "backends.apple.coreml.compiler.coreml_preprocess.MultifunctionModelMetadata": _ONE_METHOD,
    "backends.apple.coreml.compiler.torch_ops": (
        "a rule by which coremltools converts an operator: coremltools' register_torch_op adds "
        "rules, which CoreMLPartitioner asks for"
    ),
}
