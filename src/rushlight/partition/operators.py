"""The description of an operator in a backend's table, and checks that backends share.

A backend has a table from operators to `Operator`: its partitioner calls `why_not`, its
`preprocess` calls `translate`. A backend that needs more facts about an operator adds them in a
subclass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from rushlight.errors import Code, ExportError
from rushlight.ir.operators import arguments

Builder = TypeVar("Builder")
"""The type of the object that builds the backend's own graph."""

IsConstant = Callable[[Any], bool]
"""A function that says whether an argument of a call is a constant of the program."""

WhyNot = Callable[[Node, IsConstant], str | None]
"""A function that gives the reason why a call is not taken; None if it is taken."""

SIZES: frozenset[Callable[..., Any]] = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.floordiv),
        torch.ops.aten.sym_size.int,
    }
)
"""The operators that compute with sizes."""


def always(node: Node, is_constant: IsConstant) -> str | None:
    """Take every call: there is never a reason against it."""
    return None


@dataclass(frozen=True)
class Operator(Generic[Builder]):
    """An operator that a backend has.

    Attributes:
        translate: adds a call to the backend's graph, and returns its value or a list of values.
        why_not: from the call and a function that knows constants, the reason why it is not taken.
    """

    translate: Callable[[Builder, Node], Any]
    why_not: WhyNot = always


def val_of(node: Any) -> torch.Tensor:
    """The example tensor of a node, with its sizes and dtype."""
    val: torch.Tensor = node.meta["val"]
    return val


def needs_constants(*names: str, because: str) -> WhyNot:
    """A check that refuses a call if one of these arguments is computed and not a constant.

    Args:
        names: the names of the arguments; an argument that is None is accepted.
        because: text for the end of the reason, which says why a constant is needed.
    """

    def why_not(node: Node, is_constant: IsConstant) -> str | None:
        args = arguments(node)
        for name in names:
            if args[name] is not None and not is_constant(args[name]):
                return f"its {name} is computed{because}"
        return None

    return why_not


def beyond_window(most: int, *numbers: int) -> str | None:
    """The reason against a call if a number of its window (kernel, stride, padding, dilation) is
    greater than `most`, the greatest that readers of the payload accept."""
    greatest = max(numbers, default=0)
    if greatest <= most:
        return None
    return f"its window has the number {greatest}, and runtimes accept at most {most:d}"


def check_arguments(count: int, most: int) -> None:
    """Refuse a partition with more arguments than readers of the payload accept.

    Raises:
        ExportError: if `count` is greater than `most`.
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
    """A function for `Partitioner.ops_to_not_decompose`: whether the backend may take a call of a
    captured program.

    A call that is certainly not taken is decomposed at once, so that the program need not be
    lowered a second time.

    Args:
        operators: the backend's table; an operator that is not in it may be taken.
        dtypes: the dtypes that results of the calls may have.
        program: of the ATen dialect.
    """
    computed = _computed(program)

    def is_constant(node: Any) -> bool:  # or may become one, once constants are folded
        return isinstance(node, Node) and node not in computed

    def accepts(node: Node) -> bool:
        known = operators.get(node.target)
        is_known_against = known is not None and known.why_not(node, is_constant) is not None
        results = pytree.tree_leaves(node.meta["val"])
        return all(one.dtype in dtypes for one in results) and not is_known_against

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
    """Whether a call reads only the sizes and dtype of its first argument."""
    packet = getattr(node.target, "overloadpacket", node.target)
    name = str(getattr(packet, "__name__", packet))
    return name.endswith("_like") or name.startswith(("new_", "sym_"))
