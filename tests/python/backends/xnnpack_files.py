"""Files that real ExecuTorch's exporter makes with XNNPACK, and readers of their contents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from xnnpack_models import Peer

from rushlight.backends.xnnpack.payload import read_payload
from rushlight.schema import xnnpack as fb
from rushlight.serialize.pte import read_pte


def _graphs_of(pte: bytes) -> Iterator[fb.Graph]:
    file = read_pte(pte)
    for delegate in file.program.execution_plan[0].delegates:
        yield read_payload(bytes(file.delegate_blobs[delegate.processed.index]))


def kinds_of(pte: bytes) -> Iterator[str]:
    """The kinds of all nodes of all XNNPACK delegates."""
    for graph in _graphs_of(pte):
        for node in graph.xnodes:
            yield type(node.xnode_union).__name__


def datatypes_of(pte: bytes) -> Iterator[fb.Datatype]:
    """The datatypes of all values of all XNNPACK delegates."""
    for graph in _graphs_of(pte):
        for value in graph.xvalues:
            tensor = getattr(value.xvalue_union, "tensor_value", value.xvalue_union)
            yield fb.Datatype(tensor.datatype)


class Exporter(Peer):
    """Exports modules with real ExecuTorch, and runs the files."""

    def export(
        self, model: nn.Module, args: tuple[Any, ...], whole: bool = False, **options: Any
    ) -> bytes:
        """The file that its exporter makes with XNNPACK's partitioner.

        Args:
            model: what to export.
            args: example inputs.
            whole: give XNNPACK all operators, even those that its partitioner does not take.
            **options: options of torch.export.
        """
        program, pte = self._folder / "model.pt2", self._folder / "model.pte"
        self._save(program, model, args, options)
        if whole:
            self._executorch.call("delegate", program=program, pte=pte, leave="?", xnnpack=True)
        else:
            self._executorch.call("export", program=program, pte=pte, xnnpack=True)
        return pte.read_bytes()

    def export_apart(
        self, model: nn.Module, args: tuple[Any, ...], tag: str
    ) -> tuple[bytes, Path, list[str]]:
        """Export with the delegates' weights in a separate file.

        Returns:
            The program, the other file's path, and the names of all files that were written.
        """
        program, pte = self._folder / "model.pt2", self._folder / "apart.pte"
        self._save(program, model, args, {})
        names = self._executorch.call("export_apart", program=program, pte=pte, tag=tag)
        return pte.read_bytes(), self._folder / f"{tag}.ptd", names

    def _save(self, path: Path, model: nn.Module, args: tuple[Any, ...], options: Any) -> None:
        torch.export.save(torch.export.export(model.eval(), args, **options), path)
