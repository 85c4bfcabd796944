"""Dequantise at export the small weights that no backend took.

A quantised weight of a portable program is dequantised at every call. A user quantises to make the
file small, and real numbers take four times the bytes of int8, so a weight that would grow in the
file stays quantised. Two kinds are stored as real numbers: a value that is no larger than the
constants that it is computed from (a bias in int32), and a value of at most 4 KiB, because the call
that is saved takes more time and space than the bytes. Values that are computed only from such
weights, such as their transpose, are folded by the same rule.
"""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.edge.passes.constant_fold import computes_constant, fold, nbytes
from rushlight.edge.to_edge import finish
from rushlight.ir.programs import copy_program
from rushlight.ir.quantized_values import dequantizes

_SMALL = 4 * 1024  # bytes up to which a value is always stored


def fold_dequantized(program: ExportedProgram) -> ExportedProgram:
    """The Edge program with small weights dequantised; `program` itself if it has none.

    Args:
        program: not changed; the result shares its tensors.
    """
    if not any(dequantizes(node) for node in program.graph.nodes):
        return program
    new = copy_program(program)
    constants = Constants(new)
    made_of = {node: {node} for node in constants.nodes()}
    real: set[Node] = set()  # computed from quantised constants

    def is_foldable(node: Node, known: set[Node]) -> bool:
        if not computes_constant(node, known):
            return False
        if not dequantizes(node) and real.isdisjoint(node.all_input_nodes):
            return False
        real.add(node)
        made_of[node] = set().union(*(made_of[n] for n in node.all_input_nodes))
        return True

    def is_too_large(node: Node) -> bool:
        sources = sum(nbytes(n.meta["val"]) for n in made_of[node])
        return nbytes(node.meta["val"]) > max(sources, _SMALL)

    if not fold(constants, is_foldable, is_too_large):
        return program
    constants.drop_unused()
    finish(new)
    return new
