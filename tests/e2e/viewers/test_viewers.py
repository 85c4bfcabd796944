"""Real Netron and real Model Explorer open our files: their own code, without a browser.

`.venv-viewers` has them (`make viewers`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._higher_order_ops.while_loop import while_loop

import rushlight as rl
from rushlight.inspect import ProgramReport, report_of

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
PEER = ROOT / "tests" / "peer"
pytestmark = pytest.mark.full


def _run(command: list[Any]) -> dict[str, Any]:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.größe = torch.nn.Linear(8, 16)
        self.last = torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.last(torch.relu(self.größe(x)))
        return y, torch.cumsum(y, 1)


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


class Loop(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, x * 2

        return while_loop(lambda i, x: i < 3, body, (torch.tensor(0), x))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of all kinds, for two backends also a record and a trace."""
    made = tmp_path_factory.mktemp("viewed")
    x = torch.randn(2, 8)
    model = Layers().eval()
    sizes = {"x": {0: torch.export.Dim("n", min=1, max=8)}}
    programs = {
        "dynamic": rl.export(model, (x,), dynamic_shapes=sizes),
        "int8": rl.export(model, (x,), quantize="int8", calibrate=[(x,)]),
        "xnnpack_int8": rl.export(
            model, (x,), backend="xnnpack", quantize="int8", calibrate=[(x,)]
        ),
        "cond": rl.export(Branches(), (x,)),
        "while": rl.export(Loop(), (x,)),
    }
    for name, program in programs.items():
        program.save(made / f"{name}.pte", quiet=True)
    for name in ("portable", "xnnpack", "cpu"):
        path = made / f"{name}.pte"
        record = made / f"{name}.etrecord"
        rl.export(model, (x,), backend=name, etrecord=record).save(path, quiet=True)
        module = rl.load(path, trace=True)
        for _ in range(3):
            module(x.numpy())
        module.trace.save(made / f"{name}.etdp")
    return made


SHOWN = ["portable", "xnnpack", "dynamic", "int8", "xnnpack_int8", "cond", "while"]


def _calls(report: ProgramReport) -> dict[str, list[str]]:
    """By method the operators and backends that it calls."""
    return {
        method.name: [i.op for i in method.instructions if i.kind in ("kernel", "delegate")]
        for method in report.methods
    }


@pytest.mark.skipif(not shutil.which("node"), reason="node is missing")
def test_netron_opens_our_programs_where_node_is_installed(viewers: Path, folder: Path) -> None:
    [netron] = viewers.glob("lib/python*/site-packages/netron")
    scripts = folder / "netron"
    shutil.copytree(netron, scripts)
    (scripts / "package.json").write_text('{"type": "module"}')
    files = [*(folder / f"{name}.pte" for name in SHOWN), GOLDEN / "methods.pte"]
    other = folder / "cpu.pte"
    told = _run(["node", PEER / "netron_side.mjs", scripts, *files, other])
    for file in files:
        view, report = told[file.name], report_of(file)
        assert "error" not in view, f"{file.name}: {view}"
        nodes = {method["name"]: method["nodes"] for method in view["methods"]}
        names = {name: [node["name"] for node in some] for name, some in nodes.items()}
        assert names == _calls(report)
        for method, shown in zip(report.methods, view["methods"], strict=True):
            slots = [*method.inputs, *method.outputs]
            types = [one["type"] for one in (*shown["inputs"], *shown["outputs"])]
            for slot, type in zip(slots, types, strict=True):
                value = method.values[slot.value]
                dtype = value.dtype.replace("bool", "boolean")
                sizes = f"[{','.join(map(str, value.shape))}]" if value.shape else ""
                assert type == (f"{dtype}{sizes}" if value.kind == "tensor" else "")
    weight = told["portable.pte"]["methods"][0]["nodes"][0]["inputs"][1]
    assert weight == {"name": "weight", "type": "float32[16,8]", "bytes": 512}
    [inner] = [node["inside"] for node in told["xnnpack.pte"]["methods"][0]["nodes"][:1]]
    assert inner == ["XNNFullyConnected", "XNNFullyConnected"]
    # Netron shows payloads of a fixed list of backends only, which it names.
    assert told["cpu.pte"] == {"error": "ExecuTorch delegate 'CpuBackend' not implemented."}


TRACED = ("portable", "xnnpack", "cpu")


@pytest.fixture(scope="module")
def explored(viewers: Path, folder: Path) -> dict[str, Any]:
    """By file, what Model Explorer shows of it; of a trace, over the record of its program."""
    files = [*(folder / f"{name}.pte" for name in [*SHOWN, "cpu"]), GOLDEN / "methods.pte"]
    files += [folder / f"{name}.etrecord" for name in TRACED]
    both = [f"{folder / name}.etrecord+{folder / name}.etdp" for name in TRACED]
    return _run([viewers / "bin" / "python", PEER / "model_explorer_side.py", *files, *both])


def test_model_explorer_opens_our_programs(explored: dict[str, Any], folder: Path) -> None:
    for name, graphs in explored.items():
        if not name.endswith(".pte"):
            continue
        file = GOLDEN / name if name == "methods.pte" else folder / name
        for method, calls in _calls(report_of(file)).items():
            labels = [node["label"] for node in graphs[method]]
            for call in calls:
                assert call in labels or call.partition(".")[0] in labels, (name, labels)
    inside = explored["xnnpack.pte"]["xnnpack.pte::forward_0_0"]
    layers = [node for node in inside if node["label"] == "XNNFullyConnected"]
    assert len(layers) == 2 and all(node["inputs"] for node in layers)


@pytest.mark.parametrize("name", TRACED)
def test_model_explorer_opens_our_records(explored: dict[str, Any], name: str) -> None:
    [nodes] = explored[f"{name}.etrecord"].values()
    shown = [node for node in nodes if "debug_handle" in node["attributes"]]
    operators = [node["attributes"]["Op Type"] for node in shown]
    linear = "aten.linear.default"
    assert operators == [linear, "aten.relu.default", linear, "aten.cumsum.default"]
    spaces = [node["namespace"] for node in shown if node["label"] == "Linear"]
    id = {"xnnpack": "XnnpackBackend", "cpu": "CpuBackend"}.get(name)
    part = f"delegates/{id}/partition_0"
    assert spaces == ([part, part] if id else ["größe", "last"])


@pytest.mark.parametrize("name", TRACED)
def test_model_explorer_lays_our_traces_over_records(explored: dict[str, Any], name: str) -> None:
    view = explored[f"{name}.etdp"]
    assert "error" not in view
    times = view["metrics"]["Runtime Total Avg (ms)"]
    assert len(times) == len(view["operators"]) == 4
    assert all(0 < time < 1000 for time in times.values())
