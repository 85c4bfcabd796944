"""What programs use of a runtime, read from their files: kernels by dtype and dim order, backends,
and the kinds of nodes in the engine's payloads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rushlight.errors import Code, LoadError
from rushlight.inspect.effects import check_index, operator_name
from rushlight.runtime.source import map_file
from rushlight.schema import cpu_engine
from rushlight.schema import program as fb
from rushlight.schema.operators import SCHEMAS
from rushlight.schema.sizes import dtype_name
from rushlight.selective import products
from rushlight.selective.products import Products
from rushlight.serialize.bundle import program_in
from rushlight.serialize.file import PTEFile
from rushlight.serialize.pte import read_pte
from rushlight.serialize.segments import as_bytes

CPU, XNNPACK = "CpuBackend", "XnnpackBackend"
"""The backends that compute by the engine."""


@dataclass(slots=True)
class Uses:
    """What programs use, all together.

    Attributes:
        operators: the keys of each kernel that is called: dtypes and dim orders of its tensors, in
            the form of cpp/kernel/kernel.h, with and without the last one.
        dtypes: of the tensors that kernels are called with, by name.
        own: the operators among them that are the user's own, not the runtime's.
        backends: the ids of delegates' backends.
        nodes: the kinds of nodes in payloads of the cpu backend, such as "Product".
        products: what the float32 products among the calls need.
        weights: "nibbles" if products of rows with one scale have weights of 4 bits, "row_groups"
            if rows have scales in groups.
        tile_ops: the operations of the engine's tile programs, such as "ADD".
    """

    operators: dict[str, set[Call]] = field(default_factory=dict)
    dtypes: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    backends: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    products: set[Products] = field(default_factory=set)
    weights: set[str] = field(default_factory=set)
    tile_ops: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Call:
    """The tensors that a kernel is called with: (dtype, dim order) of each, in order, the return
    alias included."""

    tensors: tuple[tuple[int, tuple[int, ...]], ...]
    ends_in_tensor: bool

    def key(self, has_alias: bool) -> str:
        """The key that a kernel of this call has in the table.

        Args:
            has_alias: whether the kernel's last argument is the return alias, which keys leave out.
        """
        tensors = self.tensors[:-1] if has_alias and self.ends_in_tensor else self.tensors
        return "v1/" + "|".join(f"{d};{','.join(map(str, order))}" for d, order in tensors)


def uses_of(sources: Sequence[str | os.PathLike[str]]) -> Uses:
    """What the programs of some files use, all together.

    Raises:
        LoadError: a file cannot be read, is not a program, or is damaged; says which and where.
    """
    uses = Uses()
    for source in sources:
        try:
            pte = read_pte(program_in(map_file(source)))
            for plan in pte.program.execution_plan:
                _read_method(pte, plan, uses)
        except LoadError as error:
            name = Path(source).name
            if name in str(error):
                raise
            raise LoadError(str(error), code=error.code, where=name) from error
        schemas = bytes(as_bytes(pte.named_data.get(SCHEMAS, b"")))
        uses.own |= _own(schemas.decode(errors="replace"), uses)
    return uses


def _own(schemas: str, uses: Uses) -> set[str]:
    names = {line.split("(", 1)[0].strip() for line in schemas.splitlines()}
    return names & set(uses.operators)


def _read_method(pte: PTEFile, plan: fb.ExecutionPlan, uses: Uses) -> None:
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, fb.KernelCall):
                check_index(call.op_index, len(plan.operators), plan.name, "operator")
                name = operator_name(plan.operators[call.op_index])
                uses.operators.setdefault(name, set()).add(_call(plan, call, uses))
                if name in products.OPERATORS:
                    _add_product(plan, name, call, uses)
    for delegate in plan.delegates:
        uses.backends.add(delegate.id)
        if delegate.id == CPU:
            blobs = pte.delegate_blobs
            index = check_index(delegate.processed.index, len(blobs), plan.name, "payload")
            _read_payload(blobs[index], plan.name, uses)


def _add_product(plan: fb.ExecutionPlan, name: str, call: fb.KernelCall, uses: Uses) -> None:
    values = [plan.values[index].val for index in call.args]
    tensors = [value for value in values if isinstance(value, fb.Tensor)]
    if any(tensor.scalar_type == fb.ScalarType.FLOAT for tensor in tensors):
        uses.products.add(products.products_of(name, tensors[:-1]))  # without the return alias


def _call(plan: fb.ExecutionPlan, call: fb.KernelCall, uses: Uses) -> Call:
    tensors, ends_in_tensor = [], False
    for index in call.args:
        value = plan.values[check_index(index, len(plan.values), plan.name, "value")].val
        ends_in_tensor = isinstance(value, fb.Tensor)
        for tensor in _tensors(plan, value):
            uses.dtypes.add(dtype_name(tensor.scalar_type))
        if isinstance(value, fb.Tensor):
            tensors.append((int(value.scalar_type), tuple(value.dim_order)))
    return Call(tuple(tensors), ends_in_tensor)


def _tensors(plan: fb.ExecutionPlan, value: fb.KernelTypes) -> list[fb.Tensor]:
    """The tensors of an argument: itself, or the items of a list."""
    if isinstance(value, fb.Tensor):
        return [value]
    if not isinstance(value, fb.TensorList | fb.OptionalTensorList):
        return []
    items = [
        plan.values[check_index(i, len(plan.values), plan.name, "value")].val
        for i in value.items
        if i >= 0
    ]
    return [item for item in items if isinstance(item, fb.Tensor)]


def _read_payload(payload: object, method: str, uses: Uses) -> None:
    """What the nodes in a payload of the cpu backend need."""
    try:
        graph = cpu_engine.unpack(as_bytes(payload))  # type: ignore[arg-type]
    except (LoadError, ValueError, IndexError) as error:
        raise LoadError(
            f"the payload of a delegate cannot be read ({error}); export the model again",
            code=Code.DELEGATE_INVALID_COMPATIBILITY,
            where=method,
        ) from error
    for node in graph.nodes:
        operation = node.operation
        if operation is None:
            continue
        uses.nodes.add(type(operation).__name__)
        if isinstance(operation, cpu_engine.DynamicProduct):
            if operation.row_group_size != 0:
                uses.weights.add("row_groups")
            elif operation.bits != 8:
                uses.weights.add("nibbles")
        holders = (operation, getattr(operation, "epilogue", None))
        for program in (getattr(holder, "program", None) for holder in holders):
            uses.tile_ops |= _tile_ops(program.code if program is not None else [])


def _tile_ops(code: Sequence[int]) -> set[str]:
    """The operations of a tile program that have loops: the lowest byte of every third word."""
    known = {op.value: op.name for op in cpu_engine.TileOp if op >= cpu_engine.TileOp.ADD}
    return {known[word & 0xFF] for word in code[::3] if word & 0xFF in known}
