"""Operator supports that leave nodes out of delegates, and reporters of the reasons for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

_SELF = "L['self']."  # how torch begins the names of modules in graphs that Dynamo captured

Submodules = Mapping[str, torch.nn.Module]


class DontSupportBase(OperatorSupportBase):
    """The base class of operator supports that reject some nodes, and remember which."""

    def __init__(self) -> None:
        self._rejected: dict[Node, None] = {}

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether the node is supported; a node that is not is remembered."""
        if self._is_out(node):
            self.reject_node(node)
            return False
        return True

    def _is_out(self, node: Node) -> bool:
        raise NotImplementedError

    def reject_node(self, node: Node) -> None:
        """Remember the node as rejected."""
        self._rejected[node] = None

    def rejected_nodes(self) -> list[Node]:
        """The nodes that were rejected."""
        return list(self._rejected)

    def has_rejected_node(self) -> bool:
        """Whether any node was rejected."""
        return bool(self._rejected)

    def num_rejected(self) -> int:
        """The number of nodes that were rejected."""
        return len(self._rejected)


class DontPartition(DontSupportBase):
    """Leaves operators out.

    Args:
        targets: operators (`torch.ops.aten.add.Tensor`), or names (`"aten.add.Tensor"`).
        exact: True compares whole names; False looks for them inside the operator's name.
    """

    def __init__(self, *targets: Any, exact: bool = True) -> None:
        super().__init__()
        self.targets, self.exact = targets, exact

    def _is_out(self, node: Node) -> bool:
        if node.op != "call_function":
            return False
        names = {str(node.target), str(node.meta.get("original_aten") or "")}
        return node.target in self.targets or any(
            _matches(str(target), name, self.exact) for target in self.targets for name in names
        )


class DontPartitionName(DontSupportBase):
    """Leaves nodes out by their names in the graph.

    Args:
        targets: names.
        exact: True compares whole names; False looks for them inside the node's name.
    """

    def __init__(self, *targets: str, exact: bool = True) -> None:
        super().__init__()
        self.targets, self.exact = targets, exact

    def _is_out(self, node: Node) -> bool:
        return any(_matches(target, node.name, self.exact) for target in self.targets)


class DontPartitionModule(DontSupportBase):
    """Leaves modules out, with all that they call.

    Args:
        module_name: the name of a class (`"Linear"`), also with its Python module
            (`"my_file.MyClass"`).
        instance_name: the module's name in the model (`"encoder.norm"`, or with torch's prefix
            `"L['self'].encoder.norm"`).
        exact: True compares whole names; False looks for them inside the module's names.
    """

    def __init__(
        self,
        *,
        module_name: str | None = None,
        instance_name: str | None = None,
        exact: bool = True,
    ) -> None:
        super().__init__()
        self.module_name, self.exact = module_name, exact
        self.instance_name = instance_name and instance_name.removeprefix(_SELF)

    def _is_out(self, node: Node) -> bool:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
            if self.module_name and "." not in self.module_name:
                kind = kind.rpartition(".")[2]
            if _matches(self.instance_name, path.removeprefix(_SELF), self.exact):
                return True
            if _matches(self.module_name, kind, self.exact):
                return True
        return False


def _matches(wanted: str | None, name: str, exact: bool) -> bool:
    return bool(wanted) and (wanted == name if exact else str(wanted) in name)


class WhyNoPartition:
    """Logs the reason why a node is left out, as soon as it is known.

    Args:
        logger: gets the messages, at level DEBUG.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger
        self.node: Node | None = None
        self.reason = ""

    def __call__(self, node: Node, reason: str) -> None:
        """Say why `node` is left out."""
        self.node, self.reason = node, reason
        self.logger.debug(self)

    def __str__(self) -> str:
        return f"WhyNoPartition: Node {self.node} was not partitioned because {self.reason}."


class WhyNoPartitionReporter:
    """Collects the reasons why nodes are left out; the first reason for a node is kept.

    Attributes:
        declined: {node: reason}, for `PartitionResult.declined`.
    """

    def __init__(self) -> None:
        self.declined: dict[Node, str] = {}

    def report_reject(self, node: Node, reason: str) -> None:
        """Say why `node` is left out."""
        self.declined.setdefault(node, reason)

    def wrap_check(self, operator_support: OperatorSupportBase, message: str) -> ReportRejected:
        """Wrap `operator_support` so that it reports each node that it rejects, with `message`."""
        return ReportRejected(operator_support, self, message)

    def get_table_report(self) -> str:
        """All calls that were left out: name, operator, torch function and reason, in columns."""
        rows = [
            (n.name, str(n.target), str(n.meta.get("torch_fn", "-")), reason)
            for n, reason in self.declined.items()
            if n.op not in ("placeholder", "output")
        ]
        if not rows:
            return "No nodes rejected."
        rows.insert(0, ("Node name", "Target", "Torch func", "Reason"))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[3]])
            for row in rows
        )


class SupportedByReason(OperatorSupportBase):
    """Supports the calls for which a function gives no reason against; reports the others.

    Args:
        why_not: the function that returns the reason why a call is not taken, or None.
        reporter: gets the reasons.
    """

    def __init__(
        self, why_not: Callable[[Node], str | None], reporter: WhyNoPartitionReporter
    ) -> None:
        self.why_not = why_not
        self.reporter = reporter

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether it is; reported if not."""
        reason = self.why_not(node)
        if reason is not None:
            self.reporter.report_reject(node, reason)
        return reason is None


class ReportRejected(OperatorSupportBase):
    """An operator support that reports the nodes that another one rejects.

    Args:
        operator_support: the operator support that decides.
        reporter: gets the rejected nodes.
        message: the reason that is reported.
    """

    def __init__(
        self, operator_support: OperatorSupportBase, reporter: WhyNoPartitionReporter, message: str
    ) -> None:
        self.operator_support = operator_support
        self.reporter = reporter
        self.message = message

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether it is; reported if not."""
        supported = bool(self.operator_support.is_node_supported(submodules, node))
        if not supported:
            self.reporter.report_reject(node, self.message)
        return supported
