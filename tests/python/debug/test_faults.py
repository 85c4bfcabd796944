"""Faults planted in programs are named: 24 of 24, on every kind of program."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

import rushlight as rl
from rushlight.debug import debug
from rushlight.quantization import quantize
from rushlight.runtime import TraceOptions


class Added(nn.Module):
    """Adds a table: one element of it that is wrong is a kernel that is wrong in one element."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(sizes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table


class Scaled(Added):
    """Multiplies by a table."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (self.table + 1)


class Mixed(nn.Module):
    """Convolutions, a depthwise one among them, attention, norms, products, sums and tables."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.pointwise = nn.Conv2d(16, 16, 1)
        self.position = Added(1, 16, 16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.gate = Scaled(1, 16, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(x))
        x = x + torch.nn.functional.hardswish(self.pointwise(self.depthwise(x)))
        x = self.position(x.flatten(2).transpose(1, 2))
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        return self.head(self.gate(x).mean(1))


def halved(tensor: torch.Tensor) -> torch.Tensor:
    """A scale that is halved; of integers, too."""
    return (tensor / 2).to(tensor.dtype)


def one_element(tensor: torch.Tensor) -> torch.Tensor:
    """One element that is wrong."""
    wrong = tensor.clone()
    flat = wrong.view(-1)
    flat[3] = (-128 if flat[3] > 0 else 127) if wrong.dtype == torch.int8 else flat[3] + 2.0
    return wrong


Fault = Callable[[torch.Tensor], torch.Tensor]
FAULTS: list[tuple[str, Fault]] = [
    ("stem", halved),
    ("depthwise", one_element),
    ("attention", halved),
    ("position", one_element),
    ("norm", halved),
    ("gate", one_element),
]
DATA = [torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(i)) for i in range(4)]


def captured(quantized: bool) -> ExportedProgram:
    torch.manual_seed(0)
    model = Mixed().eval()
    if not quantized:
        return torch.export.export(model, (DATA[0],))
    return quantize(model, (DATA[0],), calibrate=[(x,) for x in DATA], recipe="int8")


def with_fault(program: ExportedProgram, layer: str, fault: Fault) -> ExportedProgram:
    """The program with another weight in a layer."""
    faulty = copy.copy(program)
    faulty._state_dict = dict(program.state_dict)
    [name] = [name for name in weights_of(program, layer) if faulty._state_dict[name].dim() > 0]
    wrong = fault(faulty._state_dict[name].detach())
    is_parameter = isinstance(faulty._state_dict[name], nn.Parameter)
    faulty._state_dict[name] = nn.Parameter(wrong, False) if is_parameter else wrong
    return faulty


def weights_of(program: ExportedProgram, layer: str) -> list[str]:
    """The weights that calls of a layer read, directly or through a dequantisation."""
    names = {s.arg.name: s.target for s in program.graph_signature.input_specs if s.target}
    read = {}
    for node in program.graph.nodes:
        stack = node.meta.get("nn_module_stack") or {}
        if node.op != "call_function" or not any(path == layer for path, _ in stack.values()):
            continue
        waiting = list(node.all_input_nodes)
        while waiting:
            before = waiting.pop()
            if before.name in names and program.state_dict[names[before.name]].dim() >= 1:
                read[names[before.name]] = program.state_dict[names[before.name]].numel()
            elif "dequantize" in str(before.target):
                waiting += before.all_input_nodes[:1]
    return sorted(read, key=lambda name: ("weight" not in name, -read[name]))[:1]


CASES = [("portable", False), ("cpu", False), ("xnnpack", False), ("cpu", True)]


@pytest.mark.parametrize(("backend", "quantized"), CASES)
def test_every_fault_is_named(backend: str, quantized: bool) -> None:
    program = captured(quantized)
    clean = debug(program, backend=backend)
    assert clean.first is None and len(clean.gaps) > 6
    for layer, fault in FAULTS:
        faulty = with_fault(program, layer, fault)
        module = rl.load(
            rl.export(faulty, backend=backend, verify=False).buffer,
            trace=TraceOptions(values="all"),
        )
        module(DATA[0].numpy())
        departures = debug(program, backend=backend, trace=module.trace.to_bytes())
        first = departures.first
        assert first is not None, layer
        assert any(path.split(".")[0] == layer for path in first.modules), (layer, first.node)
        assert sum(gap.reason is not None for gap in departures.gaps) == 1, layer
