"""The map to Python lines: how much of it a file has, and that failures and reports find lines."""

from __future__ import annotations

import runpy
from pathlib import Path, PurePath
from typing import Any

import pytest
import torch
from torch.export import export
from typer.testing import CliRunner

import rushlight as rl
from delegated_models import Sine
from rushlight.cli import app
from rushlight.edge import ExecutorchBackendConfig
from rushlight.emit import debug
from rushlight.errors import Code
from rushlight.inspect import report_of
from rushlight.serialize import debug_limit
from rushlight.serialize.debug import KEY, read_debug
from rushlight.serialize.pte import read_pte
from rushlight.serialize.segments import as_bytes

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
BACKENDS = ("portable", "cpu", "xnnpack")


def map_in(file: bytes) -> bytes:
    return bytes(as_bytes(read_pte(file).named_data[KEY]))


def made(model: torch.nn.Module, *args: Any, **options: Any) -> rl.Program:
    return rl.export(model.eval(), args, verify=False, **options)


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0] * 2


@pytest.mark.filterwarnings("ignore:The tensor attributes")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_unrolled_lstm_is_small(backend: str) -> None:
    """Each of a backend's instructions listed all nodes of its line: 1.5 MB for 8 time steps."""
    lengths = (8, 16)
    programs = [made(Recurrent(), torch.ones(n, 1, 4), backend=backend) for n in lengths]
    listed = []
    for program in programs:
        [method] = program.manager.debug_map.methods.values()
        places = [nodes for one in method.delegates for nodes in one.values()]
        listed.append(sum(map(len, places)) + len(method.instructions))
        assert {n.line.text for nodes in places for n in nodes} <= {"return self.lstm(x)[0] * 2"}
        assert len(map_in(program.buffer)) < 1500
        assert report_of(program.buffer).debug_left_out == []
    assert listed[1] < 2.1 * listed[0]


def test_each_path_is_made_relative_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    relative = debug._relative

    def counted(path: PurePath, folder: PurePath) -> str:
        calls.append(path)
        return relative(path, folder)

    monkeypatch.setattr(debug, "_relative", counted)
    made(torch.nn.Sequential(*(Sine() for _ in range(20))), torch.ones(2))
    assert [path.name for path in calls] == ["delegated_models.py"]


def test_how_much_the_file_tells(tmp_path: Path) -> None:
    line = f"return x.sin() + {' + '.join(['x'] * 60)}"
    (tmp_path / "long.py").write_text(
        f"import torch\nclass Long(torch.nn.Module):\n    def forward(self, x):\n        {line}\n"
    )
    long = runpy.run_path(str(tmp_path / "long.py"))["Long"]
    files = {level: made(long(), torch.ones(2), debug=level).buffer for level in ("lines", "full")}
    texts = {
        level: read_debug(map_in(file)).methods["forward"].instructions[0].line.text
        for level, file in files.items()
    }
    assert texts == {"full": line, "lines": line[:159] + "…"}
    none = made(long(), torch.ones(2), debug="none")
    assert KEY not in read_pte(none.buffer).named_data
    assert none.report().methods[0].instructions[0].source is not None
    assert report_of(none.buffer).methods[0].instructions[0].source is None
    edge = rl.to_edge(export(long(), (torch.ones(2),)))
    assert edge.to_executorch(ExecutorchBackendConfig(debug="full")).buffer == files["full"]
    for option in ("line", None, True):
        with pytest.raises(rl.ExportError, match="'lines', 'full', 'none'") as caught:
            made(long(), torch.ones(2), debug=option)
        assert caught.value.code is Code.INVALID_ARGUMENT


def test_a_report_at_export_is_whole_and_says_what_the_file_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(debug_limit, "LEAST_LIMIT", 150)
    program = made(Recurrent(), torch.ones(3, 1, 4), backend="cpu")
    program.save(tmp_path / "m.pte", quiet=True)
    reports = (program.report(), report_of(tmp_path / "m.pte"))
    for report in reports:
        assert report.debug_left_out[:2] == ["source text", "module paths"]
        text = " ".join(str(report).split())
        assert "The map to Python lines is cut" in text and "no source text, module paths" in text
    whole, stored = ([c.source for c in report.methods[0].coverage] for report in reports)
    assert any(source and source.text and source.module == "lstm" for source in whole)
    assert stored == [] and len(map_in(program.buffer)) <= 150
    monkeypatch.undo()
    assert "is cut" not in str(made(Sine(), torch.ones(2)).report())


def test_the_command_line_strips_the_map(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
        "def build():\n    return M(), (torch.ones(2),)\n"
    )
    out = str(tmp_path / "m.pte")
    sources = {}
    for level in ("full", "none", "half"):
        options = ["--debug", level, "--no-verify", "-o", out]
        result = CliRunner().invoke(app, ["export", f"{tmp_path / 'm.py'}:build", *options])
        sources[level] = result.exit_code
        if level != "half":
            named = read_pte(Path(out).read_bytes()).named_data
            assert (KEY in named) == (level == "full"), result.output
    assert sources == {"full": 0, "none": 0, "half": 1}


def test_methods_and_forms_share_what_is_equal() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(12)), torch.nn.ReLU()).eval()
    program = export(model, (torch.ones(2, 4),))
    one, two = (
        len(map_in(rl.export(methods, backend="cpu", verify=False).buffer))
        for methods in ({"forward": program}, {"forward": program, "second": program})
    )
    assert two < 1.5 * one
    forms = [len(map_in(made(model, torch.ones(2, 4), backend=b).buffer)) for b in BACKENDS]
    fat = made(model, torch.ones(2, 4), backend=["xnnpack", "cpu", "portable"])
    assert len(map_in(fat.buffer)) < 0.8 * sum(forms)
    assert len(read_debug(map_in(fat.buffer)).methods) == 3


# --- files of before ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cpu_engine_v1_sequence", "cpu_engine_v5_weights"])
def test_lines_of_files_with_a_map_of_version_1(name: str) -> None:
    path = GOLDEN / f"{name}.pte"
    assert map_in(path.read_bytes()).startswith(b'{"version":1')
    [method] = report_of(path).methods
    sources = [covered.source for covered in method.coverage]
    assert len(sources) > 3 and all(s and s.line > 0 and s.text for s in sources)
    assert method.instructions[0].source is not None


def test_a_model_without_a_file_has_no_lines_but_names() -> None:
    """What `exec` makes has no lines in torch's traces."""
    space: dict[str, Any] = {"torch": torch}
    exec("class M(torch.nn.Module):\n  def forward(self, x):\n    return x.sin()", space)
    program = made(space["M"](), torch.ones(2))
    decoded = read_debug(map_in(program.buffer))
    assert [node.name for node in decoded.methods["forward"].instructions] == ["sin"]
    assert decoded == program.manager.debug_map
