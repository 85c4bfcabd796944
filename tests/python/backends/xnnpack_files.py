"""What tests of XNNPACK's delegate share: files of real ExecuTorch, and payloads taken apart."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from rushlight.schema import xnnpack as fb
from rushlight.serialize.pte import PTEFile, read_pte, write_pte

ID = "XnnpackBackend"
HEADER = struct.Struct("<4x4sHIIIQ2x")


def blobs(file: PTEFile) -> list[bytes]:
    """The payloads of all XNNPACK delegates."""
    plan = file.program.execution_plan[0]
    return [bytes(file.delegate_blobs[d.processed.index]) for d in plan.delegates if d.id == ID]


def graph_of(blob: bytes) -> fb.Graph:
    """The graph in a payload with a header."""
    _, _, start, size, _, _ = HEADER.unpack_from(blob)
    return fb.unpack(blob[start : start + size])


def with_header(graph: fb.Graph, constants: bytes = b"") -> bytes:
    """A payload with a header, and these constants behind the graph."""
    flatbuffer = fb.pack(graph)
    flatbuffer += bytes(-len(flatbuffer) % 16)
    after = 32 + len(flatbuffer)
    header = HEADER.pack(b"XH00", 30, 32, len(flatbuffer), after, len(constants))
    return header.ljust(32, b"\0") + flatbuffer + constants


def replaced(pte: bytes, change: Callable[[fb.Graph], bytes]) -> bytes:
    """The program with another payload in place of its only delegate's."""
    file = read_pte(pte)
    [delegate] = file.program.execution_plan[0].delegates
    blob = bytes(file.delegate_blobs[delegate.processed.index])
    file.delegate_blobs[delegate.processed.index] = change(graph_of(blob))
    return bytes(write_pte(file))


def kinds_of(pte: bytes) -> Iterator[str]:
    """The kinds of all nodes of all delegates."""
    for blob in blobs(read_pte(pte)):
        for node in graph_of(blob).xnodes:
            yield type(node.xnode_union).__name__


class Peer:
    """Real ExecuTorch: exports modules, runs files."""

    def __init__(self, executorch: Any, folder: Path) -> None:
        self._executorch = executorch
        self._folder = folder

    def export(
        self, model: nn.Module, args: tuple[Any, ...], whole: bool = False, **options: Any
    ) -> bytes:
        """The file that its exporter makes with XNNPACK's partitioner.

        Args:
            model: what to export.
            args: example inputs.
            whole: all operators are given to XNNPACK, those too that its partitioner leaves out.
            **options: of torch.export.
        """
        program, pte = self._folder / "model.pt2", self._folder / "model.pte"
        torch.export.save(torch.export.export(model.eval(), args, **options), program)
        if whole:
            self._executorch.call("delegate", program=program, pte=pte, leave="?", xnnpack=True)
        else:
            self._executorch.call("export", program=program, pte=pte, xnnpack=True)
        return pte.read_bytes()

    def run(self, pte: bytes, args: tuple[torch.Tensor, ...]) -> list[np.ndarray]:
        """What its runtime gives."""
        file, data = self._folder / "run.pte", self._folder / "run.npz"
        outputs = self._folder / "out.npz"
        file.write_bytes(pte)
        np.savez(data, **{f"in{i}": x.numpy() for i, x in enumerate(args)})
        self._executorch.call("run", pte=file, data=data, outputs=outputs)
        with np.load(outputs) as arrays:
            return [arrays[f"out{i}"] for i in range(len(arrays))]
