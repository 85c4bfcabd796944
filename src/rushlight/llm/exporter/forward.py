"""The form of a program that ExecuTorch's runner for language models runs.

Its method `forward` takes tokens [1, n] of one text and the position of the first, keeps keys and
values in buffers of its own, and returns the logits of the last token, or of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.export import Dim, ExportedProgram

from rushlight.capture import capture
from rushlight.check import check_method
from rushlight.check.tolerance import Tolerance, quantises
from rushlight.errors import Code, ExportError
from rushlight.llm.description import Description
from rushlight.llm.exporter.buffers import CacheBuffers
from rushlight.llm.exporter.step import Step, example_rows
from rushlight.llm.weights.layers import QuantizedEmbedding, StoredLinear
from rushlight.partition import Partitioner
from rushlight.pipeline import ExecutorchProgramManager, to_edge_transform_and_lower
from rushlight.runtime.load import load

Tensor = torch.Tensor
FORWARD = "forward"
_FLOAT = Tolerance(relative=1e-3)
_CONTINUED = {False: 1e-3, True: 5e-2}  # of the largest logit; with rounded rows
_PROMPT = 6


class Forward(torch.nn.Module):
    """`forward(tokens[1, n], input_pos[1])`.

    Args:
        step: the model; its attention is `rushlight.llm.attention`.
        about: the model. If `wanted` is 1, the logits are those of the last token alone.
    """

    def __init__(self, step: Step, about: Description) -> None:
        super().__init__()
        self.step = step
        self.buffers_of_layers = CacheBuffers(about)
        self._is_last = about.wanted == 1

    def forward(self, tokens: Tensor, input_pos: Tensor) -> Any:
        """Logits [1, vocabulary], or [1, n, vocabulary] of all tokens."""
        start: Any = input_pos[0].item()
        rows = torch.arange(tokens.shape[1])
        positions = input_pos + rows
        with self.buffers_of_layers.active(start):
            wanted = rows[-1:] if self._is_last else rows
            logits = self.step(tokens.squeeze(0), positions, torch.zeros_like(positions), wanted)
        return logits if self._is_last else logits.unsqueeze(0)


class PackedEmbedding(torch.nn.Module):
    """A table of integers of 4 bits, two in a byte, as ExecuTorch's kernel has it.

    Args:
        plain: the table with an integer in a byte.
    """

    def __init__(self, plain: QuantizedEmbedding) -> None:
        super().__init__()
        high, low = (plain.weight.integers + 8).to(torch.uint8).unflatten(1, (-1, 2)).unbind(2)
        self.register_buffer("packed", high << 4 | low)
        self.register_buffer("scales", plain.weight.scales)
        self.limits, self.factor = plain.weight.limits, plain.factor

    def forward(self, indices: Tensor) -> Tensor:
        """Rows, in float32."""
        operator = torch.ops.quantized_decomposed.embedding_4bit
        rows: Tensor = operator(self.packed, self.scales, None, *self.limits, indices)
        return rows if self.factor == 1 else rows * self.factor


def forward_of(step: Step, about: Description) -> Forward:
    """The module of the method; `step` is changed.

    Raises:
        ExportError: the model or its description do not fit the form.
    """
    if about.wanted not in (1, about.batch):
        raise ExportError(
            f"wanted={about.wanted}: a program for ExecuTorch's runner returns the logits of the "
            f"last token (wanted=1), or of all (wanted={about.batch}, as batch=)",
            code=Code.INVALID_ARGUMENT,
        )
    for name, layer in list(step.named_modules()):
        is_packed = isinstance(layer, QuantizedEmbedding) and layer.weight.bits == 4
        if is_packed and layer.weight.integers.shape[1] % 2 == 0:
            step.set_submodule(name, PackedEmbedding(layer))
        elif isinstance(layer, StoredLinear):
            # The format's products of float rows have float32 weights.
            layer.weight = torch.nn.Parameter(layer.weight.float(), requires_grad=False)
    return Forward(step, about)


def capture_forward(forward: Forward, about: Description) -> ExportedProgram:
    """The captured program of the method, whose number of tokens may vary.

    Args:
        forward: from `forward_of`.
        about: the model.
    """
    tokens, _ = example_rows(about)
    rows = Dim("tokens", min=1, max=max(3, about.batch))
    args = (tokens.unsqueeze(0), torch.zeros(1, dtype=torch.int64))
    with torch.no_grad():
        return capture(forward, args, dynamic_shapes=({1: rows}, {}), name=FORWARD)


def constant_methods(about: Description) -> dict[str, Any]:
    """The methods without inputs by which ExecuTorch's runner learns of the model."""
    return {**about.constant_methods(), "use_sdpa_with_kv_cache": True}


def check_forward(
    manager: ExecutorchProgramManager,
    method: str,
    program: ExportedProgram,
    about: Description,
    partitioners: Sequence[Partitioner],
    file: str | bytes,
) -> None:
    """Compare a prompt's logits with eager's, and a continued text with the same text as a whole.

    Args:
        manager: the finished program.
        method: the method.
        program: its captured program.
        about: the model.
        partitioners: those that the program was lowered with.
        file: what `to_run` gives for the program.

    Raises:
        ExportError: as `check_method`; or the cache does not hold what was stored.
    """

    def lower(piece: ExportedProgram) -> ExecutorchProgramManager:
        return to_edge_transform_and_lower(piece, None, partitioners).to_executorch()

    count = min(_PROMPT, about.batch, about.context)
    tokens = (7 * torch.arange(count) % about.vocabulary).unsqueeze(0)
    start = torch.zeros(1, dtype=torch.int64)
    rounds = quantises(program)
    tolerance = None if rounds else _FLOAT
    args = (tokens, start)
    check_method(manager, method, program, args, {}, tolerance, lower=lower, file=file)
    if count < 2:
        return
    with load(file) as module:
        whole = np.asarray(module(tokens.numpy(), start.numpy())).reshape(-1, about.vocabulary)
        module(tokens[:, :-1].numpy(), start.numpy())
        last = np.asarray(module(tokens[:, -1:].numpy(), start.numpy() + count - 1)).reshape(-1)
    largest = float(np.abs(whole[-1]).max())
    difference = float(np.abs(last - whole[-1]).max())
    if not difference <= _CONTINUED[rounds] * largest:
        raise ExportError(
            f"the logits of token {count} differ by {difference:g} between a text that is given "
            f"at once and one that is continued, where the largest is {largest:g}: the program's "
            f"cache does not keep what it stores; this is a fault of rushlight, please report it",
            code=Code.INTERNAL,
            where=method,
        )
