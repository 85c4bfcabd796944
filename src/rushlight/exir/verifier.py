"""The check of a graph's dialect."""

from __future__ import annotations

from typing import Any

from torch._export.verifier import SpecViolationError
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule

from rushlight.edge import EdgeCompileConfig
from rushlight.edge.operators import LEFT_PLAIN, EdgeOpOverload
from rushlight.errors import ExportError
from rushlight.ir.dialect import EDGE
from rushlight.ir.verify import verify


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
            target = node.target
            is_plain = isinstance(target, OpOverload) and not isinstance(target, EdgeOpOverload)
            if is_plain and target not in LEFT_PLAIN and target not in self._excepted:
                raise SpecViolationError(
                    f"{node.name} calls {target}, which is not an operator of the Edge dialect: "
                    f"give a graph that to_edge() made"
                )
        try:
            verify(program.graph, EDGE, "the graph", self._excepted)
        except ExportError as error:
            raise SpecViolationError(str(error)) from error

    def is_valid(self, program: ExportedProgram | GraphModule) -> bool:
        """Whether the check passes."""
        try:
            self(program)
        except SpecViolationError:
            return False
        return True
