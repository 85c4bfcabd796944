"""The loss by quantization that an export reports: the figures of `compare`, from eager."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.accuracy import compare
from rushlight.quantization.loss import loss_of

DATA = [(torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(i)),) for i in range(6)]


class Net(nn.Module):
    """The weights of layers differ so much that one scale for all loses most of them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.wide, self.last = nn.Conv2d(8, 8, 3), nn.Linear(128, 4)
        with torch.no_grad():
            self.wide.weight[0] *= 100
            self.last.weight[:, :16] /= 100

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.wide(torch.relu(self.norm(self.first(x))))
        return self.last(x.flatten(1))


NET = Net().eval()


@pytest.mark.parametrize("recipe", ["int8", "int8-per-tensor"])
def test_the_figures_are_those_of_compare(recipe: str) -> None:
    model = torch.export.export(NET, DATA[0])
    program = rl.quantize(model, calibrate=DATA, recipe=recipe)
    loss = loss_of(model, program)
    report = compare(NET, program, DATA[:1])
    assert loss is not None
    assert abs(loss.sqnr - report.outputs[0]) < 0.5
    there = {layer.tap.module: layer.blame for layer in report.layers}
    for tap, share in loss.layers:
        assert abs(share - there[tap.module]) < 0.05
    assert loss.layers[0][0].module == report.layers[0].tap.module


def test_the_model_and_the_program_stay_as_they_were() -> None:
    model = torch.export.export(NET, DATA[0])
    before = copy.deepcopy(model.state_dict)
    program = rl.quantize(model, calibrate=DATA)
    state = torch.random.get_rng_state()
    assert str(loss_of(model, program)) == str(loss_of(model, program))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict.items())


def test_an_export_says_how_much_is_lost_and_where() -> None:
    program = rl.export(NET, DATA[0], quantize="int8-per-tensor", calibrate=DATA)
    [text] = program.quantization
    assert text.startswith("forward: quantization leaves ") and " dB of signal to noise" in text
    assert "last (" in text and "test_loss.py:" in text
    assert text in " ".join(str(program.report()).split())


@pytest.mark.parametrize("options", [{"verify": False}, {"quantize": None}])
def test_nothing_is_said_where_nothing_was_compared(options: dict[str, object]) -> None:
    arguments = {"quantize": "int8", "calibrate": DATA, **options}
    program = rl.export(NET, DATA[0], **arguments)
    assert program.quantization == [] and "signal to noise" not in str(program.report())
