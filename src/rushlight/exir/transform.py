"""Runs passes over a program outside the order of the stages."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram

from rushlight.edge import EdgeCompileConfig, PassManager
from rushlight.edge.run_passes import run_passes

_UNCHECKED = EdgeCompileConfig(_check_ir_validity=False)


def transform(
    program: ExportedProgram, *passes: Any, override_verifiers: Any = None
) -> ExportedProgram:
    """A copy of a program, of any dialect, that passes have changed.

    Args:
        program: not changed, unless a pass changes its input.
        passes: callables from GraphModule to PassResult, or one pass manager.
        override_verifiers: not used, as the graph is not verified.
    """
    chosen: Any = passes[0] if len(passes) == 1 and isinstance(passes[0], PassManager) else passes
    return run_passes(program, chosen, "forward", _UNCHECKED)
