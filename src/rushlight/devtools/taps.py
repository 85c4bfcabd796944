"""Taps by rules: several selectors at once, each with a reducer of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.capture import capture
from rushlight.edge.operators import is_spelled, plain, spell
from rushlight.edge.passes.taps import taps_to_values
from rushlight.ir.custom_ops.tap import SelectionError, tap
from rushlight.partition import Partitioner
from rushlight.pipeline import EdgeProgramManager
from rushlight.tap import (
    FULL_TENSOR,
    STATS,
    NodeSelector,
    Reducer,
    Tap,
    select_all_call_function,
    tap_outputs,
)
from rushlight.tap.compare import compare_tapped


class TapRule(NamedTuple):
    """Which nodes are tapped, and what is kept of their values.

    Attributes:
        selector: which nodes.
        reducer: what is kept.
    """

    selector: NodeSelector
    reducer: str | Reducer = FULL_TENSOR


class StatReducer(Reducer):
    """A reducer in ExecuTorch's form.

    Args:
        name, fields: as for `Reducer`.
        emit: what adds the nodes to a graph; not called, as they are those of `eager`.
        eager: as for `Reducer`.
    """

    def __init__(
        self,
        name: str,
        fields: tuple[str, ...],
        emit: Callable[..., Any],
        eager: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        super().__init__(name, fields, eager)


Rules = Sequence[tuple[NodeSelector, str | Reducer]] | tuple[NodeSelector, str | Reducer]


def tap_intermediate_outputs(
    program: ExportedProgram,
    rules: Rules | None = None,
    *,
    max_taps: int | None = None,
    error_on_empty: bool = True,
) -> tuple[ExportedProgram, list[Tap]]:
    """Let a captured program also return what its rules select; a node follows the first one.

    Args:
        program: what torch.export captured; it is changed, and is what is returned.
        rules: one or several `TapRule`, or pairs of a selector and a reducer; None: `STATS` of all
            calls.
        max_taps: at most so many, the first ones.
        error_on_empty: whether it is an error that no node is selected.

    Returns:
        The program, whose outputs are the earlier ones and then the taps; and the taps.

    Raises:
        SelectionError: no node with tensors is selected, and `error_on_empty`.
    """
    listed: list[Any] = [TapRule(select_all_call_function(), STATS)] if rules is None else [*rules]
    is_one = rules is not None and len(listed) == 2 and callable(listed[0])
    listed = [TapRule(*listed)] if is_one else [TapRule(*rule) for rule in listed]
    whole = program
    taps: list[Tap] = []
    refusal: SelectionError | None = None
    for i, rule in enumerate(listed):
        left = None if max_taps is None else max_taps - len(taps)
        if left == 0:
            break
        try:
            program, more = tap_outputs(
                program, _first_of(listed[: i + 1]), rule.reducer, max_taps=left
            )
        except SelectionError as error:
            refusal = error
            continue
        taps += more
    if not taps and error_on_empty and refusal is not None:
        raise refusal
    whole.__dict__.update(program.__dict__)
    return whole, taps


def tap_compare(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    partitioner: Partitioner | Sequence[Partitioner] | None = None,
    *,
    rules: Rules | None = None,
    error_on_empty: bool = True,
) -> tuple[Any, list[Tap]]:
    """`rushlight.tap.tap_compare` with rules.

    Args:
        model, example_inputs, partitioner: as there.
        rules, error_on_empty: as for `tap_intermediate_outputs`.

    Raises:
        ExportError, RunError: as both.
    """
    program = capture(model, example_inputs)
    tapped, taps = tap_intermediate_outputs(program, rules, error_on_empty=error_on_empty)
    return compare_tapped(tapped, taps, example_inputs, partitioner), taps


def strip_taps(edge: EdgeProgramManager) -> None:
    """Put what the reducers of taps compute in their place, in all methods of a manager.

    `to_executorch` does so too: this is for who wants to see, or change, those nodes before.

    Args:
        edge: it is changed.

    Raises:
        ExportError: a reducer cannot be traced.
    """
    for name in edge.methods:
        program = edge.exported_program(name)
        if find_tap_nodes(program.graph_module):
            lowered = taps_to_values(plain(program))
            edge._programs[name] = spell(lowered) if is_spelled(program) else lowered


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
    return node.op == "call_function" and node.target == tap  # or the Edge dialect's


def find_tap_nodes(graph_module: GraphModule) -> list[Node]:
    """The taps of a graph, in its order.

    Args:
        graph_module: the graph.
    """
    return [node for node in graph_module.graph.nodes if is_tap_node(node)]
