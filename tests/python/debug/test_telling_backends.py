"""Backends in Python and in C that tell what they compute: a fault inside them is named."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram
from typer.testing import CliRunner

import rushlight as rl
from delegates import Interpretation, Interpreter, taking
from rushlight import runtime
from rushlight.cli import app
from rushlight.debug import debug
from rushlight.partition import BackendDetails, DelegateMappingBuilder, PreprocessResult
from rushlight.runtime import TraceOptions

PLUGINS = Path(__file__).resolve().parents[2] / "cpp" / "delegate" / "plugins"
X = torch.linspace(-1, 2, 8).reshape(2, 4)


class Part(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * 3


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.abs(x) + 1  # not delegated
        return torch.sin(self.part(y))


class Telling(Interpreter):
    """Tells the value of every call.

    Attributes:
        wrong: a call one element of whose result is wrong.
        tells: whether it tells values at all.
    """

    wrong = ""
    tells = True

    def execute(self, context: Any, handle: Interpretation, args: Sequence[Any]) -> None:
        program = handle.program
        known: dict[str, torch.Tensor] = dict(handle.data)
        for name, array in zip(program["inputs"], args, strict=False):
            known[name] = torch.from_numpy(np.array(array))
        for call in program["calls"]:
            one = {**program, "calls": [call], "outputs": [{"node": call["name"]}]}
            one["inputs"] = list(known)
            part = Interpretation.__new__(Interpretation)
            part.program, part.data = {**one, "written": {}}, {}
            [result] = part.run(list(known.values()))
            if call["name"] == self.wrong:
                result.view(-1)[2] += 1
            known[call["name"]] = result
            if self.tells and context.wants_value(call["name"]):
                context.value(call["name"], result.numpy())
        for i, output in enumerate(program["outputs"], start=len(program["inputs"])):
            args[i][...] = known[output["node"]].numpy()


@pytest.fixture
def telling() -> Any:
    backend = Telling()
    runtime.register_backend("Interpreted", backend)
    yield backend
    runtime.unregister_backend("Interpreted")


TAKEN = ("aten.tanh", "aten.mul", "aten.sin")


def test_a_backend_in_python(telling: Telling) -> None:
    partitioner = taking(*TAKEN)
    clean = debug(Network().eval(), (X,), backend=partitioner)
    assert clean.verdict == "" and clean.first is None and not clean.not_compared
    inside = [gap.node for gap in clean.gaps if gap.place.backend == "Interpreted"]
    assert inside == ["tanh", "mul", "sin"]
    for name in inside:
        telling.wrong = name
        first = debug(Network().eval(), (X,), backend=partitioner).first
        assert first is not None and first.node == name and first.place.inside == name
        assert first.modules == (() if "sin" in name else ("part",))
        assert np.count_nonzero(first.value - first.wanted > 0.5) == 1
    telling.tells = False
    whole = debug(Network().eval(), (X,), backend=partitioner).first
    assert whole is not None and whole.node == "sin" and whole.place.inside == ""


def test_a_trace_of_a_backend_in_python(telling: Telling, tmp_path: Path) -> None:
    """Values that were recorded elsewhere, by `rushlight debug --device-trace`."""
    telling.wrong = "tanh"
    pte = rl.export(Network().eval(), (X,), backend=taking(*TAKEN), verify=False).buffer
    module = rl.load(pte, trace=TraceOptions(values="all"))
    module(X.numpy())
    module.trace.save(tmp_path / "device.etdp")
    telling.wrong = ""
    values = (tmp_path / "device.etdp.values").read_bytes()
    trace = (tmp_path / "device.etdp").read_bytes(), values
    departures = debug(Network().eval(), (X,), backend=taking(*TAKEN), trace=trace)
    assert departures.first is not None and departures.first.node == "tanh"
    assert [gap.node for gap in departures.gaps if gap.reason] == ["tanh"]
    (tmp_path / "m.py").write_text(
        "import torch\nfrom test_telling_backends import Network, X\n"
        "def build():\n    return Network().eval(), (X,)\n"
    )
    trace_option = ("--device-trace", str(tmp_path / "device.etdp"))
    done = CliRunner().invoke(
        app, ["debug", f"{tmp_path / 'm.py'}:build", "--backend", "cpu", *trace_option]
    )
    assert done.exit_code == 1 and "of another program" in " ".join(done.output.split())


class Scale(BackendDetails):
    """The compiler of tests/cpp/delegate/plugins/scale.c: products with 3."""

    factor = 3.0

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: Any) -> PreprocessResult:
        [call] = [node for node in edge_program.graph.nodes if node.op == "call_function"]
        builder = DelegateMappingBuilder()
        builder.insert_delegate_mapping_entry(nodes=call, identifier="mul")
        builder.insert_delegate_mapping_entry(nodes=call, identifier=7)
        payload = b"SCL1" + struct.pack("f", Scale.factor)
        return PreprocessResult(payload, builder.get_delegate_mapping())


def test_a_backend_in_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libscale.so"
    command = ["gcc", "-std=c99", "-fPIC", "-shared", f"-I{runtime.include_path()}"]
    subprocess.run([*command, str(PLUGINS / "scale.c"), "-o", str(library)], check=True)
    runtime.register_backend_library(library)
    partitioner = taking("aten.mul", backend="Scale")
    clean = debug(Network().eval(), (X,), backend=partitioner)
    assert clean.verdict == "" and clean.first is None
    assert "mul" in [gap.node for gap in clean.gaps if gap.place.backend == "Scale"]
    monkeypatch.setattr(Scale, "factor", 3.5)
    first = debug(Network().eval(), (X,), backend=partitioner).first
    assert first is not None and first.node == "mul" and first.modules == ("part",)
    assert first.place.backend == "Scale" and first.place.inside in ("mul", "7")
    assert "test_telling_backends.py" in first.source.file
