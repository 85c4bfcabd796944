"""Eager's values of every node of a program: of the whole, and from values of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Interpreter, Node
from torch.fx.node import map_arg

from rushlight.check.eager import as_after_loading, clone, flat_inputs, placeholder_values
from rushlight.check.large_weights import RowInterpreter
from rushlight.check.tolerance import Tolerance, as_array
from rushlight.ir.recorder import Recorder


class _Recorder(Recorder, RowInterpreter):
    """Keeps the values of a graph, and what makes the rows of large weights in their place."""


class Reference:
    """Eager's values of an Edge program for some inputs.

    Args:
        program: not changed.
        args, kwargs: the inputs.

    Attributes:
        nodes: the nodes of the graph by name.
        values: the value of each.
    """

    def __init__(
        self, program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self.nodes: dict[str, Node] = {node.name: node for node in program.graph.nodes}
        self._program = program
        self._order = {name: place for place, name in enumerate(self.nodes)}
        recorder = _Recorder(program.graph_module)
        flat = flat_inputs(program, args, kwargs)
        with as_after_loading(program):
            self._given = clone(placeholder_values(program, flat))
            recorder.run(*self._given)
        self.values = recorder.values

    def outputs_of(self, names: Iterable[str], placed: Collection[str]) -> list[Node]:
        """The nodes of a group whose values leave it, in order.

        Args:
            names: the group.
            placed: the nodes of all groups. The others, such as views, compute nothing in the run:
                a value that comes back into the group through them has not left it.
        """
        group = {name for name in names if name in self.nodes}
        leaving = [self.nodes[name] for name in group if self._leaves(name, group, placed)]
        return sorted(leaving, key=lambda node: self._order[node.name])

    def _leaves(self, name: str, group: Collection[str], placed: Collection[str]) -> bool:
        waiting, seen = list(self.nodes[name].users), set()
        while waiting:
            user = waiting.pop()
            if user.name in seen or user.name in group:
                continue
            if user.op == "output" or user.name in placed:
                return True
            seen.add(user.name)
            waiting += user.users
        return False

    def departing(self, outputs: Sequence[Any], tolerance: Tolerance) -> dict[int, str]:
        """The outputs of a run that are further from eager's than a tolerance, with the reasons."""
        reasons = {}
        names = self._program.graph_signature.user_outputs
        for i, (value, name) in enumerate(zip(outputs, names, strict=False)):
            wanted = self.values.get(name) if isinstance(name, str) else None
            if isinstance(wanted, torch.Tensor):
                reason = tolerance.exceeded(as_array(value), as_array(wanted))
                if reason is not None:
                    reasons[i] = reason
        return reasons

    def is_input(self, name: str) -> bool:
        """Whether a node is an input of the model, not its state or a constant."""
        return name in self._program.graph_signature.user_inputs

    def needed(self, nodes: Iterable[Node], known: Mapping[str, Any]) -> dict[str, Node]:
        """The nodes to be computed for some, where the values of others are known, in order."""
        needed: dict[str, Node] = {}
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node.name not in needed:
                needed[node.name] = node
                waiting += [before for before in node.all_input_nodes if before.name not in known]
        return {name: needed[name] for name in sorted(needed, key=self._order.__getitem__)}

    def computed(self, needed: Mapping[str, Node], known: Mapping[str, Any]) -> dict[str, Any]:
        """What eager computes from the values of a run.

        Args:
            needed: the nodes to compute, in order, as `needed` gives them.
            known: the run's values of nodes before them.
        """
        interpreter = Interpreter(self._program.graph_module, garbage_collect_values=False)
        values: dict[str, Any] = {}

        def value_of(node: Node) -> Any:
            return values[node.name] if node.name in needed else known[node.name]

        with as_after_loading(self._program):
            for name, node in needed.items():
                if node.op in ("placeholder", "get_attr"):
                    values[name] = self.values[name]
                    continue
                args, kwargs = map_arg((node.args, node.kwargs), lambda n: clone(value_of(n)))
                values[name] = getattr(interpreter, node.op)(node.target, args, kwargs)
        return values
