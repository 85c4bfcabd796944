"""Options of the compiler, with ExecuTorch's names; plain data, read by the later stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.ir.dialect import LAYOUT_OPERATORS
from rushlight.ir.spec import TensorSpec

Config = TypeVar("Config", "EdgeCompileConfig", "ExecutorchBackendConfig", "MemoryPlanningPass")
DEBUG_LEVELS = ("lines", "full", "none")
"""How much of the map to Python lines a file has."""


@dataclass(frozen=True)
class EdgeCompileConfig:
    """How to lower to the Edge dialect.

    Attributes:
        _check_ir_validity: verify the graph against the dialect tables.
        _skip_dim_order: keep operators that take memory formats instead of `dim_order_ops`.
        _core_aten_ops_exception_list: operators that are accepted although the dialect tables do
            not have them.
        preserve_ops: operators to keep whole instead of decomposing them.
        keep_asserts: run the assertions on computed values (`torch._check(n < 8)` on an `item()`),
            as eager does. ExecuTorch drops them and has no kernels for them; with False,
            ExecuTorch can run the file too.
        decompositions: your own rules: a mapping from an operator (your own or torch's) to a
            function of its arguments that computes the result with other operators. They replace
            built-in rules for the same operators; `preserve_ops` takes precedence over both.
    """

    _check_ir_validity: bool = True
    _skip_dim_order: bool = False
    _core_aten_ops_exception_list: list[OpOverload] | None = field(default_factory=list)
    preserve_ops: list[OpOverload] = field(default_factory=list)
    keep_asserts: bool = True
    decompositions: Mapping[OpOverload, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for operator in self.decompositions:
            if not isinstance(operator, OpOverload):
                raise ExportError(
                    f"EdgeCompileConfig.decompositions maps operators such as "
                    f"torch.ops.aten.add.Tensor to functions, got {operator!r}: name the overload "
                    f"too",
                    code=Code.INVALID_ARGUMENT,
                )

    @property
    def accepted(self) -> list[OpOverload]:
        """The operators that are accepted although the dialect tables do not have them."""
        layouts = LAYOUT_OPERATORS if self._skip_dim_order else ()
        return [*(self._core_aten_ops_exception_list or ()), *layouts]


@dataclass(frozen=True)
class MemoryPlanningPass:
    """Options of the memory planner: which values it places, and how.

    Attributes:
        memory_planning_algo: a planner to use instead of the built-in ones: from a list of
            `rushlight.plan.block.Block` to an offset for every block's id.
        memory_id_of: a function from a tensor's `TensorSpec` to the id of the memory that it is
            placed in (SRAM or DRAM, for example). Ids count from 1, which is the default. Mutable
            buffers are always placed in 1; the function is not called for them.
        alloc_graph_input: place user inputs in an arena (else the caller's memory is used).
        alloc_graph_output: place user outputs in an arena (else the caller provides memory).
        share_mutable_buffers: give buffers of one name in several methods the same memory (memory
            id 2), so that the methods share state.
        alignment: the alignment of every offset, in bytes; a power of two.
    """

    memory_planning_algo: Callable[..., Any] | None = None
    memory_id_of: Callable[[TensorSpec], int] | None = None
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    share_mutable_buffers: bool = False
    alignment: int = 16

    def __post_init__(self) -> None:
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise ExportError(
                f"MemoryPlanningPass.alignment must be a power of two, got {self.alignment}",
                code=Code.INVALID_ARGUMENT,
            )


@dataclass(frozen=True)
class ExecutorchBackendConfig:
    """How to make a program from Edge graphs.

    Attributes:
        passes: passes over each method's Edge graph, run first.
        memory_planning_pass: one for all methods, or one per method name.
        emit_stacktrace: store each instruction's Python line in the chain, as ExecuTorch does.
        segment_alignment, constant_tensor_alignment, delegate_alignment: in bytes.
        extract_delegate_segments: True puts each delegate's payload in a segment of its own, which
            is mapped and may be released after initialisation; False puts it inside the flatbuffer.
        remove_view_copy: views share their base's memory instead of being copied.
        external_constants: True puts constants in `_default_external_constant.ptd`; a callable
            names the file for each constant's node, or returns None to keep it in the program.
        emit_mutable_buffer_names: store the names of mutable buffers, by which a module's state is
            read and written.
        debug: how much of the map to Python lines goes into the file: "lines" keeps it under 2 %
            of the file or 16 KiB, whichever is more; "full" stores all of it; "none" stores none.
    """

    passes: Sequence[Callable[[GraphModule], Any]] = ()
    memory_planning_pass: MemoryPlanningPass | dict[str, MemoryPlanningPass] = MemoryPlanningPass()
    emit_stacktrace: bool = False
    segment_alignment: int = 128
    constant_tensor_alignment: int | None = None
    delegate_alignment: int | None = None
    extract_delegate_segments: bool = True
    remove_view_copy: bool = True
    external_constants: bool | Callable[[Node], str | None] = False
    emit_mutable_buffer_names: bool = True
    debug: str = "lines"

    def __post_init__(self) -> None:
        if self.debug not in DEBUG_LEVELS:
            raise ExportError(
                f"debug={self.debug!r}: it is one of {', '.join(map(repr, DEBUG_LEVELS))}",
                code=Code.INVALID_ARGUMENT,
            )
        planning = self.memory_planning_pass
        by_method = planning if isinstance(planning, dict) else {"": planning}
        for method, one in by_method.items():
            name = f"memory_planning_pass[{method!r}]" if method else "memory_planning_pass"
            checked_config(f"ExecutorchBackendConfig.{name}", one, MemoryPlanningPass)

    def planning_of(self, method: str) -> MemoryPlanningPass:
        """The planning options of one method."""
        if isinstance(self.memory_planning_pass, dict):
            return self.memory_planning_pass.get(method, MemoryPlanningPass())
        return self.memory_planning_pass


def checked_config(name: str, config: Config | None, kind: type[Config]) -> Config:
    """Options that a caller gave, or the default ones for None.

    Args:
        name: the argument's.
        config: what came.
        kind: what it must be.

    Raises:
        ExportError: it is something else, such as ExecuTorch's own type.
    """
    if config is None:
        return kind()
    if isinstance(config, kind):
        return config
    default = kind()
    told = []  # what both have, and was set
    for option in (f.name for f in fields(kind) if hasattr(config, f.name)):
        value = getattr(config, option)
        if value != getattr(default, option):
            told.append(f"{option}={value if isinstance(value, bool | int) else '...'}")
    raise ExportError(
        f"{name} is of the type {type(config).__module__}.{type(config).__qualname__}: give "
        f"rushlight.edge.{kind.__name__}({', '.join(told)})",
        code=Code.INVALID_ARGUMENT,
    )
