"""How an export lowers: which partitioners and passes, with which options of the Edge dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram

from rushlight.edge import EdgeCompileConfig, PassManager
from rushlight.edge.run_passes import Pass
from rushlight.partition import Partitioner
from rushlight.pipeline import EdgeProgramManager

Partitioners = Sequence[Partitioner] | Mapping[str, Sequence[Partitioner]]
"""Partitioners in order, for all methods or by method."""
# A pass manager may be torch's own, too, which mypy does not see through.
MethodPasses = Callable[[str, ExportedProgram], Sequence[Pass] | PassManager | Any]
"""Makes the passes for a method, given its name and its program."""
ManagerPasses = Callable[[EdgeProgramManager], Sequence[Pass] | PassManager | Any]
"""Makes the passes for all methods, given the manager."""


@dataclass
class LoweringRecipe:
    """How to lower captured programs.

    Attributes:
        partitioners: one after the other, for all methods; or a mapping of methods to such lists.
        edge_transform_passes: functions of a method's name and program that return passes, or a
            pass manager, for that method.
        edge_manager_transform_passes: functions of the `EdgeProgramManager` that return passes for
            all methods; each is called with the result of those before it.
        edge_compile_config: options of the Edge dialect.
    """

    partitioners: Partitioners | None = None
    edge_transform_passes: Sequence[MethodPasses] | None = None
    edge_manager_transform_passes: Sequence[ManagerPasses] | None = None
    edge_compile_config: EdgeCompileConfig | None = None
