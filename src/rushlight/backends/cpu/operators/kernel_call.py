"""Calls of the user's own operators, whose kernels the engine calls between its operators."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cache
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.sizes import shape_of, size_of
from rushlight.backends.cpu.graph.values import View
from rushlight.backends.cpu.tiles.clusters import is_elementwise, is_number
from rushlight.ir.custom_ops.updates import in_place
from rushlight.ir.operators import arguments, out_variant, runtime_name
from rushlight.ir.spec import dim_order_of
from rushlight.partition.operators import val_of
from rushlight.runtime.registries import kernels_in_delegates, registered_kernels
from rushlight.schema import cpu_engine as fb
from rushlight.schema.operators import OperatorSchema

_DTYPES = (torch.float32, torch.float64, torch.int16, torch.int32, torch.int64, torch.bool)
"""What a kernel gets as the model has it. The engine computes halves in float32, and has bytes of
int8 as uint8."""

_ORDERS = "dim_orders"

_Kind = fb.ArgumentKind
_LISTS = {"T": _Kind.TENSORS, "O": _Kind.OPTIONAL_TENSORS, "W": _Kind.RESULTS}
_NUMBERS = {"I": _Kind.INTEGERS, "B": _Kind.BOOLEANS}


class OwnKernels:
    """The kernels of the user's own that are registered now."""

    def __init__(self) -> None:
        self._all = registered_kernels()
        self._in_delegates = kernels_in_delegates()

    def has(self, node: Node) -> bool:
        """Whether one of them computes a call."""
        return bool(self._all) and _name_of(node) in self._all

    def why_not(self, node: Node) -> str | None:
        """Why the engine does not call the kernel of a call that it has; None if it does."""
        if _name_of(node) not in self._in_delegates:
            return "its kernel does not say that it may be called inside a delegate"
        if in_place(node.target) is not None:
            return "it writes its arguments"
        return _why_not_values(node) or _why_not_arguments(node)


def own_calls(program: ExportedProgram, others: Container[Any]) -> list[Node]:
    """The calls of a part whose kernels are the user's own.

    Args:
        program: the part.
        others: the operators that are nodes of the engine.
    """
    own = OwnKernels()
    return [
        node
        for node in program.graph.nodes
        if isinstance(node.target, OpOverload)
        and node.target not in others
        and not (is_elementwise(node) or is_number(node))
        and own.has(node)
    ]


def note_dim_orders(calls: Sequence[Node]) -> None:
    """Note the dim orders of what calls get, which patterns around them may change."""
    for node in calls:
        node.meta[_ORDERS] = {one: dim_order_of(val_of(one)) for one in _tensors(node)}


def schemas_of(calls: Sequence[Node]) -> dict[str, str]:
    """The schemas that the kernels of calls must fit, by the kernels' names."""
    return {_name_of(node): str(_variant(node)._schema) for node in calls}


def translate(b: Builder, node: Node) -> Any:
    """Add a call of a kernel; returns its results, a view or a list of them."""
    orders = node.meta[_ORDERS]
    values = arguments(node)
    inputs: list[View | None] = []
    kernel_arguments = []
    vals = node.meta["val"]
    outputs = [
        b.new(shape_of(val), dim_order_of(val), val.dtype) for val in pytree.tree_leaves(vals)
    ]
    for argument in _schema_of(_variant(node)).arguments:
        letter = argument.letter.removeprefix("?")
        value = values.get(argument.name)
        if letter in "tTO" and value is not None:
            for one in [value] if letter == "t" else value:
                view = None if one is None else b.in_order(b.value(one), orders[one])
                inputs.append(view)
        count = len(outputs) if letter == "W" else len(value) if letter in _LISTS and value else 0
        kernel_arguments.append(_argument(letter, value, count))
    views = [view for view in (*inputs, *outputs) if view is not None]
    dims = [dim for node_order in _all_orders(node, orders) for dim in node_order]
    assert len(dims) == sum(view.meta.dim() for view in views)
    b.emit(fb.KernelCall(_name_of(node), kernel_arguments, dims), inputs, outputs)
    return outputs if isinstance(vals, list | tuple) else outputs[0]


