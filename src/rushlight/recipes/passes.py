"""The passes of recipes: functions that make passes, and passes over graph modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_manager import PassManager as TorchPassManager

from rushlight.edge import PassManager
from rushlight.edge.pass_manager import ExportedProgramPassManager
from rushlight.edge.run_passes import Pass
from rushlight.recipes.lowering_recipe import MethodPasses
from rushlight.recipes.quantization_recipe import GraphPass


def run_graph_passes(
    argument: str, passes: Iterable[GraphPass] | None, module: GraphModule
) -> GraphModule:
    """The module that the passes of a quantization recipe make of another one."""
    for one in passes or ():
        try:
            module = one(module)
        except Exception as error:
            raise RuntimeError(
                f"{argument}: {getattr(one, '__name__', one)} fails: "
                f"{type(error).__name__}: {error}"
            ) from error
    return module


def checked(function: Any) -> Callable[..., Any]:
    """A function that makes passes; ValueError if it cannot be called."""
    if not callable(function):
        raise ValueError(
            f"Transform passes must be a callable that resolves to passes, got "
            f"{type(function).__name__}: give functions that return lists of passes"
        )
    return function  # type: ignore[no-any-return]


def passes_by_method(
    functions: Sequence[MethodPasses] | None, programs: Mapping[str, ExportedProgram]
) -> dict[str, list[Pass]] | None:
    """The passes for each method that has any; None if none has."""
    made = {
        name: [one for function in functions or () for one in listed(checked(function)(name, p))]
        for name, p in programs.items()
    }
    return {name: passes for name, passes in made.items() if passes} or None


def listed(passes: Any) -> list[Pass]:
    """A manager of passes over graphs is itself a pass."""
    if isinstance(passes, ExportedProgramPassManager):
        return passes.passes
    is_manager = isinstance(passes, PassManager | TorchPassManager)
    return [passes] if is_manager else list(passes or ())
