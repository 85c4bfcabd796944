"""Helpers of the xnnpack backend's tests: lowering, real ExecuTorch's results, payloads' nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.backends.xnnpack.payload import read_payload
from rushlight.partition import get_non_lowered_nodes
from rushlight.schema import xnnpack as fb

# The relative tolerance and the least scale that it is relative to, by dtype. Below that scale the
# errors are those of float16 itself.
TOLERANCE = {torch.float32: (1e-5, 1e-6), torch.float16: (4e-3, 0.1)}

HALF = pytest.param(torch.float16, marks=pytest.mark.full)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, HALF], ids=str)


class Calls(nn.Module):
    """Several modules or functions of the same inputs; it returns all their results in order.

    Args:
        functions: the functions; each returns one tensor or several.
        held: modules that the functions call.
    """

    def __init__(self, *functions: Callable[..., Any], held: Iterable[Any] = ()) -> None:
        super().__init__()
        self.functions = functions
        self.held = nn.ModuleList(f for f in (*functions, *held) if isinstance(f, nn.Module))

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [t for f in self.functions for t in _listed(f(*inputs))]


def _listed(result: Any) -> Sequence[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def lowered(model: nn.Module, *args: Any, dynamic_shapes: Any = None) -> rl.EdgeProgramManager:
    exported = torch.export.export(model.eval(), args, dynamic_shapes=dynamic_shapes)
    return rl.to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])


def graphs_of(edge: rl.EdgeProgramManager) -> list[fb.Graph]:
    """The graphs of all delegates."""
    return [read_payload(m.processed_bytes) for m in lowered_modules(edge.exported_program())]


def nodes_of(edge: rl.EdgeProgramManager) -> list[str]:
    """The kinds of all delegates' nodes."""
    return [type(n.xnode_union).__name__ for graph in graphs_of(edge) for n in graph.xnodes]


def left(edge: rl.EdgeProgramManager) -> dict[str, str]:
    """{operator outside the delegates: the reason}."""
    nodes = get_non_lowered_nodes(edge.exported_program().graph)
    return {
        str(n.target): n.meta["declined"]["XnnpackBackend"] for n in nodes if "declined" in n.meta
    }


class Peer:
    """Runs programs in real ExecuTorch.

    Args:
        executorch: the process of real ExecuTorch.
        folder: the folder for files.
    """

    def __init__(self, executorch: Any, folder: Path) -> None:
        self._executorch = executorch
        self._folder = folder

    def results(
        self, program: bytes, *inputs: torch.Tensor, ptd: Path | None = None
    ) -> list[torch.Tensor]:
        """The results of a program for these inputs; `ptd` has its external weights."""
        pte, data, outputs = (self._folder / f"x.{end}" for end in ("pte", "npz", "out.npz"))
        pte.write_bytes(program)
        np.savez(data, **{f"in{i}": x.numpy() for i, x in enumerate(inputs)})
        last = all(x.dim() == 4 and not x.is_contiguous() for x in inputs)
        options = {"channels_last": last} if ptd is None else {"channels_last": last, "ptd": ptd}
        self._executorch.call("run", pte=pte, data=data, outputs=outputs, **options)
        with np.load(outputs) as arrays:
            return [torch.from_numpy(arrays[f"out{i}"]) for i in range(len(arrays))]

    def compare(
        self, edge: rl.EdgeProgramManager, model: nn.Module, *calls: Sequence[torch.Tensor]
    ) -> None:
        """Compare a program's results with eager's for each call, relative to the scale of each.

        The program runs in real ExecuTorch and in our runtime.
        """
        program = bytes(edge.to_executorch().buffer)
        ours = rl.load(program, threads=2)
        for inputs in calls:
            with torch.no_grad():
                eager = flat(model(*inputs))
            for i, pair in enumerate(zip(self.results(program, *inputs), eager, strict=True)):
                equal(*pair, f"result {i}")
            for i, pair in enumerate(zip(flat(ours(*inputs)), eager, strict=True)):
                equal(*pair, f"our result {i}")

    def whole(
        self, model: nn.Module, *args: Any, dynamic_shapes: Any = None, more: Sequence[Any] = ()
    ) -> list[str]:
        """Check that XNNPACK takes the whole model and gives eager's results; returns its nodes."""
        edge = lowered(model, *args, dynamic_shapes=dynamic_shapes)
        assert not left(edge)
        self.compare(edge, model, args, *more)
        return nodes_of(edge)

    def calls(
        self,
        functions: Sequence[Callable[..., Any]],
        *args: torch.Tensor,
        held: Iterable[Any] = (),
    ) -> Counter[str]:
        """The number of nodes of each kind in one program of several functions of the inputs."""
        return Counter(self.whole(Calls(*functions, held=held), *args))


def equal(ours: torch.Tensor, eager: torch.Tensor, what: str = "") -> None:
    assert ours.shape == eager.shape and ours.dtype == eager.dtype, what
    if not eager.is_floating_point():
        assert torch.equal(ours, eager), what
        return
    tolerance, least = TOLERANCE[eager.dtype]
    scale = max(float(eager.abs().max()), least)
    torch.testing.assert_close(
        *(ours.float(), eager.float()),
        rtol=tolerance,
        atol=tolerance * scale,
        msg=lambda text: f"{what}: {text}",
    )
