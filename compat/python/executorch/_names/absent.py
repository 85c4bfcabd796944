"""What to use in place of modules, and of names in modules, that do not exist here.

An entry for a module stands for all of its names that are not in the tables.
"""

from __future__ import annotations

_LOWERING = "to_edge and to_executorch do this step themselves"
_TRACE = "torch.export.export captures models"
_SERIALIZER = "serialize and deserialize take whole programs: make one of the graph"
_OWN_PASS = "a part of ExecuTorch's own lowering. " + _LOWERING
_LLM = "rushlight.llm exports and runs language models: see docs/llm/"
_XNNPACK_CONFIG = (
    "XnnpackPartitioner takes every operator that it can; leave calls out with "
    "executorch.exir.backend.operator_support.DontPartition"
)
_NNCF = "use the quantisers of executorch.backends.xnnpack, or rushlight.quantize"
_COREML = "CoreMLPartitioner and CoreMLBackend give payloads; coremltools itself has the rest"

ABSENT: dict[str, str] = {
    # exir
    "exir": f"{_LOWERING}; {_TRACE}",
    "exir.control_flow": "use torch.cond and torch._higher_order_ops.while_loop",
    "exir.dim_order_utils": "rushlight.ir.spec.dim_order_of gives a tensor's dim order",
    "exir.graph": _TRACE,
    "exir.graph_module": "get_control_flow_submodules gives all branches and bodies",
    "exir.pass_base": "a type of ExecuTorch's own sources; ExportPass has the methods to override",
    "exir.pass_manager": "PassManager runs passes over graphs",
    "exir.passes": _OWN_PASS,
    "exir.print_program": "use `rushlight inspect`",
    "exir.program": f"{_LOWERING}; {_TRACE}",
    "exir.schema": "a program's tables are those of rushlight.schema.program",
    "exir.serde.serialize.GraphModuleDeserializer": _SERIALIZER,
    "exir.serde.serialize.GraphModuleSerializer": _SERIALIZER,
    "exir.tensor": "TensorSpec describes a value, and rushlight.ir.spec has the tables of dtypes",
    "exir.types": "TensorSpec describes a value",
    "exir.verification": "to_edge verifies, if EdgeCompileConfig._check_ir_validity is True",
    "exir.wrap": _TRACE,
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
    "backends.openvino.partitioner": "OpenvinoPartitioner takes every operator that it can",
    "backends.openvino.quantizer": _NNCF,
    "backends.openvino.OpenVINOQuantizer": _NNCF,
    "backends.apple.coreml": _COREML,
}
