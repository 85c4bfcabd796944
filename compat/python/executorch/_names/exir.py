"""`executorch.exir` without `exir.backend`: lowering, passes, the schema of programs."""

from __future__ import annotations

_LOWERING = {
    "EdgeProgramManager": "rushlight.pipeline",
    "ExecutorchProgramManager": "rushlight.pipeline",
    "to_edge": "rushlight.pipeline",
    "to_edge_transform_and_lower": "rushlight.pipeline",
}
_CONFIGS = {
    "EdgeCompileConfig": "rushlight.edge",
    "ExecutorchBackendConfig": "rushlight.edge",
}
_SCHEMA = "rushlight.schema.program"

MODULES: dict[str, dict[str, str]] = {
    "exir": {
        **_LOWERING,
        **_CONFIGS,
        "ExportedProgram": "torch.export",
        "ExportGraphSignature": "torch.export.graph_signature",
        "load": "torch.export",
        "save": "torch.export",
    },
    "exir.capture": dict(_CONFIGS),
    "exir.capture._config": dict(_CONFIGS),
    "exir.program": dict(_LOWERING),
    "exir.program._program": dict(_LOWERING),
    "exir.dialects._ops": {"ops": "rushlight.edge.operators"},
    "exir.dialects.edge._ops": {
        "EdgeOpOverload": "rushlight.edge.operators",
        "EdgeOpOverloadPacket": "rushlight.edge.operators",
    },
    "exir.delegate": {"executorch_call_delegate": "rushlight.partition"},
    "exir.error": {
        "ExportError": "rushlight.errors",
        "InternalError": "rushlight.errors:ExportError",
    },
    "exir.graph_module": {"get_control_flow_submodules": "rushlight.partition"},
    "exir.lowered_backend_module": {
        "LoweredBackendModule": "rushlight.partition",
        "get_lowered_submodules": "rushlight.partition",
    },
    "exir.memory": {"alloc": "rushlight.ir.alloc"},
    "exir.pass_base": {
        "ExportPass": "rushlight.edge",
        "NodeMetadata": "rushlight.edge.export_pass",
        "PassResult": "rushlight.edge",
        "ProxyValue": "rushlight.edge.export_pass",
    },
    "exir.pass_manager": {"PassManager": "rushlight.edge"},
    "exir.passes": {
        "ExportPass": "rushlight.edge",
        "MemoryPlanningPass": "rushlight.edge",
    },
    "exir.passes.memory_planning_pass": {"MemoryPlanningPass": "rushlight.edge"},
    "exir.scalar_type": {"ScalarType": _SCHEMA},
    "exir.tensor": {"TensorSpec": "rushlight.ir.spec"},
    "exir.schema": dict.fromkeys(
        (
            "AllocationDetails",
            "BackendDelegate",
            "BackendDelegateDataReference",
            "BackendDelegateInlineData",
            "Bool",
            "BoolList",
            "Buffer",
            "Chain",
            "CompileSpec",
            "ContainerMetadata",
            "DataLocation",
            "DataSegment",
            "DelegateCall",
            "Double",
            "DoubleList",
            "EValue",
            "ExecutionPlan",
            "ExtraTensorInfo",
            "FreeCall",
            "Frame",
            "FrameList",
            "Instruction",
            "Int",
            "IntList",
            "JumpFalseCall",
            "KernelCall",
            "MoveCall",
            "NamedData",
            "Null",
            "Operator",
            "OptionalTensorList",
            "Program",
            "ScalarType",
            "String",
            "SubsegmentOffsets",
            "Tensor",
            "TensorDataLocation",
            "TensorList",
            "TensorShapeDynamism",
        ),
        _SCHEMA,
    ),
}

ABSENT: dict[str, str] = {
    "exir.capture.capture": "use torch.export.export, and give its result to to_edge",
    "exir.tracer": "torch.export.export traces models",
    "exir.emit": "EdgeProgramManager.to_executorch() emits programs",
}
