"""Taps by rules: several selectors at once, each with a reducer of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.errors import ExportError
from rushlight.ir.custom_ops.tap import Reducer, tap
from rushlight.tap import FULL_TENSOR, NodeSelector, Tap, select_all_call_function, tap_outputs


@dataclass(frozen=True)
class TapRule:
    """Which nodes are tapped, and what is kept of their values.

    Attributes:
        selector: which nodes.
        reducer: what is kept.
    """

    selector: NodeSelector
    reducer: str | Reducer = FULL_TENSOR


def tap_intermediate_outputs(
    program: ExportedProgram,
    rules: Sequence[TapRule] | TapRule | None = None,
    *,
    max_taps: int | None = None,
    error_on_empty: bool = True,
) -> tuple[ExportedProgram, list[Tap]]:
    """Let a captured program also return what its rules select; a node follows the first one.

    Args:
        program: what torch.export captured; not changed, as the result is another program.
        rules: one or several; None: all calls, whole.
        max_taps: at most so many, the first ones.
        error_on_empty: whether it is an error that no node is selected.

    Returns:
        The program, whose outputs are the earlier ones and then the taps; and the taps.

    Raises:
        ExportError: no node with tensors is selected, and `error_on_empty`.
    """
    listed = [TapRule(select_all_call_function())] if rules is None else rules
    listed = [listed] if isinstance(listed, TapRule) else list(listed)
    taps: list[Tap] = []
    refusal: ExportError | None = None
    for i, rule in enumerate(listed):
        left = None if max_taps is None else max_taps - len(taps)
        if left == 0:
            break
        try:
            program, more = tap_outputs(
                program, _first_of(listed[: i + 1]), rule.reducer, max_taps=left
            )
        except ExportError as error:
            refusal = error
            continue
        taps += more
    if not taps and error_on_empty and refusal is not None:
        raise refusal
    return program, taps


def _first_of(rules: Sequence[TapRule]) -> NodeSelector:
    """Nodes that the last rule selects, and none before it."""
    *before, last = rules

    def selects(node: Node) -> bool:
        return last.selector(node) and not any(rule.selector(node) for rule in before)

    return selects


def is_tap_node(node: Node) -> bool:
    """Whether a node is a tap.

    Args:
        node: of any graph.
    """
    return node.op == "call_function" and node.target is tap


def find_tap_nodes(graph_module: GraphModule) -> list[Node]:
    """The taps of a graph, in its order.

    Args:
        graph_module: the graph.
    """
    return [node for node in graph_module.graph.nodes if is_tap_node(node)]
