"""Runs passes one after the other, over graphs (`PassManager`) or over whole programs."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge.to_edge import finish
from rushlight.errors import Code, ExportError


@dataclass(frozen=True)
class ExportedProgramPassResult:
    """What a pass over a program made.

    Attributes:
        exported_program: the program with the pass applied.
        modified: whether anything was changed.
    """

    exported_program: ExportedProgram
    modified: bool


class ExportedProgramPassBase(ABC):
    """A pass over a program, for what a graph does not have: constants, signature."""

    def __call__(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Run the pass between its two checks."""
        self.requires(exported_program)
        result = self.call(exported_program)
        self.ensures(result.exported_program)
        return result

    @abstractmethod
    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Run the pass; managers give it a program of its own, whose graph is the caller's."""

    def requires(self, exported_program: ExportedProgram) -> None:  # noqa: B027
        """Raise if the program lacks what the pass needs."""

    def ensures(self, exported_program: ExportedProgram) -> None:  # noqa: B027
        """Raise if the program is not what the pass promises."""


class PassManager:
    """Runs passes over a graph, in order.

    Args:
        passes: callables from GraphModule to PassResult; one that returns None has changed the
            graph that it was given. Lists of passes are flattened.
        run_checks_after_each_pass: check the graph after every pass.
        suppress_check_failures: check nothing.
    """

    def __init__(
        self,
        passes: Sequence[Any] | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = _flat(passes or ())
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def check(self, module: GraphModule) -> None:
        """Raise if a graph is broken, or calls methods of objects.

        Raises:
            ExportError: it calls a method.
            RuntimeError: its nodes are not in order.
        """
        if self.suppress_check_failures:
            return
        module.recompile()
        module.graph.lint()
        for node in module.graph.nodes:
            if node.op == "call_method":
                raise ExportError(
                    f"{node.name} is a call_method of {node.target!r}: a graph has calls of "
                    f"operators alone; insert graph.call_function",
                    code=Code.NOT_SUPPORTED,
                )

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Run the passes; `modified` is True if any of them changed something."""
        modified = False
        for one in self.passes:
            result = _result(one, graph_module)
            graph_module, modified = result.graph_module, modified or result.modified
            if self.run_checks_after_each_pass:
                self.check(graph_module)
        return PassResult(graph_module, modified)


class ExportedProgramPassManager:
    """Runs passes over a program, in order: those of its graph, and those of the program.

    Args:
        passes: `ExportedProgramPassBase`, and what `PassManager` takes.
        run_checks_after_each_pass, suppress_check_failures: as those of `PassManager`.
    """

    def __init__(
        self,
        passes: Sequence[Any] | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self._of_graphs = PassManager(passes, run_checks_after_each_pass, suppress_check_failures)

    @property
    def passes(self) -> list[Any]:
        """The passes in order."""
        return self._of_graphs.passes

    def check(self, exported_program: ExportedProgram) -> None:
        """Raise if a program's graph is broken, as `PassManager.check` does."""
        self._of_graphs.check(exported_program.graph_module)

    def __call__(
        self, exported_program: ExportedProgram, override_verifiers: Any = None
    ) -> ExportedProgramPassResult:
        """Run the passes over a program with its own signature and constants.

        Args:
            exported_program: not changed, unless a pass changes the graph that it is given.
            override_verifiers: verifiers of torch's that the new program gets.
        """
        program, modified = exported_program, False
        graph = program.graph_module
        for one in self.passes:
            if isinstance(one, ExportedProgramPassBase):
                made = one(_own(program, graph))
                program, changed = made.exported_program, made.modified
                graph = program.graph_module
            else:
                # It may add constants to the program that it was made with, which are copied later.
                result = _result(one, graph)
                graph, changed = result.graph_module, result.modified
            modified |= changed
            if self._of_graphs.run_checks_after_each_pass:
                self._of_graphs.check(graph)
        program = _own(program, graph)
        if override_verifiers:
            program._verifiers = list(override_verifiers)
        return ExportedProgramPassResult(program, modified)


def _flat(passes: Any) -> list[Any]:
    return [p for one in passes for p in (_flat(one) if isinstance(one, list | tuple) else (one,))]


def _own(program: ExportedProgram, graph: GraphModule) -> ExportedProgram:
    """The program over a graph, with signature, state and constants of its own."""
    new = copy.copy(program)
    new._graph_module = graph
    new._graph_signature = copy.deepcopy(program.graph_signature)
    new._state_dict, new._constants = dict(program.state_dict), dict(program.constants)
    finish(new)
    return new


def _result(one: Any, graph_module: GraphModule) -> PassResult:
    result = one(graph_module)
    if result is None:
        return PassResult(graph_module, True)
    if not isinstance(result, PassResult):
        raise ExportError(
            f"pass {getattr(one, '__name__', type(one).__name__)} returned "
            f"{type(result).__name__}: a pass must return a PassResult of torch.fx",
            code=Code.INVALID_TYPE,
        )
    return result
