"""`diff_pte`: how the tables and the constants of two program files differ, value by value.

`rushlight diff` compares what two programs compute and cost; this compares what is written.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rushlight.errors import LoadError
from rushlight.inspect.distance import errors_of
from rushlight.inspect.trace.etdump import DTYPES
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.serialize.file import PTEFile
from rushlight.serialize.pte import read_pte


@dataclass
class OperatorUsage:
    """An operator, "delegate:BACKEND" of a delegate, and which argument of it a value is."""

    name: str
    arg_index: int


@dataclass
class TensorInfo:
    """A tensor of a plan.

    Attributes:
        evalue_index: its index among the plan's values.
        scalar_type, sizes, data_buffer_idx: as the file has them.
        fqn: its name in the model; None if the file has none.
        operator_usages: the calls that take it.
    """

    evalue_index: int
    scalar_type: fb.ScalarType
    sizes: list[int]
    fqn: str | None
    data_buffer_idx: int
    operator_usages: list[OperatorUsage] = field(default_factory=list)


@dataclass
class FieldDiff:
    """A field of a table with other contents."""

    field_name: str
    value_a: Any
    value_b: Any


@dataclass
class ElementDiff:
    """An element of a tensor with another value, by its index in the data and by its indices."""

    flat_index: int
    multi_index: tuple[int, ...]
    value_a: float
    value_b: float


@dataclass
class TensorDataDiff:
    """A tensor that differs.

    Attributes:
        tensor_a, tensor_b: the tensor in both files.
        byte_size_a, byte_size_b: the sizes of its constant data; 0 if it has none.
        bytes_differ: whether the data differ.
        metadata_diffs: the fields that differ.
        num_elements, num_differing: of elements that both have, and that differ.
        max_abs_diff, mean_abs_diff: of those that differ.
        element_diffs: the first ones.
    """

    tensor_a: TensorInfo
    tensor_b: TensorInfo
    byte_size_a: int
    byte_size_b: int
    bytes_differ: bool
    metadata_diffs: list[FieldDiff] = field(default_factory=list)
    num_elements: int = 0
    num_differing: int = 0
    max_abs_diff: float = 0.0
    mean_abs_diff: float = 0.0
    element_diffs: list[ElementDiff] = field(default_factory=list)


@dataclass
class EValueDiff:
    """A value that differs and is not a tensor in both files.

    Attributes:
        evalue_index: its index among the plan's values.
        type_a, type_b: "Int", "Tensor" and the like.
        type_mismatch: whether these differ.
        field_diffs: else, the fields that do.
        operator_usages_a, operator_usages_b: the calls that take it.
    """

    evalue_index: int
    type_a: str
    type_b: str
    type_mismatch: bool = False
    field_diffs: list[FieldDiff] = field(default_factory=list)
    operator_usages_a: list[OperatorUsage] = field(default_factory=list)
    operator_usages_b: list[OperatorUsage] = field(default_factory=list)


@dataclass
class ExecutionPlanDiff:
    """A plan that differs; pairs that are equal in both files are None.

    Attributes:
        plan_index: its index.
        name_a, name_b: its names.
        operators_only_in_a, operators_only_in_b: "aten::add.out" and the like.
        delegates_only_in_a, delegates_only_in_b: backends, as often as they differ.
        non_const_buffer_sizes_a, non_const_buffer_sizes_b: the bytes of its planned memories.
        value_count_a, value_count_b, instruction_count_a, instruction_count_b: how many it has.
        tensor_diffs, evalue_diffs: values of the same index that differ.
        tensors_only_in_a, tensors_only_in_b: those behind the last value of the other.
    """

    plan_index: int
    name_a: str | None = None
    name_b: str | None = None
    operators_only_in_a: list[str] = field(default_factory=list)
    operators_only_in_b: list[str] = field(default_factory=list)
    delegates_only_in_a: list[str] = field(default_factory=list)
    delegates_only_in_b: list[str] = field(default_factory=list)
    non_const_buffer_sizes_a: list[int] | None = None
    non_const_buffer_sizes_b: list[int] | None = None
    value_count_a: int | None = None
    value_count_b: int | None = None
    instruction_count_a: int | None = None
    instruction_count_b: int | None = None
    tensor_diffs: list[TensorDataDiff] = field(default_factory=list)
    evalue_diffs: list[EValueDiff] = field(default_factory=list)
    tensors_only_in_a: list[TensorInfo] = field(default_factory=list)
    tensors_only_in_b: list[TensorInfo] = field(default_factory=list)

    def has_differences(self) -> bool:
        """Whether anything differs."""
        return self != ExecutionPlanDiff(self.plan_index)


@dataclass
class NamedDataDiff:
    """A key of named data: "A" or "B" if it is in one file only, else with other bytes."""

    key: str
    only_in: str
    bytes_differ: bool = False


@dataclass
class PTEDiffResult:
    """How two files differ.

    Attributes:
        path_a, path_b, size_a, size_b: the files.
        bitwise_equal: whether all of their bytes are equal; then nothing else is compared.
        version_a, version_b: the versions, if they differ.
        plan_diffs: the plans of the same index that differ.
        extra_plans_in_a, extra_plans_in_b: names of further ones.
        named_data_diffs: the named data that differ.
        error: why a file cannot be read; None if both can.
    """

    path_a: str
    path_b: str
    size_a: int
    size_b: int
    bitwise_equal: bool
    version_a: int | None = None
    version_b: int | None = None
    plan_diffs: list[ExecutionPlanDiff] = field(default_factory=list)
    extra_plans_in_a: list[str] = field(default_factory=list)
    extra_plans_in_b: list[str] = field(default_factory=list)
    named_data_diffs: list[NamedDataDiff] = field(default_factory=list)
    error: str | None = None


def diff_pte(
    data_a: Buffer, data_b: Buffer, path_a: str = "A", path_b: str = "B", max_samples: int = 10
) -> PTEDiffResult:
    """Compare two program files.

    Args:
        data_a, data_b: their bytes.
        path_a, path_b: their names, for the result.
        max_samples: how many elements of a tensor are told.
    """
    one, other = memoryview(data_a).cast("B"), memoryview(data_b).cast("B")
    result = PTEDiffResult(path_a, path_b, len(one), len(other), one == other)
    if result.bitwise_equal:
        return result
    try:
        files = read_pte(one), read_pte(other)
    except LoadError as error:
        result.error = f"Deserialization failed: {error}"
        return result
    a, b = (file.program for file in files)
    if a.version != b.version:
        result.version_a, result.version_b = a.version, b.version
    both = min(len(a.execution_plan), len(b.execution_plan))
    plans = (_Plans(i, files, max_samples).diff() for i in range(both))
    result.plan_diffs = [plan for plan in plans if plan.has_differences()]
    result.extra_plans_in_a, result.extra_plans_in_b = (
        [plan.name for plan in program.execution_plan[both:]] for program in (a, b)
    )
    result.named_data_diffs = list(_named_data(*files))
    return result


def _named_data(a: PTEFile, b: PTEFile) -> Iterator[NamedDataDiff]:
    for key in sorted({*a.named_data, *b.named_data}):
        if key not in b.named_data or key not in a.named_data:
            yield NamedDataDiff(key, "A" if key in a.named_data else "B")
        elif bytes(a.named_data[key]) != bytes(b.named_data[key]):
            yield NamedDataDiff(key, "", bytes_differ=True)


class _Plans:
    """The plans of one index in both files."""

    def __init__(self, index: int, files: tuple[PTEFile, PTEFile], samples: int) -> None:
        self._files = files
        self._samples = samples
        self._plans = [file.program.execution_plan[index] for file in files]
        self._uses = [_uses_of(plan) for plan in self._plans]
        self._result = ExecutionPlanDiff(index)

    def diff(self) -> ExecutionPlanDiff:
        """How they differ."""
        a, b = self._plans
        self._pair("name", a.name, b.name)
        self._pair("non_const_buffer_sizes", a.non_const_buffer_sizes, b.non_const_buffer_sizes)
        self._pair("value_count", len(a.values), len(b.values))
        self._pair(
            "instruction_count", *(sum(len(c.instructions) for c in p.chains) for p in (a, b))
        )
        self._only("operators", *(map(_operator, p.operators) for p in (a, b)))
        self._only("delegates", *((d.id for d in p.delegates) for p in (a, b)))
        for i, (one, other) in enumerate(zip(a.values, b.values, strict=False)):
            self._value(i, one.val, other.val)
        both = min(len(a.values), len(b.values))
        self._result.tensors_only_in_a, self._result.tensors_only_in_b = (
            [
                self._tensor(side, i, value.val)
                for i, value in enumerate(plan.values)
                if i >= both and isinstance(value.val, fb.Tensor)
            ]
            for side, plan in enumerate(self._plans)
        )
        return self._result

    def _pair(self, name: str, one: Any, other: Any) -> None:
        if one != other:
            setattr(self._result, f"{name}_a", one)
            setattr(self._result, f"{name}_b", other)

    def _only(self, name: str, one: Iterable[str], other: Iterable[str]) -> None:
        a, b = Counter(one), Counter(other)
        setattr(self._result, f"{name}_only_in_a", sorted((a - b).elements()))
        setattr(self._result, f"{name}_only_in_b", sorted((b - a).elements()))

    def _value(self, index: int, one: Any, other: Any) -> None:
        is_same = type(one) is type(other)
        if is_same and isinstance(one, fb.Tensor):
            diff = self._tensors(index, one, other)
            if diff.bytes_differ or diff.metadata_diffs:
                self._result.tensor_diffs.append(diff)
        elif not _equal(one, other):
            a, b = self._uses
            self._result.evalue_diffs.append(
                EValueDiff(
                    *(index, type(one).__name__, type(other).__name__, not is_same),
                    list(_fields(one, other)) if is_same else [],
                    *(a.get(index, []), b.get(index, [])),
                )
            )

    def _tensors(self, index: int, one: fb.Tensor, other: fb.Tensor) -> TensorDataDiff:
        a, b = (_data(file, t) for file, t in zip(self._files, (one, other), strict=True))
        diff = TensorDataDiff(
            self._tensor(0, index, one),
            self._tensor(1, index, other),
            len(a),
            len(b),
            a != b,
            list(_fields(one, other)),
        )
        dtype = DTYPES.get(one.scalar_type)
        if diff.bytes_differ and dtype is not None and one.scalar_type == other.scalar_type:
            width = np.dtype(dtype).itemsize
            arrays: list[Any] = [np.frombuffer(x, dtype, len(x) // width) for x in (a, b)]
            _compare(diff, *arrays, samples=self._samples)
        return diff

    def _tensor(self, side: int, index: int, tensor: fb.Tensor) -> TensorInfo:
        told = tensor.extra_tensor_info
        return TensorInfo(
            *(index, tensor.scalar_type, list(tensor.sizes)),
            *((told and told.fully_qualified_name) or None, tensor.data_buffer_idx),
            self._uses[side].get(index, []),
        )


def _compare(diff: TensorDataDiff, a: Any, b: Any, *, samples: int) -> None:
    """Put how the elements of two arrays differ into `diff`."""
    count = min(len(a), len(b))
    errors = errors_of(a[:count], b[:count])
    [differing] = np.nonzero(errors)
    diff.num_elements, diff.num_differing = count, len(differing)
    if len(differing):
        diff.max_abs_diff = float(errors.max())
        diff.mean_abs_diff = float(errors[differing].mean())
    sizes = diff.tensor_a.sizes
    is_whole = count == int(np.prod(sizes))
    for i in map(int, differing[:samples]):
        at = tuple(map(int, np.unravel_index(i, sizes))) if is_whole and sizes else ()
        diff.element_diffs.append(ElementDiff(i, at, float(a[i]), float(b[i])))


def _data(file: PTEFile, tensor: fb.Tensor) -> bytes:
    """The constant or initial data of a tensor; empty if it has none in the file."""
    told = tensor.extra_tensor_info
    if 0 < tensor.data_buffer_idx < len(file.constants):
        return bytes(file.constants[tensor.data_buffer_idx])
    if told is not None and 0 < told.mutable_data_segments_idx < len(file.mutable_data):
        return bytes(file.mutable_data[told.mutable_data_segments_idx])
    return b""


def _fields(one: Any, other: Any, prefix: str = "") -> Iterator[FieldDiff]:
    """The fields of two tables of the same kind that differ; of tables inside, "OUTER.INNER"."""
    for name in (prefix + each.name for each in dataclasses.fields(one)):
        a, b = (getattr(table, name.removeprefix(prefix)) for table in (one, other))
        if _equal(a, b):
            continue
        if name == "extra_tensor_info" and a is not None and b is not None:
            yield from _fields(a, b, f"{name}.")
        else:
            yield FieldDiff(name, a, b)


def _equal(one: Any, other: Any) -> bool:
    """Whether two fields, or values of a plan, are equal; by their texts, a NaN is to another."""
    return bool(one == other) or repr(one) == repr(other)


def _operator(operator: fb.Operator) -> str:
    return f"{operator.name}.{operator.overload}" if operator.overload else operator.name


def _uses_of(plan: fb.ExecutionPlan) -> dict[int, list[OperatorUsage]]:
    """The calls that take each value of a plan."""
    uses: dict[int, list[OperatorUsage]] = {}
    for instruction in (one for chain in plan.chains for one in chain.instructions):
        call = instruction.instr_args
        if isinstance(call, fb.KernelCall):
            name = _operator(plan.operators[call.op_index])
        elif isinstance(call, fb.DelegateCall):
            name = f"delegate:{plan.delegates[call.delegate_index].id}"
        else:
            continue
        for place, index in enumerate(call.args):
            uses.setdefault(index, []).append(OperatorUsage(name, place))
    return uses


def format_diff_result(result: PTEDiffResult, verbose: bool = False) -> str:
    """The result as lines of text.

    Args:
        result: what `diff_pte` found.
        verbose: tell the sizes of the data of all tensors that differ, not of those alone whose
            sizes do.
    """
    lines = [
        f"{result.path_a} ({result.size_a:,} bytes), {result.path_b} ({result.size_b:,} bytes)"
    ]
    lines.append("bitwise equal" if result.bitwise_equal else "NOT bitwise equal")
    if result.error is not None:
        lines.append(result.error)
    if result.version_a is not None:
        lines.append(f"Version: {result.version_a} vs {result.version_b}")
    for side, names in (("A", result.extra_plans_in_a), ("B", result.extra_plans_in_b)):
        lines += [f"Method only in {side}: {name}" for name in names]
    for plan in result.plan_diffs:
        lines += _plan_lines(plan, verbose)
    for data in result.named_data_diffs:
        where = f"only in {data.only_in}" if data.only_in else "other bytes"
        lines.append(f"Named data {data.key!r}: {where}")
    return "\n".join(lines)


def _plan_lines(plan: ExecutionPlanDiff, verbose: bool) -> Iterator[str]:
    yield f"Plan {plan.plan_index}:"
    for name in ("name", "non_const_buffer_sizes", "value_count", "instruction_count"):
        one, other = (getattr(plan, f"{name}_{side}") for side in "ab")
        if one is not None or other is not None:
            yield f"  {name}: {one} vs {other}"
    for name in ("operators", "delegates"):
        for side in "ab":
            only = getattr(plan, f"{name}_only_in_{side}")
            if only:
                yield f"  {name} only in {side.upper()}: {', '.join(only)}"
    if plan.tensor_diffs:
        yield f"  Differing tensors: {len(plan.tensor_diffs)}"
    for tensor in plan.tensor_diffs:
        yield from _tensor_lines(tensor, verbose)
    if plan.evalue_diffs:
        yield f"  Differing values: {len(plan.evalue_diffs)}"
    for value in plan.evalue_diffs:
        types = (
            value.type_a if value.type_a == value.type_b else f"{value.type_a} vs {value.type_b}"
        )
        yield f"    value {value.evalue_index}: {types}{_uses(value.operator_usages_a)}"
        yield from _field_lines(value.field_diffs)
    for side, tensors in (("A", plan.tensors_only_in_a), ("B", plan.tensors_only_in_b)):
        for info in tensors:
            yield f"  tensor only in {side}: {_named(info)}"


def _tensor_lines(diff: TensorDataDiff, verbose: bool) -> Iterator[str]:
    yield f"    {_named(diff.tensor_a)}{_uses(diff.tensor_a.operator_usages)}"
    yield from _field_lines(diff.metadata_diffs)
    if verbose or diff.byte_size_a != diff.byte_size_b:
        yield f"      byte sizes: {diff.byte_size_a:,} vs {diff.byte_size_b:,}"
    if diff.num_differing:
        yield (
            f"      {diff.num_differing:,} of {diff.num_elements:,} elements differ, max_abs_diff "
            f"{diff.max_abs_diff:.6g}, mean_abs_diff {diff.mean_abs_diff:.6g}"
        )
    for one in diff.element_diffs:
        at = list(one.multi_index) or one.flat_index
        yield f"      {at}: {one.value_a:.9g} vs {one.value_b:.9g}"


def _field_lines(fields: Sequence[FieldDiff]) -> Iterator[str]:
    for one in fields:
        yield f"      {one.field_name}: {one.value_a} vs {one.value_b}"


def _named(tensor: TensorInfo) -> str:
    name = f" {tensor.fqn}" if tensor.fqn else ""
    kind = fb.ScalarType(tensor.scalar_type).name.lower()
    return f"tensor {tensor.evalue_index}{name}: {kind} {tensor.sizes}"


def _uses(uses: Sequence[OperatorUsage]) -> str:
    return f", taken by {', '.join(f'{u.name} as {u.arg_index}' for u in uses)}" if uses else ""
