"""A finished program's values as torch has them, and the check of a graph's dialect."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch._export.verifier import SpecViolationError
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule

from rushlight.edge import EdgeCompileConfig
from rushlight.edge.operators import EdgeOpOverload
from rushlight.errors import Code, ExportError
from rushlight.exir.dim_orders import stride_from_dim_order
from rushlight.exir.tensors import get_scalar_type
from rushlight.ir.dialect import EDGE
from rushlight.ir.verify import verify
from rushlight.schema import program as schema


class Interpreter:
    """Loads the values of a program's only method.

    Args:
        program: of the schema.
    """

    def __init__(self, program: schema.Program) -> None:
        if len(program.execution_plan) != 1:
            raise ExportError(
                f"the program has {len(program.execution_plan)} methods: give one with one",
                code=Code.INVALID_ARGUMENT,
            )
        self.execution_plan = program.execution_plan[0]
        self._constants = program.constant_buffer
        self._values: list[Any] = [None] * len(self.execution_plan.values)

    def get_value_list(self) -> list[Any]:
        """The values that were loaded; None for others."""
        return list(self._values)

    def get_operators_list(self) -> list[OpOverload]:
        """The operators that the method calls."""
        found = []
        for one in self.execution_plan.operators:
            namespace, _, name = one.name.partition("::")
            packet = getattr(getattr(torch.ops, namespace), name)
            found.append(getattr(packet, one.overload or "default"))
        return found

    def load_value(self, index: int) -> Any:
        """The value at `index`; a tensor that is no constant has no content."""
        val: Any = self.execution_plan.values[index].val
        if isinstance(val, schema.Tensor):
            self._values[index] = self._tensor(val)
        elif isinstance(val, schema.TensorList | schema.OptionalTensorList):
            self._values[index] = [None if i < 0 else self.load_value(i) for i in val.items]
        elif isinstance(val, schema.IntList):
            self._values[index] = [self.load_value(i) for i in val.items]
        elif isinstance(val, schema.BoolList | schema.DoubleList):
            self._values[index] = list(val.items)
        elif not isinstance(val, schema.Null):
            self._values[index] = getattr(val, dataclasses.fields(val)[0].name)
        return self._values[index]

    def _tensor(self, val: schema.Tensor) -> torch.Tensor:
        dtype = get_scalar_type(val.scalar_type)
        strides = stride_from_dim_order(val.sizes, val.dim_order)
        made = torch.empty_strided(tuple(val.sizes), strides, dtype=dtype)
        if val.data_buffer_idx and val.data_buffer_idx < len(self._constants):
            stored = bytearray(self._constants[val.data_buffer_idx].storage)
            flat = torch.frombuffer(stored, dtype=dtype)
            made = flat.as_strided(tuple(val.sizes), strides)
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
            *config._core_aten_ops_exception_list,
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
            if is_plain and "sym_" not in str(target) and target not in self._excepted:
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