def _all_orders(node: Node, orders: dict[Node, tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """The dim orders of all inputs that are there, then of the outputs."""
    yield from (orders[one] for one in _tensors(node))
    yield from (dim_order_of(val) for val in pytree.tree_leaves(node.meta["val"]))


def _argument(letter: str, value: Any, count: int) -> fb.KernelArgument:
    """An argument of the payload; integers may be sizes, which are written as expressions."""
    if letter in "wW":
        return fb.KernelArgument(_Kind.RESULT if letter == "w" else _Kind.RESULTS, count)
    if value is None:
        return fb.KernelArgument()
    if letter == "t":
        return fb.KernelArgument(_Kind.TENSOR)
    if letter in _LISTS:
        return fb.KernelArgument(_LISTS[letter], count)
    if letter == "S":
        return fb.KernelArgument(_Kind.TEXT, text=value)
    if letter == "D":
        return fb.KernelArgument(_Kind.FLOATS, floats=[float(one) for one in value])
    if letter in _NUMBERS:
        sizes: list[Any] = [size_of(one) for one in value]
        return fb.KernelArgument(_NUMBERS[letter], integers=sizes)
    if isinstance(value, float) or (letter == "d" and not isinstance(value, Node)):
        return fb.KernelArgument(_Kind.FLOAT, floats=[float(value)])
    number: Any = size_of(value)
    kind = _Kind.BOOLEAN if isinstance(value, bool) else _Kind.INTEGER
    return fb.KernelArgument(kind, integers=[number])


def _why_not_values(node: Node) -> str | None:
    """Why not, because of its tensors."""
    vals = [*(val_of(one) for one in _tensors(node)), *pytree.tree_leaves(node.meta["val"])]
    for val in vals:
        if val.dtype not in _DTYPES:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
            return (
                f"its kernel takes or gives {str(val.dtype).removeprefix('torch.')}; the engine "
                f"passes {names}"
            )
        if val.dim() > fb.Limit.RANK:
            return f"it has a tensor of more than {fb.Limit.RANK:d} dimensions"
    return None


def _why_not_arguments(node: Node) -> str | None:
    """Why not, because of their number, or of what is no tensor, number or text."""
    declared = _schema_of(_variant(node)).arguments
    most = fb.Limit.KERNEL_ARGUMENTS
    values = arguments(node)
    for argument in declared:
        value = values.get(argument.name)
        items = value if isinstance(value, list | tuple) else [value]
        if max(len(declared), len(items)) > most:
            return f"its kernel has more than {most:d} arguments, or numbers in one of them"
        if any(isinstance(one, str) and len(one.encode()) > fb.Limit.KERNEL_TEXT for one in items):
            return f"its text {argument.name} has more than {fb.Limit.KERNEL_TEXT:d} bytes"
        if not all(isinstance(one, int | float | str | Node | None) for one in items):
            return f"its argument {argument.name} is {value}, which the engine does not pass"
    count = max(
        sum(_count(values.get(a.name)) for a in declared), len(pytree.tree_leaves(node.meta["val"]))
    )
    if count > fb.Limit.NODE_VALUES:
        return f"its kernel takes or gives more than {fb.Limit.NODE_VALUES:d} tensors"
    if len(_name_of(node)) > fb.Limit.KERNEL_TEXT:
        return f"its name has more than {fb.Limit.KERNEL_TEXT:d} bytes"
    return None


def _count(value: Any) -> int:
    """How many inputs of a node an argument takes."""
    if isinstance(value, list | tuple):
        has_tensors = any(one is None or _is_tensor(one) for one in value)
        return len(value) if has_tensors else 0
    return int(_is_tensor(value))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta["val"], torch.Tensor)


def _tensors(node: Node) -> list[Node]:
    """The tensors that a call is given, in the order of the schema, each as often as it is."""
    return [one for one in pytree.tree_leaves(list(arguments(node).values())) if _is_tensor(one)]


def _variant(node: Node) -> OpOverload:
    target: Any = node.target
    variant = out_variant(target)
    assert variant is not None  # a kernel of that name is registered
    return variant


@cache
def _schema_of(variant: OpOverload) -> OperatorSchema:
    return OperatorSchema.read(str(variant._schema))


def _name_of(node: Node) -> str:
    """The name of the kernel of a call; "" if it has no out-variant."""
    if not isinstance(node.target, OpOverload):
        return ""
    variant = out_variant(node.target)
    return "" if variant is None else runtime_name(variant)
