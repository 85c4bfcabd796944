"""All patterns of calls that one node of the engine computes."""

from __future__ import annotations

from torch.export import ExportedProgram

from rushlight.backends.cpu.graph.rewrite import Rewriter
from rushlight.backends.cpu.patterns.attention import fuse_attention
from rushlight.backends.cpu.patterns.batch_norm import split_batch_norms
from rushlight.backends.cpu.patterns.chains import split_chains
from rushlight.backends.cpu.patterns.halves import widen
from rushlight.backends.cpu.patterns.integers.fuse import fuse_quantized
from rushlight.backends.cpu.patterns.norms import fuse_norms
from rushlight.backends.cpu.patterns.views import simplify_views


def fuse_patterns(program: ExportedProgram) -> dict[str, str]:
    """Replace patterns of calls in a part, which is changed, by single calls of fused operators.

    Returns:
        notes on calls, by their names, for the report.
    """
    rewriter = Rewriter(program)
    widen(rewriter)
    notes = fuse_quantized(rewriter)
    split_batch_norms(rewriter)
    simplify_views(rewriter)
    fuse_norms(rewriter)
    fuse_attention(rewriter)
    split_chains(rewriter)
    simplify_views(rewriter)
    return notes
