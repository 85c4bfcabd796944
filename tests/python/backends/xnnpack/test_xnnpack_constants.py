"""The xnnpack backend on models that compute constants: splits and transpositions of weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn
from xnnpack_models import Peer, left, lowered

from delegates import flat

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Peer:
    torch.manual_seed(0)
    return Peer(executorch, tmp_path)


class Unrolled(nn.Module):
    """A cell over the rows of a sequence, one after the other."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, outputs = None, []
        for row in x.unbind(1):
            state = self.cell(row, state)
            outputs.append(flat(state)[0])
        return torch.stack(outputs, 1)


class WholeAndParts(nn.Module):
    """A large weight that is used whole and in parts; the parts are therefore not folded."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.weight.chunk(2)
        joined = torch.cat([x @ second.t(), x @ first.t()], -1)
        return joined + nn.functional.linear(x, self.weight)


def _drawn(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (nn.MultiheadAttention(16, 4, batch_first=True), [(2, 5, 16), (2, 7, 16), (2, 7, 16)]),
        (nn.MultiheadAttention(16, 4, kdim=8, vdim=12), [(5, 2, 16), (7, 2, 8), (7, 2, 12)]),
        (nn.Transformer(16, 2, 1, 1, 32, batch_first=True), [(2, 5, 16), (2, 4, 16)]),
        (nn.GRU(8, 6, 2, bidirectional=True, batch_first=True), [(2, 3, 8)]),
        (nn.LSTM(8, 6, proj_size=3, bidirectional=True), [(3, 2, 8)]),
        (Unrolled(nn.LSTMCell(8, 6)), [(2, 3, 8)]),
        (Unrolled(nn.GRUCell(8, 6)), [(2, 3, 8)]),
        (WholeAndParts(), [(3, 32)]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_models_that_split_their_weights(peer: Peer, model: nn.Module, inputs: Any) -> None:
    args = [_drawn(*sizes) for sizes in inputs]
    edge = lowered(model.eval(), *args)
    assert not any("split" in name for name in left(edge))
    peer.compare(edge, model, args, [arg + 1 for arg in args])
