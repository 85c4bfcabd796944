"""What is beyond the limits of a file or a backend: left to the kernels, or refused at export."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.errors import ExportError
from rushlight.partition.operators import check_arguments
from rushlight.partition.partitioner import Partitioner
from rushlight.schema.cpu_engine import Limit

BEYOND = int(Limit.WINDOW) + 1
IMAGE = torch.randn(1, 3, 8, 8)


class Does(nn.Module):
    def __init__(self, does: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.does = does
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.does(x)


class Padded(Does):
    """A pad with zeros before a convolution, which backends make its padding."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(self.does(x))[..., :3]


WINDOWS: dict[str, tuple[nn.Module, torch.Tensor]] = {
    "stride": (nn.Conv2d(3, 4, 3, stride=BEYOND), IMAGE),
    "stride of lines": (nn.Conv1d(3, 4, 3, stride=BEYOND), torch.randn(1, 3, 9)),
    "dilation": (nn.Conv2d(3, 4, 1, dilation=BEYOND), IMAGE),
    "transposed": (nn.ConvTranspose2d(3, 4, 3, stride=(1, BEYOND)), IMAGE[..., :1]),
    "max pool": (Does(lambda x: F.max_pool2d(x, 2, BEYOND) + 1), IMAGE),
    "average pool": (Does(lambda x: F.avg_pool2d(x, 2, BEYOND) + 1), IMAGE),
    "kernel": (Does(lambda x: F.avg_pool2d(x, (1, BEYOND)) + 1), torch.randn(1, 1, 1, BEYOND)),
    "greatest": (Does(lambda x: x.amax(3) + 1), torch.randn(1, 1, 2, BEYOND)),
}


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_beyond_the_limit_make_files_that_load(name: str, backend: str) -> None:
    model, x = WINDOWS[name]
    program = rl.export(model.eval(), (x,), backend=backend, verify=False)
    rl.load(bytes(program.buffer))


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
def test_pads_beyond_the_limit_are_no_padding_of_a_convolution(backend: str) -> None:
    model, x = Padded(lambda x: F.pad(x, (0, BEYOND - 1))).eval(), torch.randn(1, 3, 1, 2)
    module = rl.load(bytes(rl.export(model, (x,), backend=backend, verify=False).buffer))
    torch.testing.assert_close(module(x), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_strides_beyond_32_bits_are_refused_at_export(backend: str) -> None:
    huge = torch.zeros(0, 1 << 21, 1 << 20)
    with pytest.raises(ExportError, match="strides take 32 bits"):
        _ = rl.export(Does(lambda x: x + 1), (huge,), backend=backend, verify=False).buffer


class Wide(nn.Module):
    """Computes with so many copies of each element, and gives their sums."""

    def __init__(self, copies: int) -> None:
        super().__init__()
        self.copies = copies

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.expand(x.shape[0], self.copies) * 2).amax(1)


@pytest.mark.parametrize("partitioner", [CpuPartitioner(), XnnpackPartitioner()])
def test_values_with_too_many_elements_are_left_out_by_name(partitioner: Partitioner) -> None:
    copies = 1 << 30
    for rows, fits in ((int(Limit.ELEMENTS) // copies, True), (2048, False)):
        program = torch.export.export(Wide(copies), (torch.zeros(rows, 1),))
        result = partitioner.partition(rl.to_edge(program).exported_program())
        reasons = [why for why in result.declined.values() if "has more than" in why]
        assert (reasons == []) == fits
        assert all(f"has more than {int(Limit.ELEMENTS)} elements" in why for why in reasons)


def test_parts_with_too_many_arguments_are_refused() -> None:
    check_arguments(int(Limit.ARGUMENTS), Limit.ARGUMENTS)
    with pytest.raises(ExportError, match="at most 65536 are possible"):
        check_arguments(int(Limit.ARGUMENTS) + 1, Limit.ARGUMENTS)
