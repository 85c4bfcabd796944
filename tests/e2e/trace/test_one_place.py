"""Every tool names the place of an operator alike: line, module, operator, debug handle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.debug import debug
from rushlight.inspect import Inspector, report_of
from rushlight.inspect.explain import explain
from rushlight.inspect.trace.statistics import frame_of, source_of
from rushlight.schema.source import Source

LINES = Path(__file__).read_text("utf-8").splitlines()


class Pick(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        picked = torch.index_select(x, 1, index)  # place: pick
        return torch.cumsum(picked, 0)  # place: sum


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"pick": Pick()})

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return self.inner["pick"](x * 2, index)  # place: double


X, INDEX = torch.linspace(-1, 1, 12).reshape(3, 4), torch.tensor([0, 2])


def told(folder: Path, backend: str) -> Iterator[tuple[str, Source]]:
    """What each tool says of each operator."""
    pte, record = folder / "m.pte", folder / "m.etrecord"
    program = rl.export(Net().eval(), (X, INDEX), backend=backend, etrecord=record)
    program.save(pte, quiet=True)
    [method] = report_of(pte).methods
    for instruction in method.instructions:
        if instruction.kind == "kernel" and instruction.source is not None:
            yield "inspect", instruction.source
    for call in method.coverage:
        assert call.source is not None
        yield "coverage", call.source
    module = rl.load(pte, trace=True)
    module(X.numpy(), INDEX.numpy())
    module.trace.save(folder / "m.etdp")
    for name, options in {"trace": {"program": pte}, "record": {"etrecord": record}}.items():
        inspector = Inspector(folder / "m.etdp", **options)
        for event in inspector.event_blocks[-1].events:
            if len(event.op_types) == 1 and (event.is_delegated_op or "native_call" in event.name):
                yield name, source_of(event)
    for gap in debug(Net().eval(), (X, INDEX), backend=backend).gaps:
        yield "debug", gap.source
    module = rl.load(pte, failure_report=folder / "m.bin")
    with pytest.raises(rl.RunError):
        module(X.numpy(), np.array([0, 9]))
    for node in explain(folder / "m.bin", str(pte)).nodes:
        line = frame_of(node.stack_trace)
        yield (
            "explain",
            replace(line, module=node.module, operator=node.operator, handle=node.handle),
        )
    report = str(explain(folder / "m.bin", str(pte)))
    assert "(aten.index_select.default), module inner.pick, debug handle 2" in report


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_tools_name_a_place_alike(backend: str, tmp_path: Path) -> None:
    wanted = {
        "aten.mul.Tensor": ("double", "", 1),
        "aten.index_select.default": ("pick", "inner.pick", 2),
        "aten.cumsum.default": ("sum", "inner.pick", 3),
    }
    tools: dict[str, set[str]] = {}
    for tool, source in told(tmp_path, backend):
        place, module, handle = wanted[source.operator]
        assert LINES[source.line - 1].endswith(f"# place: {place}"), tool
        assert source.brief == f"test_one_place.py:{source.line}", tool
        assert (source.module, source.handle) == (module, handle), tool
        tools.setdefault(tool, set()).add(source.operator)
    for tool in ("trace", "record", "debug", *(["coverage"] if backend == "cpu" else ["inspect"])):
        assert tools[tool] == set(wanted), tool
    assert tools["explain"] == {"aten.index_select.default"}
