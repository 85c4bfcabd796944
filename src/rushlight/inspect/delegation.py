"""The delegated nodes of a graph, read from the graph itself: counts, and the graph as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rushlight.errors import Code, ExportError

if TYPE_CHECKING:
    import pandas
    from torch.fx import GraphModule, Node

    from rushlight.partition import LoweredBackendModule


@dataclass
class DelegationBreakdown:
    """How often an operator is delegated, and how often not."""

    op_type: str = ""
    delegated: int = 0
    non_delegated: int = 0


@dataclass
class DelegationInfo:
    """The numbers of delegated and other nodes of a graph.

    Attributes:
        num_delegated_subgraphs: the number of delegates; one that is called twice counts once.
        num_delegated_nodes, num_non_delegated_nodes: the numbers of calls inside and outside of
            delegates.
        delegation_by_operator: the same by operator, such as "aten_add_tensor".
    """

    num_delegated_subgraphs: int
    num_delegated_nodes: int
    num_non_delegated_nodes: int
    delegation_by_operator: dict[str, DelegationBreakdown]

    def get_summary(self) -> str:
        """The three numbers, one on each line."""
        return (
            f"Total delegated subgraphs: {self.num_delegated_subgraphs}\n"
            f"Number of delegated nodes: {self.num_delegated_nodes}\n"
            f"Number of non-delegated nodes: {self.num_non_delegated_nodes}\n"
        )

    def get_operator_delegation_dataframe(self) -> pandas.DataFrame:
        """A row for each operator, by name, and one for the total.

        Returns:
            A frame with the columns `op_type`, `occurrences_in_delegated_graphs` and
            `occurrences_in_non_delegated_graphs`.

        Raises:
            ExportError: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ExportError(
                "a data frame needs pandas, which is not installed: pip install "
                "'rushlight[inspect]', or read delegation_by_operator",
                code=Code.NOT_FOUND,
            ) from error
        rows = sorted(self.delegation_by_operator.values(), key=lambda row: row.op_type)
        total = ("Total", self.num_delegated_nodes, self.num_non_delegated_nodes)
        return pandas.DataFrame(
            [*((row.op_type, row.delegated, row.non_delegated) for row in rows), total],
            columns=[
                "op_type",
                "occurrences_in_delegated_graphs",
                "occurrences_in_non_delegated_graphs",
            ],
        )


def get_delegation_info(graph_module: GraphModule) -> DelegationInfo:
    """The numbers of delegated and other nodes of a graph, with its branches of control flow.

    Args:
        graph_module: the graph module of `EdgeProgramManager.exported_program()`.
    """
    breakdowns: dict[str, DelegationBreakdown] = {}
    delegates: set[int] = set()
    for node, delegate in _calls(graph_module, None):
        name = _op_type(node)
        row = breakdowns.setdefault(name, DelegationBreakdown(name))
        if delegate is None:
            row.non_delegated += 1
        else:
            row.delegated += 1
            delegates.add(id(delegate))
    return DelegationInfo(
        len(delegates),
        sum(row.delegated for row in breakdowns.values()),
        sum(row.non_delegated for row in breakdowns.values()),
        breakdowns,
    )


def print_delegation_info(graph_module: GraphModule) -> None:
    """Print the summary and the data frame of `get_delegation_info`.

    Args:
        graph_module: as there.

    Raises:
        ExportError: if pandas is not installed.
    """
    info = get_delegation_info(graph_module)
    print(info.get_summary())
    print(info.get_operator_delegation_dataframe().to_string())


def _calls(
    module: GraphModule, delegate: LoweredBackendModule | None
) -> Iterator[tuple[Node, LoweredBackendModule | None]]:
    """Every call with the delegate that it is in, if any; a shared delegate's calls appear once."""
    from rushlight.ir.branches import attribute, branch
    from rushlight.partition import LoweredBackendModule, executorch_call_delegate

    seen: set[int] = set()
    for node in module.graph.nodes:
        if node.op == "get_attr":
            if (inner := branch(node)) is not None:
                yield from _calls(inner, delegate)
                continue
            lowered = attribute(node)
            if isinstance(lowered, LoweredBackendModule) and id(lowered) not in seen:
                seen.add(id(lowered))
                yield from _calls(lowered.original_module.graph_module, delegate or lowered)
        elif node.op == "call_function" and node.target is not executorch_call_delegate:
            yield node, delegate


def _op_type(node: Node) -> str:
    """The name "aten_add_tensor" for `aten.add.Tensor`, "getitem" for `operator.getitem`."""
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    if schema is None:
        return str(getattr(target, "__name__", target))
    overload = schema.overload_name or "default"
    return f"{schema.name.replace('::', '_')}_{overload}".lower()


def format_delegated_graph(graph_module: GraphModule) -> str:
    """The graph as text, with the lowered graph of each delegate below its node."""
    return "\n".join(_lines(graph_module, ""))


def print_delegated_graph(graph_module: GraphModule) -> None:
    """Print `format_delegated_graph`."""
    print(format_delegated_graph(graph_module))


def _lines(module: GraphModule, indent: str) -> Iterator[str]:
    from rushlight.ir.branches import attribute, branch
    from rushlight.partition import LoweredBackendModule

    yield f"{indent}graph():"
    for node in module.graph.nodes:
        yield f"{indent}  {node.format_node()}"
        if node.op != "get_attr":
            continue
        if (inner := branch(node)) is not None:
            yield from _lines(inner, indent + "    ")
            continue
        lowered = attribute(node)
        if isinstance(lowered, LoweredBackendModule):
            yield f"{indent}    backend_id: {lowered.backend_id}"
            first, *rest = _lines(lowered.original_module.graph_module, indent + "    ")
            yield first.replace("graph():", "lowered graph():")
            yield from rest
