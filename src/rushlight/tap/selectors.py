"""Which nodes of a captured graph are tapped: functions from a node to a bool."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection
from typing import Any

from torch.fx import Node

from rushlight.errors import Code
from rushlight.ir.custom_ops.tap import SelectionError

NodeSelector = Callable[[Node], bool]


def select_all_call_function(exclude: Collection[str] = ("getitem",)) -> NodeSelector:
    """Every call but those of the functions `exclude`."""

    def selects(node: Node) -> bool:
        names = (getattr(node.target, "__name__", None), str(node.target))
        return node.op == "call_function" and not any(name in exclude for name in names)

    return selects


def select_by_op_type(*op_targets: str) -> NodeSelector:
    """Calls of operators whose names end in one of `op_targets`, such as "aten.linear.default".

    Raises:
        SelectionError: there is no name.
    """
    _required(op_targets, "select_by_op_type", "the name of an operator, 'aten.linear.default'")
    return lambda node: node.op == "call_function" and str(node.target).endswith(op_targets)


def select_by_module_path(*patterns: str, output_only: bool = True) -> NodeSelector:
    """Calls inside modules whose paths match one of `patterns`, such as "layers.*.attention".

    Args:
        patterns: as `fnmatch` has them: `*` stands for any text, with dots.
        output_only: only those whose results leave the modules that match.

    Raises:
        SelectionError: there is no pattern.
    """
    _required(patterns, "select_by_module_path", "the path of a module, 'layers.*'")

    def matches(path: str, kind: str) -> bool:
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)

    return _in_modules(matches, output_only)


def select_by_module_class(*class_names: str, output_only: bool = True) -> NodeSelector:
    """Calls inside modules of the classes `class_names`, which are without their packages:
    "Linear".

    Args:
        class_names: of the modules.
        output_only: only those whose results leave the modules that match.

    Raises:
        SelectionError: there is no name.
    """
    _required(class_names, "select_by_module_class", "the name of a class, 'Linear'")
    return _in_modules(lambda path, kind: kind in class_names, output_only)


def select_any(*selectors: NodeSelector) -> NodeSelector:
    """What one of `selectors` selects."""
    return lambda node: any(selects(node) for selects in selectors)


def select_all(*selectors: NodeSelector) -> NodeSelector:
    """What all `selectors` select."""
    return lambda node: all(selects(node) for selects in selectors)


def select_not(selector: NodeSelector) -> NodeSelector:
    """What `selector` does not select."""
    return lambda node: not selector(node)


def modules_of(node: Node) -> dict[str, tuple[str, str]]:
    """The modules that a node is in, from the outermost: path and class by torch's key."""
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or {}
    return {key: (str(path), _class(kind)) for key, (path, kind) in stack.items()}


def _class(kind: Any) -> str:
    name = kind if isinstance(kind, str) else kind.__qualname__
    return name.rpartition(".")[2]


def _in_modules(matches: Callable[[str, str], bool], output_only: bool) -> NodeSelector:
    def selects(node: Node) -> bool:
        if node.op != "call_function":
            return False
        mine = {key for key, module in modules_of(node).items() if matches(*module)}
        if not output_only:
            return bool(mine)
        return bool(mine) and all(mine.isdisjoint(modules_of(user)) for user in node.users)

    return selects


def _required(given: tuple[str, ...], function: str, what: str) -> None:
    if not given:
        raise SelectionError(
            f"{function}() selects nothing: give {what}", code=Code.INVALID_ARGUMENT
        )
