"""Verification of a language model's program: steps in the runtime, compared with eager's."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import torch
from torch.export import ExportedProgram

from rushlight import _core
from rushlight.check import check_method
from rushlight.check.tolerance import Tolerance, quantises
from rushlight.ir.custom_ops.cached_attention import EagerCache
from rushlight.llm.description import Description
from rushlight.partition import Partitioner
from rushlight.pipeline import ExecutorchProgramManager, to_edge_transform_and_lower

_FLOAT = Tolerance(relative=1e-3)
_POSITIONS = 64  # of the cache
_PROMPT = 6


def check_steps(
    manager: ExecutorchProgramManager,
    method: str,
    program: ExportedProgram,
    about: Description,
    partitioners: Sequence[Partitioner],
    file: str | bytes,
) -> None:
    """Run steps of two sequences, and compare their results with eager's.

    Args:
        manager: the finished program.
        method: the method to run.
        program: its captured program.
        about: the model.
        partitioners: those that the program was lowered with.
        file: what `to_run` gives for the program.

    Raises:
        ExportError: as `check_method`.
    """

    def lower(piece: ExportedProgram) -> ExecutorchProgramManager:
        return to_edge_transform_and_lower(piece, None, partitioners).to_executorch()

    sizes = (about.layers, about.key_heads, about.width, about.value_width)
    cache = None
    if not about.is_encoder:
        cache = _core.KvCache("float32", *sizes, 2, min(about.context, _POSITIONS))
    tolerance = None if quantises(program) else _FLOAT
    prompt = min(_PROMPT, about.batch, about.context)
    # (sequence, position) of the rows: a prompt, then a token of it beside another prompt.
    steps = [(0, i) for i in range(prompt)], [(0, prompt), *((1, i) for i in range(3))]
    with EagerCache().active():
        for rows in steps:
            here = [row for row in rows if row[1] < about.context][: about.batch]
            if not here:
                continue
            sequences, positions = torch.tensor(here).unbind(1)
            tokens = (7 * positions + 11 * sequences) % about.vocabulary
            asked = torch.arange(len(here))[-about.wanted :]
            args = (tokens, positions.contiguous(), sequences.contiguous(), asked)
            check_method(
                manager, method, program, args, {}, tolerance,
                lower=lower, kv_cache=cache, file=file,
            )  # fmt: skip
            gc.collect()  # modules that were loaded, whose methods refer to them
