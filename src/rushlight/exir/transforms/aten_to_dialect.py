"""Replace torch's operators by those of a backend's dialect, by functions that a subclass has."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.errors import Code, ExportError
from rushlight.exir.transforms.refresh import call_like, refresh
from rushlight.ir.rewrite import replace


@dataclass
class DialectNodeSpec:
    """A call to be put in the place of another.

    Attributes:
        op: its operator.
        args, kwargs: its arguments; None stands for no keyword arguments.
    """

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] | None = None


class AtenToDialectPass(ExportPass):
    """Replaces each call of an operator for which the subclass has a function.

        class ToMine(AtenToDialectPass): ...

        @ToMine.register_dialect_substitution(torch.ops.aten.add.Tensor)
        def add(node, to_mine):
            return DialectNodeSpec(torch.ops.mine.add.default, node.args)

    The function is given the node and the pass; None leaves the call. It may add constants to the
    pass's program, with `create_constant_placeholder`.

    Args:
        exported_program: the program of the graph.
    """

    _DIALECT_SUBSTITUTIONS: ClassVar[dict[Any, SubstitutionFn]] = {}

    def __init__(self, exported_program: ExportedProgram) -> None:
        self.exported_program = exported_program

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._DIALECT_SUBSTITUTIONS = {}

    @classmethod
    def register_dialect_substitution(
        cls, target: Any
    ) -> Callable[[SubstitutionFn], SubstitutionFn]:
        """A decorator of the function for an operator; ExportError if there is one already."""

        def register(function: SubstitutionFn) -> SubstitutionFn:
            if target in cls._DIALECT_SUBSTITUTIONS:
                raise ExportError(
                    f"Multiple substitutions registered for {target} in {cls.__name__}: give it "
                    f"one",
                    code=Code.INVALID_ARGUMENT,
                )
            cls._DIALECT_SUBSTITUTIONS[target] = function
            return function

        return register

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place; new calls have the metadata of the old ones, and the line of
        this pass in their stack traces."""
        modified = False
        for node in list(graph_module.graph.nodes):
            function = self._DIALECT_SUBSTITUTIONS.get(node.target)
            spec = None if function is None or node.op != "call_function" else function(node, self)
            if spec is None:
                continue
            made = call_like(node, spec.op, spec.args, spec.kwargs)
            trace = node.meta.get("stack_trace") or ""
            made.meta["stack_trace"] = f"{trace}\n{traceback.format_stack()[-2]}"
            replace(node, made)
            modified = True
        return PassResult(refresh(graph_module) if modified else graph_module, modified)


SubstitutionFn = Callable[[Node, AtenToDialectPass], DialectNodeSpec | None]
