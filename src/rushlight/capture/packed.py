"""Packed sequences, which torch.export cannot capture: their sizes are values of a tensor."""

from __future__ import annotations

import traceback
from typing import Any

import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.nn.utils.rnn import PackedSequence

from rushlight.capture.lines import line_of
from rushlight.ir.findings import Finding
from rushlight.schema.source import Source

_RECURRENT = ("torch/nn/modules/rnn.py", "torch/nn/utils/rnn.py")


def packed_in_error(error: Exception, inputs: Any) -> Finding | None:
    """The finding for an error of torch.export, if a packed sequence in `inputs` caused it."""
    if any(map(_is_packed, pytree.tree_leaves(inputs, is_leaf=_is_packed))):
        return _packed("an input is", line_of(error), str(error))
    for frame, _ in traceback.walk_tb(error.__traceback__):
        is_recurrent = frame.f_code.co_filename.endswith(_RECURRENT)
        if is_recurrent and frame.f_locals.get("batch_sizes") is not None:
            return _packed("a recurrent layer is given", line_of(error), str(error))
    return None


def packed_in_results(program: ExportedProgram) -> Finding | None:
    """The finding for a captured program, if it returns a packed sequence."""
    specs = [program.call_spec.out_spec]
    while specs:
        spec = specs.pop()
        if spec.context is PackedSequence:
            return _packed("a result is", Source(), "")
        specs += spec.children()
    return None


def _is_packed(value: object) -> bool:
    return isinstance(value, PackedSequence)


def _packed(what: str, source: Source, message: str) -> Finding:
    return Finding(
        "data-dependent-size",
        f"{what} a PackedSequence, whose sizes depend on the lengths that it was packed with",
        "Use the padded tensor instead: the time steps of a sequence do not depend on padding "
        "behind it, and an index takes its last one, out[torch.arange(n), lengths - 1]. For the "
        "backward direction of a bidirectional layer, reverse each sequence within its own "
        "length first",
        source,
        torch=message,
    )
