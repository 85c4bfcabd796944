"""What a backend's compiler half knows of an operator, and checks that backends share.

A backend has a table from operators to `Operator`: its partitioner asks `why_not`, its `preprocess`
calls `translate`. What else a backend knows of an operator it adds in a subclass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from rushlight.errors import Code, ExportError
from rushlight.ir.operators import arguments

Builder = TypeVar("Builder")
"""What makes the backend's own graph."""

IsConstant = Callable[[Any], bool]
"""Whether an argument of a call is a constant of the program."""

WhyNot = Callable[[Node, IsConstant], str | None]
"""Why a call is not taken, in words; None if it is."""

SIZES: frozenset[Callable[..., Any]] = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.floordiv),
        torch.ops.aten.sym_size.int,
    }
)
"""What computes with sizes."""


def always(node: Node, is_constant: IsConstant) -> str | None:
    """No reason against it."""
    return None


@dataclass(frozen=True)
class Operator(Generic[Builder]):
    """What a backend knows of an operator.

    Attributes:
        translate: adds a call to the backend's graph, and returns its value or a list of values.
        why_not: given the call and which of its arguments are constants, why it is not taken.
    """

    translate: Callable[[Builder, Node], Any]
    why_not: WhyNot = always


def val_of(node: Any) -> torch.Tensor:
    """Sizes and dtype of a node's value."""
    val: torch.Tensor = node.meta["val"]
    return val


def needs_constants(*names: str, because: str) -> WhyNot:
    """Why not, if one of these arguments is computed.

    Args:
        names: the arguments; one that is left out is no reason.
        because: what the backend does with constants, as the error says it.
    """

    def why_not(node: Node, is_constant: IsConstant) -> str | None:
        args = arguments(node)
        for name in names:
            if args[name] is not None and not is_constant(args[name]):
                return f"its {name} is computed{because}"
        return None

    return why_not


def beyond_window(most: int, *numbers: int) -> str | None:
    """Why not, if a number of a window (its kernel, stride, padding, dilation) is more than `most`,
    which readers of the payload take."""
    greatest = max(numbers, default=0)
    if greatest <= most:
        return None
    return f"its window has the number {greatest}, and at most {most:d} is read"


def check_arguments(count: int, most: int) -> None:
    """Refuse a part with more arguments than readers of the payload take.

    Raises:
        ExportError: with the numbers.
    """
    if count > most:
        raise ExportError(
            f"a part of the program takes or gives {count} tensors, and at most {most:d} are "
            f"possible: export with backend='portable', or pass fewer, larger tensors",
            code=Code.NOT_SUPPORTED,
        )


def may_take(
    operators: Mapping[Any, Operator[Any]], dtypes: Container[torch.dtype], program: ExportedProgram
) -> Callable[[Node], bool]:
    """Tells for a call of a captured program whether the backend may take it, for
    `Partitioner.ops_to_not_decompose`: a call that surely is not taken is decomposed at once, and
    the program need not be lowered a second time.

    Args:
        operators: the backend's table; an operator that is not in it may be taken.
        dtypes: those that results of the calls may have.
        program: of the ATen dialect.
    """
    computed = _computed(program)

    def is_constant(node: Any) -> bool:  # or may become one, once constants are folded
        return isinstance(node, Node) and node not in computed

    def accepts(node: Node) -> bool:
        known = operators.get(node.target)
        is_known_against = known is not None and known.why_not(node, is_constant) is not None
        return val_of(node).dtype in dtypes and not is_known_against

    return accepts


def _computed(program: ExportedProgram) -> set[Node]:
    """The nodes whose values depend on the values of the inputs, not only on their sizes."""
    specs = {s.arg.name: s for s in program.graph_signature.input_specs}
    computed: set[Node] = set()
    for node in program.graph.nodes:
        if node.op == "placeholder":
            is_computed = specs[node.name].kind == InputKind.USER_INPUT
        else:
            is_computed = not computed.isdisjoint(node.all_input_nodes) and not _has_sizes_of(node)
        if is_computed:
            computed.add(node)
    return computed


def _has_sizes_of(node: Node) -> bool:
    """Whether a call takes of its first argument no more than sizes and dtype."""
    packet = getattr(node.target, "overloadpacket", node.target)
    name = str(getattr(packet, "__name__", packet))
    return name.endswith("_like") or name.startswith(("new_", "sym_"))
