"""Runs a user's passes over the Edge graph of one method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge.config import EdgeCompileConfig
from rushlight.edge.pass_manager import ExportedProgramPassManager, PassManager
from rushlight.ir.dialect import EDGE
from rushlight.ir.verify import verify

Pass = Callable[[GraphModule], PassResult]


def run_passes(
    program: ExportedProgram,
    passes: Sequence[Pass] | PassManager | ExportedProgramPassManager,
    name: str,
    config: EdgeCompileConfig,
) -> ExportedProgram:
    """A copy of `program` with the passes applied and its graph verified again.

    Args:
        program: of the Edge dialect; not changed.
        passes: over graphs or over programs, in the order in which they run; or a manager, torch's
            included.
        name: the method's name, for messages.
        config: says whether to verify the graph, and which operators to except.
    """
    if not isinstance(passes, ExportedProgramPassManager):
        # A manager of torch.fx has a list of passes, too.
        listed = passes if isinstance(passes, PassManager) else getattr(passes, "passes", passes)
        passes = ExportedProgramPassManager([listed])
    new = passes(program).exported_program
    if config._check_ir_validity:
        excepted = config.accepted
        verify(new.graph, EDGE, f"{name}: after transform passes", excepted)
    return new
