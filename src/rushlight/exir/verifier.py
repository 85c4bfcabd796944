"""The checks of a graph's dialect."""

from __future__ import annotations

from typing import Any

import torch
from torch._export.verifier import SpecViolationError, Verifier
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule

from rushlight.edge import EdgeCompileConfig
from rushlight.edge.operators import LEFT_PLAIN, EdgeOpOverload
from rushlight.errors import Code, ExportError
from rushlight.ir.dialect import EDGE
from rushlight.ir.verify import verify
from rushlight.partition import LoweredBackendModule

ALLOWED_META_KEYS = frozenset(("spec", "stack_trace"))
# Operators outside Core ATen that ExecuTorch takes, too.
_ALSO_CORE = frozenset(
    (
        torch.ops.aten._upsample_bilinear2d_aa.default,
        torch.ops.aten.dequantize.self,
        torch.ops.aten.full_like.default,
        torch.ops.aten.max.default,
        torch.ops.aten.min.default,
        torch.ops.aten.mkldnn_rnn_layer.default,
        torch.ops.aten.quantize_per_tensor.default,
    )
)


class EXIRATenDialectVerifierBase(Verifier):
    """torch's check of a functional graph, which takes lowered modules too."""

    dialect = "OLD_EXIR_ATEN_DISABLED"

    def allowed_getattr_types(self) -> tuple[type[Any], ...]:
        """What a graph may hold."""
        return (GraphModule, LoweredBackendModule, torch.Tensor, torch.ScriptObject)

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        """What a graph may call, beside torch's functions of numbers."""
        return (*super().allowed_op_types(), torch._ops.OpOverloadPacket)

    def __call__(self, program: ExportedProgram | GraphModule) -> None:
        """Check a program or its graph.

        Raises:
            SpecViolationError: it is not of the dialect.
        """
        module: Any = program.graph_module if isinstance(program, ExportedProgram) else program
        self._check_graph_module(module)


def EXIRATenDialectVerifier(  # noqa: N802 - ExecuTorch's own name
    edge_compile_config: EdgeCompileConfig | None = None,
    class_only: bool = False,
    core_aten_ops_exception_list: Any = None,
    preserve_ops: Any = None,
) -> Any:
    """The check that a graph calls operators of Core ATen alone, those of other libraries aside.

    Args:
        edge_compile_config: has operators to except.
        class_only: return the class, as `verifiers` of an ExportedProgram lists it.
        core_aten_ops_exception_list, preserve_ops: more operators to except.

    Raises:
        ExportError: an operator of `preserve_ops` returns a view.
    """
    config = edge_compile_config or EdgeCompileConfig()
    kept = (*(preserve_ops or ()), *config.preserve_ops)
    view = next((op for op in kept if isinstance(op, OpOverload) and op.is_view), None)
    if view is not None:
        raise ExportError(
            f"preserve_ops has {view}, which returns a view: views become copies; leave it out",
            code=Code.INVALID_ARGUMENT,
        )
    excepted = {*kept, *(core_aten_ops_exception_list or ()), *config.accepted, *LEFT_PLAIN}

    class CoreATenVerifier(EXIRATenDialectVerifierBase):
        dialect = "OLD_EXIR_ATEN"

        def check_valid_op(self, op: Any) -> None:
            """Check the target of a call: SpecViolationError if it is not of Core ATen."""
            if not isinstance(op, OpOverload) or op.namespace != "aten":
                return
            is_core = torch.Tag.core in op.tags or torch.Tag.view_copy in op.tags
            if not is_core and op not in excepted and op not in _ALSO_CORE:
                raise SpecViolationError(
                    f"{op} is not of Core ATen: decompose it by run_decompositions, or give it in "
                    "EdgeCompileConfig(_core_aten_ops_exception_list=[...])"
                )

    return CoreATenVerifier if class_only else CoreATenVerifier()


def get_aten_verifier(config: EdgeCompileConfig) -> type[Verifier]:
    """The class of the check for a configuration, which may turn it off."""
    if not config._check_ir_validity:
        return EXIRATenDialectVerifierBase
    made: type[Verifier] = EXIRATenDialectVerifier(config, class_only=True)
    return made


class EXIREdgeDialectVerifier:
    """Checks that a graph is of the Edge dialect.

    Args:
        edge_compile_config: says whether to check, and which operators to except.
        class_only: return the class, which torch would make the verifier of.
        core_aten_ops_exception_list, preserve_ops: more operators to except.
    """

    def __new__(
        cls,
        edge_compile_config: EdgeCompileConfig | None = None,
        class_only: bool = False,
        core_aten_ops_exception_list: Any = None,
        preserve_ops: Any = None,
    ) -> Any:
        """The verifier, or the class."""
        return cls if class_only else super().__new__(cls)

    def __init__(
        self,
        edge_compile_config: EdgeCompileConfig | None = None,
        class_only: bool = False,
        core_aten_ops_exception_list: Any = None,
        preserve_ops: Any = None,
    ) -> None:
        config = edge_compile_config or EdgeCompileConfig()
        self._is_on = config._check_ir_validity
        self._excepted = [
            *(core_aten_ops_exception_list or ()),
            *(preserve_ops or ()),
            *config.accepted,
            *config.preserve_ops,
        ]

    def __call__(self, program: ExportedProgram | GraphModule) -> None:
        """Check a program or its graph.

        Raises:
            SpecViolationError: it is not of the Edge dialect; shows the graph around the fault.
        """
        if not self._is_on:
            return
        for node in program.graph.nodes:
            if node.op == "call_function":
                self.check_valid_edge_op(node.target)
        try:
            verify(program.graph, EDGE, "the graph", self._excepted)
        except ExportError as error:
            raise SpecViolationError(str(error)) from error

    def check_valid_edge_op(self, op: Any) -> None:
        """Check the target of a call: SpecViolationError for torch's own operators."""
        is_plain = isinstance(op, OpOverload) and not isinstance(op, EdgeOpOverload)
        if is_plain and op not in LEFT_PLAIN and op not in self._excepted:
            raise SpecViolationError(
                f"{op} is called, which is not an operator of the Edge dialect: give a graph that "
                f"to_edge() made"
            )

    def check_valid_op(self, op: Any) -> None:
        """Check the target of a call: SpecViolationError if it is none of the Edge dialect, or
        writes its arguments."""
        self.check_valid_edge_op(op)
        if isinstance(op, OpOverload) and op._schema.is_mutable:
            raise SpecViolationError(f"{op} writes its arguments: the Edge dialect is functional")

    def is_valid(self, program: ExportedProgram | GraphModule) -> bool:
        """Whether the check passes."""
        try:
            self(program)
        except SpecViolationError:
            return False
        return True
