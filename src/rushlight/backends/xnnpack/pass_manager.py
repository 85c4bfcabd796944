"""Runs passes over a program before it is given to XNNPACK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.export import ExportedProgram

from rushlight.edge import EdgeCompileConfig
from rushlight.edge.run_passes import run_passes


class XNNPACKPassManager:
    """Runs passes in order over a program of the Edge dialect.

    Args:
        exported_program: not changed.
        passes: passes, or classes of passes; None for no pass, as the partitioner does all that
            XNNPACK needs by itself.
    """

    def __init__(
        self, exported_program: ExportedProgram, passes: Sequence[Any] | None = None
    ) -> None:
        self._program = exported_program
        self._passes = [one() if isinstance(one, type) else one for one in passes or ()]

    def transform(self) -> ExportedProgram:
        """The program after the passes."""
        config = EdgeCompileConfig(_check_ir_validity=False)
        return run_passes(self._program, self._passes, "forward", config)
