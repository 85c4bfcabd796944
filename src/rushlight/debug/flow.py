"""Follows a run through branches and loops: each node inside is computed by eager from the run's
own values before it, iteration by iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from rushlight.check.eager import clone
from rushlight.debug.places import Array, Place

Fitted = Callable[[Array, torch.Tensor, Node], torch.Tensor | None]


@dataclass(frozen=True)
class Inner:
    """A value of a run inside a branch or a loop.

    Attributes:
        name: the node's, with the calls that it is in: "while_loop.mul".
        node: the node of the inner graph.
        iteration: how often the node was computed before.
        value: the run's.
        expected: what eager computes from the run's values before it.
        place: what computed it.
    """

    name: str
    node: Node
    iteration: int
    value: torch.Tensor
    expected: torch.Tensor
    place: Place


def followed(
    call: Node, args: Sequence[Any], places: Sequence[Place], fitted: Fitted
) -> tuple[Any, list[Inner]]:
    """The results of a call of control flow, and its inner values in the run's order.

    Args:
        call: of cond, while_loop, map or scan.
        args: its arguments, as the run has them.
        places: those of the run inside it, with the values of all iterations.
        fitted: from a run's value and eager's of a node, the run's in the shape and dtype of
            eager's; None if it is another value.
    """
    run = _Run(places, fitted)
    with torch.no_grad():
        return run.call(call, args, f"{call.name}."), run.values


class _Run:
    """The values of a run, and how far it has been followed."""

    def __init__(self, places: Sequence[Place], fitted: Fitted) -> None:
        # The last node of a fused operator has its value. Two places may have one name: nodes of
        # the condition and of the body of a loop; then nothing tells whose a value is.
        names = Counter(place.names[-1] for place in places if place.names)
        self._places: Mapping[str, Place] = {
            place.names[-1]: place
            for place in places
            if place.names and names[place.names[-1]] == 1
        }
        self._fitted = fitted
        self._counts: Counter[str] = Counter()
        self.values: list[Inner] = []

    def graph(self, module: GraphModule, operands: Sequence[Any], prefix: str) -> list[Any]:
        """The results of an inner graph."""
        results = _Following(module, self, prefix).run(*operands)
        return list(results) if isinstance(results, tuple | list) else [results]

    def call(self, node: Node, args: Sequence[Any], prefix: str) -> tuple[Any, ...]:
        """The results of a call of control flow."""
        first, second, *rest = args
        kind = str(node.target)
        if kind == "cond":
            [operands] = rest[1:] or [()]
            return tuple(self.graph(second if bool(first) else rest[0], operands, prefix))
        if kind == "while_loop":
            [state, extra] = [list(one) for one in (*rest, ())[:2]]
            while bool(self.graph(first, [*state, *extra], prefix)[0]):
                state = clone(self.graph(second, [*state, *extra], prefix))
            return tuple(state)
        state, scanned, extra = ((), second, rest[0]) if kind == "map_impl" else (second, *rest)
        stacked = []
        for i in range(len(scanned[0])):
            results = self.graph(first, [*state, *(x[i] for x in scanned), *extra], prefix)
            state = clone(results[: len(state)])
            stacked.append(results[len(state) :])
        return (*state, *(torch.stack(values) for values in zip(*stacked, strict=True)))

    def value_of(self, node: Node, name: str, expected: Any) -> Any:
        """The run's value of a node; eager's where the run has none."""
        iteration = self._counts[name]
        self._counts[name] += 1
        place = self._places.get(name)
        if place is None or not isinstance(expected, torch.Tensor):
            return expected
        if iteration >= len(place.values):
            return expected
        value = self._fitted(place.values[iteration], expected, node)
        if value is None:
            return expected
        self.values.append(Inner(name, node, iteration, value, clone(expected), place))
        return value


class _Following(Interpreter):
    def __init__(self, module: GraphModule, run: _Run, prefix: str) -> None:
        super().__init__(module)
        self._run, self._prefix = run, prefix

    def run_node(self, n: Node) -> Any:
        if n.op != "call_function":
            return super().run_node(n)
        if isinstance(n.target, torch._ops.HigherOrderOperator):
            args, _ = self.fetch_args_kwargs_from_env(n)
            return self._run.call(n, args, f"{self._prefix}{n.name}.")
        return self._run.value_of(n, f"{self._prefix}{n.name}", super().run_node(n))
