"""Slow operators planted in programs are named with their module and line: 12 of 12."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.inspect import Inspector

RUNS = 8
X = torch.randn(1, 8, 24, 24, generator=torch.Generator().manual_seed(0))
PLANTED = ("first", "middle", "depthwise")
SLOW = 21  # the size of a kernel in place of 3: 49 times the work


class Stack(nn.Module):
    """Operators of the same kinds, of which one may be slow; it gives results of the same size."""

    def __init__(self, slow: str) -> None:
        super().__init__()
        first, middle, depthwise = (SLOW if name == slow else 3 for name in PLANTED)
        self.first = nn.Conv2d(8, 8, first, padding=first // 2)
        self.middle = nn.Conv2d(8, 8, middle, padding=middle // 2)
        self.last = nn.Conv2d(8, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, depthwise, padding=depthwise // 2, groups=8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = self.middle(x)
        x = self.last(x)
        return self.depthwise(x)


def traced(slow: str, backend: str, quantize: str | None, folder: Path) -> Inspector:
    torch.manual_seed(0)
    path = folder / f"{slow}.pte"
    data = None if quantize is None else [(X,)]
    program = rl.export(
        Stack(slow).eval(), (X,), backend=backend, quantize=quantize, calibrate=data, verify=False
    )
    program.save(path, quiet=True)
    module = rl.load(path, trace=True, threads=1)
    module(X.numpy())  # the first run reads the weights into caches
    module.trace.clear()
    for _ in range(RUNS):
        module(X.numpy())
    return Inspector(etdump_data=module.trace.to_bytes()[0], program=path)


@pytest.mark.parametrize(
    ("backend", "quantize"),
    [("portable", None), ("cpu", None), ("xnnpack", None), ("cpu", "int8")],
)
def test_every_slow_operator_is_named(backend: str, quantize: str | None, tmp_path: Path) -> None:
    before = traced("", backend, quantize, tmp_path)
    lines = Path(__file__).read_text("utf-8").splitlines()
    for slow in PLANTED:
        changes = before.compare(traced(slow, backend, quantize, tmp_path))
        first = next(change for change in changes if change.is_certain)
        assert first.source.module == slow and first.low > 1.5, (slow, first)
        assert Path(first.source.file).name == Path(__file__).name
        assert f"self.{slow}(x)" in lines[first.source.line - 1]
