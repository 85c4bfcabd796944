"""Files of exported programs: what they keep, and what is said of those that cannot be read."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._export.serde.serialize import SerializedArtifact
from torch.export import Dim, ExportedProgram

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.edge.operators import EdgeOpOverload, ops
from rushlight.exir.manager import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from rushlight.partition import get_lowered_submodules
from rushlight.record import exir_files as serde


class Model(nn.Module):
    """A buffer that changes, branches, several results, and a dynamic size."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> Any:
        self.total.add_(x.sum(0))
        y = torch.cond(x.sum() > 0, lambda x: torch.sin(x) + 1, lambda x: x * 2, (x,))
        return {"top": torch.topk(self.linear(y) + self.total, 2)[0], "size": x.shape[0] * 2}


def captured() -> ExportedProgram:
    torch.manual_seed(0)
    shapes = ({0: Dim("batch", min=2, max=9)},)
    return torch.export.export(Model().eval(), (torch.randn(3, 4),), dynamic_shapes=shapes)


def made(stage: str) -> ExportedProgram:
    if stage == "captured":
        return captured()
    edge = to_edge(captured())
    if stage != "edge":
        edge = edge.to_backend(CpuPartitioner() if stage == "cpu" else XnnpackPartitioner())
    return edge.exported_program()


def told(program: ExportedProgram) -> list[Any]:
    """What a graph says, but for containers in arguments of branches, which JSON makes lists."""
    text = [(n.op, n.name, n.target, n.meta.get("debug_handle")) for n in program.graph.nodes]
    return [*text, program.graph_signature]


@torch.no_grad()
def run(program: ExportedProgram, x: torch.Tensor) -> Any:
    return program.module()(x)


@pytest.mark.parametrize("stage", ["captured", "edge", "cpu", "xnnpack"])
def test_a_program_is_read_back(stage: str, tmp_path: Path) -> None:
    program, x = made(stage), torch.randn(5, 4)
    texts: dict[str, str] = {}
    serde.save(program, tmp_path / "m.exir", extra_files={"note": "for you"})
    again = serde.load(tmp_path / "m.exir", extra_files=texts)
    assert texts == {"note": "for you"}
    expected = run(captured(), x)
    for one in (again, serde.deserialize(serde.serialize(again))):
        torch.testing.assert_close(run(one, x), expected)
    assert told(again) == told(program)
    edges = [isinstance(n.target, EdgeOpOverload) for n in again.graph.nodes]
    assert any(edges) == (stage != "captured")


def test_a_lowered_module_keeps_what_is_known_of_it() -> None:
    program = made("xnnpack")
    again = serde.deserialize(serde.serialize(program))
    pairs = zip(
        get_lowered_submodules(program.graph_module),
        get_lowered_submodules(again.graph_module),
        strict=True,
    )
    for (name, before, _), (name_again, after, _) in pairs:
        assert (name, before.facts()) == (name_again, after.facts())
        assert (before.backend_id, before.processed_bytes) == (
            "XnnpackBackend",
            after.processed_bytes,
        )
        assert after.overread > 0 and after.sources().keys() == before.sources().keys() != set()


def test_a_program_of_lowered_modules_goes_on_to_the_same_file() -> None:
    model = nn.Conv1d(1, 4, 3).eval()
    edge = to_edge_transform_and_lower(
        torch.export.export(model, (torch.randn(2, 1, 8),)), partitioner=[XnnpackPartitioner()]
    )
    artifact = serde.serialize(edge.exported_program())
    again = EdgeProgramManager(serde.deserialize(artifact))
    assert again.to_executorch().buffer == edge.to_executorch().buffer


def test_out_variants_are_read_back() -> None:
    class Views(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.split(torch.sin(x).view(2, 6), 3, dim=1)

    x = torch.randn(3, 4)
    program = to_edge(torch.export.export(Views(), (x,))).to_executorch().exported_program()
    again = serde.deserialize(serde.serialize(program))
    torch.testing.assert_close(run(again, x), Views()(x))
    graphs = [[(n.name, n.args, n.kwargs) for n in p.graph.nodes] for p in (program, again)]
    assert str(graphs[0]) == str(graphs[1])


def test_tables_can_be_changed() -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    x, y = torch.randn(3), torch.randn(3)
    edge = to_edge(torch.export.export(Sum(), (x, y))).exported_program()
    written = serde.ExportedProgramSerializer({"acme": 2}).serialize(edge)
    table = written.exported_program
    assert table.opset_version["acme"] == 2
    node = table.graph_module.graph.nodes[0]
    assert node.target == "executorch.exir.dialects.edge.ops.aten.add.Tensor"
    node.target = node.target.replace("add", "mul")
    again = serde.ExportedProgramDeserializer().deserialize(
        table, written.state_dict, written.constants, written.example_inputs
    )
    torch.testing.assert_close(run2(again, x, y), x * y)
    assert ops.edge.aten.mul.Tensor in [n.target for n in again.graph.nodes]


def run2(program: ExportedProgram, *args: torch.Tensor) -> Any:
    return program.module()(*args)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    program = torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    path = tmp_path / "m.exir"
    serde.save(program, path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}

    def changed(**changes: bytes | None) -> io.BytesIO:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in {**entries, **changes}.items():
                if content is not None:
                    archive.writestr(name, content)
        file.seek(0)
        return file

    main = "serialized_exported_program.json"
    cases: list[tuple[str, dict[str, bytes | None]]] = [
        ("is of version 9.1, and 5.4 is known", {"version": b"9.1"}),
        ("it has no serialized_constants.pt", {"serialized_constants.pt": None}),
        ("cannot be read: JSONDecodeError", {main: b"{"}),
        ("cannot be read: KeyError", {main: b"{}"}),
        ("cannot be read: .*acme.what.is.this", {main: _calling(entries[main])}),
        ("cannot be read", {"serialized_state_dict.pt": b"abc"}),
    ]
    for text, changes in cases:
        with pytest.raises(rl.LoadError, match=rf"(?s){text}"):
            serde.load(changed(**changes))
    with pytest.raises(rl.LoadError, match="no archive"):
        serde.load(io.BytesIO(b"not a zip archive"))
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(rl.LoadError, match=r"torch\.export\.load"):
        serde.load(tmp_path / "m.pt2")


def _calling(program: bytes) -> bytes:
    return program.replace(b"torch.ops.aten.linear.default", b"torch.ops.acme.what.is.this")


def test_no_code_of_a_file_runs() -> None:
    class Run:
        def __reduce__(self) -> Any:
            return exec, ("raise SystemExit",)

    pickled = io.BytesIO()
    torch.save({"x": Run()}, pickled)
    artifact = serde.serialize(torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),)))
    bad = SerializedArtifact(artifact.exported_program, pickled.getvalue(), b"", b"")
    with pytest.raises(rl.LoadError, match="cannot be read"):
        serde.deserialize(bad)


def test_what_cannot_be_saved_is_said() -> None:
    wrong: Any = nn.Linear(2, 2)
    with pytest.raises(rl.ExportError, match="an ExportedProgram can be saved, not Linear"):
        serde.save(wrong, io.BytesIO())
