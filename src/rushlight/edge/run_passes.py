"""Runs a user's passes over the Edge graph of one method."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge.config import EdgeCompileConfig
from rushlight.edge.export_pass import PassManager
from rushlight.edge.to_edge import finish
from rushlight.ir.dialect import EDGE
from rushlight.ir.verify import verify

Pass = Callable[[GraphModule], PassResult]


def run_passes(
    program: ExportedProgram,
    passes: Sequence[Pass] | PassManager,
    name: str,
    config: EdgeCompileConfig,
) -> ExportedProgram:
    """A copy of `program` with the passes applied and its graph verified again.

    Args:
        program: of the Edge dialect; not changed.
        passes: the passes, in the order in which they run; or a manager, torch's included.
        name: the method's name, for messages.
        config: says whether to verify the graph, and which operators to except.
    """
    # A manager of torch.fx has a list of passes, too.
    listed = passes if isinstance(passes, PassManager) else getattr(passes, "passes", passes)
    manager = listed if isinstance(listed, PassManager) else PassManager(listed)
    result = manager(program.graph_module)
    new = copy.copy(program)
    new._graph_module = result.graph_module
    new._graph_signature = copy.deepcopy(program.graph_signature)
    finish(new)
    if config._check_ir_validity:
        excepted = config.accepted
        verify(new.graph, EDGE, f"{name}: after transform passes", excepted)
    return new
