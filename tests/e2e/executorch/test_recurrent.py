"""Recurrent layers by every backend: one instruction on cpu, elsewhere loops that real ExecuTorch
runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import rushlight as rl
from rushlight.inspect.profile import profile_of
from rushlight.inspect.work import work_of
from rushlight.runtime.peaks import Peaks

if TYPE_CHECKING:
    from conftest import ExecuTorch

KINDS = {
    "lstm": lambda: nn.LSTM(6, 10, 2, bidirectional=True, proj_size=4),
    "gru": lambda: nn.GRU(6, 10, 2, batch_first=True),
    "rnn": lambda: nn.RNN(6, 10, bidirectional=True, nonlinearity="relu"),
}
LENGTH = 30


def made(kind: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    layer = KINDS[kind]().eval()
    return layer, torch.randn(
        (2, LENGTH, 6) if getattr(layer, "batch_first", 0) else (LENGTH, 2, 6)
    )


def instructions(program: rl.Program) -> int:
    [plan] = program.manager.executorch_program.execution_plan
    return sum(len(chain.instructions) for chain in plan.chains)


@pytest.mark.interop
@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
@pytest.mark.parametrize("kind", KINDS)
def test_executorch_runs_the_loops(
    kind: str, backend: str, executorch: ExecuTorch, tmp_path: Path
) -> None:
    layer, x = made(kind)
    program = rl.export(layer, (x,), backend=backend)
    pte, inputs, outputs = (tmp_path / n for n in ("m.pte", "in.npz", "out.npz"))
    program.save(str(pte))
    np.savez(inputs, in0=x.numpy())
    executorch.call("run", pte=pte, data=inputs, outputs=outputs)
    with np.load(outputs) as results:
        got = [torch.from_numpy(results[f"out{i}"]) for i in range(len(results.files))]
    for one, other in zip(got, pytree.tree_leaves(layer(x)), strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
def test_loops_do_not_grow_with_the_sequence(backend: str) -> None:
    layer = nn.LSTM(6, 10).eval()
    programs = [rl.export(layer, (torch.randn(n, 1, 6),), backend=backend) for n in (9, 90)]
    assert instructions(programs[0]) == instructions(programs[1]) < 60


@pytest.mark.parametrize("backend", ["cpu", "portable", "xnnpack"])
@pytest.mark.parametrize("recipe", ["int8", "int8-dynamic", "bfloat16", "float16"])
def test_recipes_run_on_every_backend(recipe: str, backend: str) -> None:
    layer, x = made("gru")
    program = rl.export(
        rl.quantize(layer, (x,), calibrate=[(x,)], recipe=recipe),
        backend=backend,
    )
    assert backend != "cpu" or instructions(program) == 1
    sequence = x if recipe.startswith("int8") else x.to(getattr(torch, recipe))
    got = pytree.tree_leaves(rl.load(program.buffer)(sequence))
    for one, other in zip(got, pytree.tree_leaves(layer(x)), strict=True):
        assert (torch.as_tensor(one).float() - other).norm() < 0.03 * other.norm()


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.LSTM(6, 10, 2, bidirectional=True)
        self.head = nn.Linear(20, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.words(x)
        return self.head(states)  # type: ignore[no-any-return]


def test_the_report_and_the_profile_name_the_layer() -> None:
    x = torch.randn(LENGTH, 2, 6)
    program = rl.export(Tagger().eval(), (x,), backend="cpu")
    [work] = work_of(program.buffer)["forward"]
    module = rl.load(program.buffer, trace=True)
    profile = profile_of(
        *(program.buffer, module, "forward", lambda: module(x)),
        runs=2,
        peaks=Peaks(1, 1e9, 1e9, 1e9),
    )
    layer, head = work.inside.values()
    by_name = {operator.name: operator for operator in profile.operators}
    for reported in (layer, by_name["Recurrent"]):
        assert (reported.name, reported.nodes) == ("Recurrent", ["lstm"])
        [source] = reported.sources
        assert (source.module, source.text) == ("words", "states, _ = self.words(x)")
    for reported in (head, by_name["Product"]):
        assert (reported.name, reported.nodes) == ("Product", ["linear"])
        assert [source.module for source in reported.sources] == ["head"]
    assert by_name.keys() == {"Recurrent", "Product"}
