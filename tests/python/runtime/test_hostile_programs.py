"""Mutants of exported programs with control flow, dynamic shapes, state and random numbers:
whatever a file says, it is refused or runs, and AddressSanitizer and UBSan see no fault.

Beside damaged bytes (tests/cpp/program/fuzz_program.cpp) the tables of programs are changed:
indices, sizes, offsets, arguments and instructions take each other's values, or those at the
limits, so that more of them pass the verifier than after damage.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serialize_cases as cases
import torch
from benchmarks import flow_models
from torch.export import Dim

import rushlight
from attack.tables import mutate
from rushlight.errors import ExportError

MUTANTS = 400


class Counter(torch.nn.Module):
    """Written buffers, one of them by index."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.zeros(2))
        self.register_buffer("keys", torch.zeros(8, 2))

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        self.sum.add_(x)
        self.keys.index_copy_(0, at, x[None])
        return self.keys.sum(0) * self.sum


class Draws(torch.nn.Module):
    """Random numbers of every kind."""

    def forward(self, x: torch.Tensor) -> Any:
        noise = torch.randn(3, 4) + torch.rand(3, 4) + torch.randint(0, 9, (3, 4))
        mask = torch.bernoulli(x.sigmoid())
        picked = torch.multinomial(x.abs() + 0.1, 2)
        return (x + noise) * mask, picked, x[:, torch.randperm(4)], torch.poisson(x.abs())


class Mixed(torch.nn.Module):
    """Kernels that index, sort, pool and gather, over a bounded size."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(16, 4)
        self.conv = torch.nn.Conv1d(4, 4, 3, padding=1)
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, tokens: torch.Tensor) -> Any:
        x = self.norm(self.embed(tokens))
        y = self.conv(x.transpose(1, 2))[..., None]
        y = torch.nn.functional.max_pool2d(y, (3, 1), 1, (1, 0))
        values, order = x.sum(-1).sort()
        return y, x.gather(1, order[..., None].expand(-1, -1, 4)), torch.cat([values, values], 1)


def built(name: str) -> bytes:
    """The file of one model."""
    if name in flow_models.CASES:
        case = flow_models.CASES[name]
        args, shapes = case.calls()[0], case.dynamic_shapes
        return rushlight.export(
            case.model().eval(), args, dynamic_shapes=shapes, verify=False
        ).buffer
    x = torch.randn(3, 4)
    if name == "state":
        return rushlight.export(Counter(), (torch.ones(2), torch.tensor([3])), verify=False).buffer
    if name == "random":
        return rushlight.export(Draws(), (x,), verify=False).buffer
    shapes = ({1: Dim("n", min=2, max=12)},)
    tokens = torch.arange(10).reshape(2, 5)
    return rushlight.export(Mixed(), (tokens,), dynamic_shapes=shapes, verify=False).buffer


MODELS = ["state", "random", "mixed", *flow_models.CASES]


def mutants(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """`count` files; changes that no file can hold are drawn anew."""
    chance = random.Random(seed)
    while count > 0:
        try:
            yield cases.rewritten(data, lambda root: mutate(root.execution_plan, chance))
        except ExportError:
            continue
        count -= 1


def run(files: list[Path], rounds: int, sanitized: Path) -> str:
    """The output of fuzz_program; an AssertionError has the report of the sanitizers."""
    done = subprocess.run(
        [sanitized / "fuzz_program", str(rounds), *files], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-5000:]
    return done.stdout


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_mutants_do_no_harm(name: str, tmp_path: Path, sanitized: Path) -> None:
    data = built(name)
    (tmp_path / "whole.pte").write_bytes(data)
    run([tmp_path / "whole.pte"], MUTANTS, sanitized)
    files = []
    for at, mutant in enumerate(mutants(data, seed=len(data), count=MUTANTS)):
        files.append(tmp_path / f"{at}.pte")
        files[-1].write_bytes(mutant)
    told = run(files, 0, sanitized)
    assert told.count(" 1 methods loaded") > MUTANTS // 20
