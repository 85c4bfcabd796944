"""All patterns of calls that the engine has one step for."""

from __future__ import annotations

from torch.export import ExportedProgram

from rushlight.backends.cpu.attention_pattern import fuse_attention
from rushlight.backends.cpu.batch_norm_pattern import split_batch_norms
from rushlight.backends.cpu.halves import widen
from rushlight.backends.cpu.join_pattern import split_chains
from rushlight.backends.cpu.norm_pattern import fuse_norms
from rushlight.backends.cpu.quantized_pattern import fuse_quantized
from rushlight.backends.cpu.rewrite import Rewriter
from rushlight.backends.cpu.view_pattern import simplify_views


def fuse_patterns(program: ExportedProgram) -> dict[str, str]:
    """Replace in a part, which is changed, what is written out by calls that are one step.

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
