"""Runs passes over a program outside the order of the stages."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram

from rushlight.edge import EdgeCompileConfig
from rushlight.edge.pass_manager import ExportedProgramPassManager
from rushlight.edge.run_passes import run_passes

_UNCHECKED = EdgeCompileConfig(_check_ir_validity=False)


def transform(
    program: ExportedProgram, *passes: Any, override_verifiers: Any = None
) -> ExportedProgram:
    """A copy of a program, of any dialect, that passes have changed.

    Args:
        program: not changed, unless a pass changes its input.
        passes: callables from GraphModule to PassResult, passes over programs, or one manager.
        override_verifiers: not used, as the graph is not verified.
    """
    is_manager = len(passes) == 1 and isinstance(passes[0], ExportedProgramPassManager)
    chosen: Any = passes[0] if is_manager else passes
    return run_passes(program, chosen, "forward", _UNCHECKED)
