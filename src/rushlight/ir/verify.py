"""The verifier: every stage's input and output is checked against its dialect."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NoReturn

from torch.fx import Graph, Node

from rushlight.errors import REPORT_IT, Code
from rushlight.ir.dialect import Dialect
from rushlight.ir.findings import OTHER_OPERATORS, Finding, refusal
from rushlight.ir.source import source_of

_MALFORMED = "not-lowered"
_CONTEXT = 3  # nodes shown before and after a fault
_ADVICE = {
    "not-lowered": f"If passes of your own ran before, see what they left of it; else this is an "
    f"error of Rushlight itself: {REPORT_IT}",
    "unsupported-operator": OTHER_OPERATORS,
}


def format_around(graph: Graph, fault: Node) -> str:
    """The lines of `graph` around `fault`, which is marked with `>`."""
    nodes = list(graph.nodes)
    at = nodes.index(fault)
    first = max(0, at - _CONTEXT)
    lines = []
    for i, node in enumerate(nodes[first : at + _CONTEXT + 1], start=first):
        mark = ">" if node is fault else " "
        lines.append(f"  {mark} {i:4} {node.format_node() or node.name}")
    return "\n".join(lines)


def fail(graph: Graph, node: Node, stage: str, reason: str, kind: str = _MALFORMED) -> NoReturn:
    """Raise an ExportError that shows `node`, its neighbours, its Python line and what to do."""
    finding = Finding(
        kind, f"{node.name} ({node.target}): {reason}", _ADVICE[kind], source_of(node)
    )
    raise refusal(
        finding,
        where=stage,
        code=Code.INTERNAL,
        text=f"{finding}\n{format_around(graph, node)}",
    )


def verify(graph: Graph, dialect: Dialect, stage: str, excepted: Container[Any] = ()) -> None:
    """Check that `graph` is a well-formed program of `dialect`.

    Args:
        graph: the graph to check; not changed.
        dialect: the table of checks.
        stage: where in the pipeline the check is done ("after edge passes"), for the message.
        excepted: operators that the dialect's checks do not apply to.

    Raises:
        ExportError: naming the first faulty node, the reason, its Python line and its neighbours.
    """
    seen: set[Node] = set()
    for node in graph.nodes:
        for arg in node.all_input_nodes:
            if arg not in seen:
                fail(graph, node, stage, f"it uses {arg.name} before that is computed")
        seen.add(node)
        if node.op in ("call_method", "call_module"):
            fail(graph, node, stage, f"a {node.op} node is not allowed in a captured graph")
        if node.op != "call_function" or node.target in excepted:
            continue
        reason = dialect.fault(node)
        if reason is not None:
            where = f"{stage} ({dialect.name} dialect)"
            is_missing = dialect.lacks_operator(node)
            fail(graph, node, where, reason, "unsupported-operator" if is_missing else _MALFORMED)
