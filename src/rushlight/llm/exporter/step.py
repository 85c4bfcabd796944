"""The method of a language model: ragged rows of tokens go in, logits of the wanted rows come out.

Prompts in pieces, single tokens, guesses to verify and many sequences at once are the same call.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.nn import functional

from rushlight.capture import capture
from rushlight.llm.description import Description
from rushlight.llm.exporter.rows import Rows, step_of

Tensor = torch.Tensor
_EXAMPLE_ROWS, _EXAMPLE_WANTED = 7, 3


class Step(torch.nn.Module):
    """`step(tokens[n], positions[n], sequences[n], wanted[m])`.

    Args:
        decoder: called with (tokens, positions, sequences); returns a row for each token [n, ...].
            One that also takes `wanted` returns the wanted rows alone [m, ...].
        head: makes logits [m, vocabulary] of the wanted rows; None if they are the result.
    """

    def __init__(self, decoder: torch.nn.Module, head: torch.nn.Module | None) -> None:
        super().__init__()
        self.decoder = decoder
        self.head = head
        self._selects = "wanted" in inspect.signature(decoder.forward).parameters

    def forward(self, tokens: Tensor, positions: Tensor, sequences: Tensor, wanted: Tensor) -> Any:
        """The logits, float32 [m, vocabulary]."""
        selected = (wanted,) if self._selects else ()
        with step_of(Rows(positions, sequences)):
            rows = self.decoder(tokens, positions, sequences, *selected)
        if not self._selects:
            # The rows of a matrix by their numbers: every backend has this form of it.
            rows = functional.embedding(wanted, rows)
        return (rows if self.head is None else self.head(rows)).float()


def copied(model: Any) -> Any:
    """A copy of a module in eval mode, whose structure may be changed; it shares the tensors."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared).eval()


def capture_step(step: torch.nn.Module, description: Description, name: str) -> ExportedProgram:
    """The captured program of a step whose numbers of rows may vary.

    Args:
        step: a `Step`.
        description: has the greatest numbers of rows.
        name: of the method, for messages.
    """
    tokens, wanted = example_rows(description)
    positions = torch.arange(len(tokens))
    # torch fixes a size that is 1 in the example and takes no range of one size; for tokens, 2 in
    # the example leaves the inputs' sizes different ones.
    rows = Dim("tokens", min=1, max=max(3, description.batch))
    asked = Dim("wanted", min=0, max=max(2, description.wanted))
    shapes = ({0: rows}, {0: rows}, {0: rows}, {0: asked})
    args = (tokens, positions, torch.zeros_like(positions), wanted)
    with torch.no_grad():
        return capture(step, args, dynamic_shapes=shapes, name=name)


def example_rows(description: Description) -> tuple[Tensor, Tensor]:
    """Tokens and numbers of wanted rows to capture a step with."""
    count = max(3, min(_EXAMPLE_ROWS, description.batch))
    tokens = torch.arange(count) % description.vocabulary
    return tokens, torch.arange(count)[-max(2, min(_EXAMPLE_WANTED, description.wanted)) :]
