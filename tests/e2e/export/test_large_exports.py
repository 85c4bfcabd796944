"""Models with large weights: these lie in files, and the program is verified from one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.ir import mapped_weights

LIMIT = 1 << 18  # bytes


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = torch.nn.Linear(512, 300), torch.nn.Linear(300, 400)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.one(x).relu())


@pytest.mark.parametrize("backend", ["cpu", "xnnpack", "portable"])
def test_a_large_program_is_verified_from_a_file(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_weights, "IN_MEMORY", LIMIT)
    monkeypatch.setattr("rushlight.pipeline.finished.IN_MEMORY", LIMIT)
    model, x = Layers().eval(), torch.randn(3, 512)
    program = rl.export(model, (x,), backend=backend)
    assert program.manager._buffer is None  # no bytes of the whole program were made
    if backend != "portable":
        stored = program.manager._emitted.named_data.buffers
        assert any(isinstance(one, np.ndarray) for one in stored)
    paths = [tmp_path / name for name in ("m.pte", "again.pte")]
    for path in paths:
        program.save(path, quiet=True)
    assert paths[0].read_bytes() == paths[1].read_bytes() == program.buffer
    torch.testing.assert_close(rl.load(paths[1])(x), model(x), rtol=1e-4, atol=1e-4)


def test_a_small_program_takes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    program = rl.export(Layers().eval(), (torch.randn(3, 512),), backend="cpu")
    assert program.manager._buffer is not None
