"""The command line: every example of the help pages runs, errors are one message with a code."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.inspect import report_of
from rushlight.ir.kernels import Manifest, manifest

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
COMMANDS = (
    *("export", "run", "bench", "profile", "inspect", "ops"),
    *("recipes", "accuracy", "new-backend"),
)
MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

class Two(torch.nn.Module):
    def forward(self, a, b, *, scale=None):
        return {"sum": a + b, "scaled": [a * scale]}

torch.manual_seed(0)
net = Net()

def build():
    return net, (torch.ones(3, 4),)

def two():
    return Two(), (torch.ones(2, 3), torch.ones(2, 3)), {"scale": torch.ones(3)}

def broken():
    raise ZeroDivisionError("no model today")

def wrong():
    return 3

bad_args = (net, 3)
no_inputs = net
data = [(torch.randn(3, 4),) for _ in range(4)]

def score(model):
    return -max(float((model(*x) - net(*x)).abs().max()) for x in data)

exported = torch.export.export(net, (torch.ones(3, 4),))
"""


def _helps() -> list[tuple[str, str]]:
    """(command, example) for every example on a help page."""
    commands = []
    for command in COMMANDS:
        text = CliRunner().invoke(app, [command, "--help"]).stdout
        text = re.sub(r" \\\n\s+", " ", text)  # an example in several lines
        commands += [(command, line) for line in re.findall(r"^\s+\$ (rushlight .*)$", text, re.M)]
    return commands


EXAMPLES = _helps()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples name."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "model.py").write_text(MODEL)
    torch.manual_seed(0)
    namespace: dict[str, object] = {}
    exec(MODEL, namespace)
    exported = namespace["exported"]
    assert isinstance(exported, torch.export.ExportedProgram)
    torch.export.save(exported, folder / "model.pt2")
    x = torch.randn(3, 4)
    np.save(folder / "x.npy", x.numpy())
    np.savez(folder / "inputs.npz", x=x.numpy())
    np.save(folder / "eager.npy", exported.module()(x).detach().numpy())
    program = rl.export(exported)
    program.save(folder / "first.pte", quiet=True)
    module = rl.load(program.buffer, trace=True)
    module(x.numpy())
    module.trace.save(folder / "model.etdp")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the current folder."""
    for path in made.iterdir():
        if path.is_file():
            (tmp_path / path.name.replace("first.pte", "model.pte")).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def _run(*args: str | Path) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def _good(*args: str | Path) -> str:
    result = _run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def _bad(*args: str | Path) -> str:
    """The message of a command that must fail with code 1 and one message."""
    result = _run(*args)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    (message,) = re.findall(r"^error: .*(?:\n .*)*", result.stderr, re.M)
    return str(message)


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_has_examples(command: str) -> None:
    assert sum(name == command for name, _ in EXAMPLES) >= 3
    assert all(line.startswith(f"rushlight {name} ") for name, line in EXAMPLES)


@pytest.mark.parametrize(("command", "line"), EXAMPLES, ids=lambda part: part)
def test_every_example_runs(command: str, line: str, folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    _good(*shlex.split(line)[1:])
    words = shlex.split(line)
    for option in ("-o", "--output", "--html"):
        if option in words:
            path = folder / words[words.index(option) + 1]
            assert path.stat().st_mtime_ns != before.get(path), f"{path.name} was not written"


def test_version() -> None:
    assert _good("--version") == f"rushlight {rl.__version__}\n"


def test_help_names_the_commands() -> None:
    text = _good("--help")
    assert all(command in text for command in COMMANDS)


# --- export ---------------------------------------------------------------------------------------


def test_export_quantises_by_a_recipe(folder: Path) -> None:
    result = _run(
        *("export", "model.py:build", "-o", "int8.pte"),
        *("--quantize", "int8", "--calibrate", "model.py:data"),
    )
    assert result.exit_code == 0, result.output
    assert "calibrate: 4 of 4" in result.stderr and "calibrate: 3 of 4" not in result.stderr
    assert b"quantize_per_tensor" in (folder / "int8.pte").read_bytes()


def test_export_wants_data_for_a_static_recipe(folder: Path) -> None:
    told = _bad("export", "model.py:build", "--quantize", "int8")
    assert "--calibrate FILE.py:NAME" in told and "--quantize int8-dynamic" in told
    assert "calibrate=" not in told and "recipe=" not in told


def test_recipes_are_listed() -> None:
    document = json.loads(_good("recipes", "--json"))
    assert {"int8", "int4-dynamic", "bfloat16"} <= {recipe["name"] for recipe in document}
    assert "int4-weights" in _bad("recipes", "int3")


def test_export_says_what_it_does_and_what_came_out(folder: Path) -> None:
    result = _run("export", "model.py:build", "-o", "out.pte")
    assert result.exit_code == 0, result.output
    stages = re.findall(r"✓ (.*?)  [\d.]+ s", result.stderr)
    assert stages[0] == "import PyTorch" and stages[-1] == "write"
    assert "capture" in stages and any("verify" in stage for stage in stages)
    report = report_of(folder / "out.pte")
    assert f"{report.bytes:,} bytes" in result.stdout and "portable 3" in result.stdout
    assert "ExecuTorch 1.4.1: runs" in result.stdout
    eager = np.load(folder / "eager.npy")
    np.testing.assert_allclose(rl.load("out.pte")(np.load("x.npy")), eager, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["model.py:net.first", "model.py:exported", "model:build"])
def test_what_can_be_exported(target: str, folder: Path) -> None:
    if target == "model.py:net.first":
        assert "forward" in _bad("export", target)  # a model without inputs
        return
    _good("export", target, "-o", "out.pte", "--no-verify")
    assert rl.load("out.pte")(np.load("x.npy")).shape == (3, 2)


@pytest.mark.parametrize("command", ["export", "accuracy"])
def test_a_wrong_name_is_told_before_anything_is_made(command: str, folder: Path) -> None:
    """The model is not even read: it would raise an error of its own."""
    assert "'model.bin': a program's file name must end in .pte" in _bad(
        command, "model.py:broken", "-o", "model.bin"
    )


def test_default_name_is_the_models(folder: Path) -> None:
    (folder / "model.pte").unlink()
    _good("export", "model.py:build", "--no-verify")
    assert (folder / "model.pte").exists()


def test_sizes_that_may_vary(folder: Path) -> None:
    _good("export", "model.py:two", "-o", "two.pte", "--dynamic", "a:0=n:1..8", "--dynamic",
          "b:0=n:1..8")  # fmt: skip
    module = rl.load("two.pte")
    ones = np.ones((5, 3), np.float32)
    assert module(ones, ones, scale=ones[0])["sum"].shape == (5, 3)
    with pytest.raises(rl.RunError):
        module(ones, ones[:4], scale=ones[0])
    text = _good("run", "two.pte", "--random")
    assert "float32[8, 3]" in text and "sum" in text and "scaled[0]" in text


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("x", "write INPUT:DIM=MIN..MAX"),
        ("y:0=1..8", "'y' is not a tensor that forward takes; tensors are x"),
        ("x:2=1..8", "x has 2 dimensions"),
        ("x:0=8..1", "8 is greater than 1"),
    ],
)
def test_dynamic_that_is_wrong(option: str, message: str, folder: Path) -> None:
    assert message in _bad("export", "model.py:build", "--dynamic", option)
    assert "settled when it was exported" in _bad("export", "model.pt2", "--dynamic", option)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("model.py", "names no model: write FILE.py:NAME"),
        ("nothing.py:build", "no such file: nothing.py"),
        ("nothing.at.all:build", "ModuleNotFoundError"),
        ("model.py:buld", "model.py has no 'buld'; it has"),
        (
            "model.py:broken",
            r"broken\(\) raised ZeroDivisionError at .*model.py:27: no model today",
        ),
        ("model.py:wrong", "is int: it must be an nn.Module"),
        ("model.py:bad_args", "args must be a tuple"),
        ("syntax.py:build", "SyntaxError at .*syntax.py:2"),
        ("nothing.pt2", "cannot read 'nothing.pt2': No such file"),
    ],
)
def test_models_that_are_none(target: str, message: str, folder: Path) -> None:
    (folder / "syntax.py").write_text("import torch\ndef build(:\n")
    assert re.search(message, _bad("export", target, "-o", "out.pte"))
    assert not (folder / "out.pte").exists()


def test_unknown_backend(folder: Path) -> None:
    message = _bad("export", "model.py:build", "--backend", "abacus")
    assert "unknown backend 'abacus'" in message and "portable" in message


# --- run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [["x.npy"], ["x=x.npy"], ["0=x.npy"], ["inputs.npz"]])
def test_run_writes_what_eager_computes(form: list[str], folder: Path) -> None:
    text = _good("run", "model.pte", *(f"--input={each}" for each in form), "-o", "y.npz")
    eager = np.load("eager.npy")
    with np.load("y.npz") as arrays:
        np.testing.assert_allclose(arrays["output"], eager, rtol=1e-5, atol=1e-6)
    assert "float32[3, 2]" in text and f"{eager.reshape(-1)[0]:.6g}"[:6] in text
    _good("run", "model.pte", "-i", form[0], "-o", "y.npy")
    np.testing.assert_allclose(np.load("y.npy"), eager, rtol=1e-5, atol=1e-6)


def test_run_of_a_file_that_executorch_wrote(folder: Path) -> None:
    np.savez("ones.npz", np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
    _good("run", GOLDEN / "add.pte", "--input", "ones.npz", "--output", "y.npy")
    expected = json.loads((GOLDEN / "expected.json").read_text())
    np.testing.assert_array_equal(np.load("y.npy"), expected["add.forward"][0])


def test_run_of_another_method(folder: Path) -> None:
    assert "'golden'" in _good("run", GOLDEN / "methods.pte", "--method", "get_name")
    message = _bad("run", GOLDEN / "methods.pte", "--method", "get_nam")
    assert "no method 'get_nam'" in message and "get_name" in message


def test_random_inputs_are_the_same_for_one_seed(folder: Path) -> None:
    _good("run", "model.pte", "--random", "--seed", "3", "-o", "a.npy")
    _good("run", "model.pte", "--random", "--seed", "3", "-o", "b.npy")
    _good("run", "model.pte", "--random", "--seed", "4", "-o", "c.npy")
    a, b, c = (np.load(f"{name}.npy") for name in "abc")
    assert np.array_equal(a, b) and not np.array_equal(a, c)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no --input for x: float32[3, 4]"),
        (["-i", "nothing.npy"], "cannot read 'nothing.npy' as an array: No such file"),
        (["-i", "model.py"], "cannot read 'model.py' as an array"),
        (["-i", "z=x.npy"], "no input is called 'z'; the method takes x: float32[3, 4]"),
        (["-i", "x.npy", "-i", "x.npy"], "2 inputs are given, the method takes x"),
        (["-i", "x=x.npy", "-i", "inputs.npz"], "input 'x' is given twice"),
        (["-i", "x=eager.npy"], "float32[3, 4]"),
        (["-i", "x.npy", "-o", "y.txt"], "give a name that ends in .npz"),
        (["-i", "x.npy", "-o", "no/where.npy"], "cannot write 'no/where.npy'"),
    ],
)
def test_inputs_that_do_not_fit(args: list[str], message: str, folder: Path) -> None:
    assert message in _bad("run", "model.pte", *args)


# --- bench ----------------------------------------------------------------------------------------


def test_bench_measures_what_it_says(folder: Path) -> None:
    text = _good("bench", "model.pte", "--repeat", "7", "--warmup", "1", "--operators")
    assert "forward(x: float32[3, 4]) -> float32[3, 2]" in text and "of 7" in text
    times = re.findall(r"run, (?:minimum|median|90th percentile) +([\d.e+]+) (ns|µs|ms|s)\b", text)
    scale = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    least, median, p90 = (float(value) * scale[unit] for value, unit in times)
    assert 0 < least <= median <= p90
    operators = {operator.name for operator in report_of("model.pte").operators}
    assert all(name in text for name in operators)
    shares = [float(share) for share in re.findall(r"([\d.]+)%", text)]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert "memory of the module" in text and "peak of the process" in text


# --- inspect --------------------------------------------------------------------------------------


def test_inspect_prints_json_alone(folder: Path) -> None:
    result = _run("inspect", "model.pte", "--json", "--html", "page.html")
    assert json.loads(result.stdout) == json.loads(json.dumps(report_of("model.pte").to_json()))
    assert "wrote page.html" in result.stderr
    assert "model.pte" in (folder / "page.html").read_text(encoding="utf-8")


def test_inspect_knows_parameters_and_lines(folder: Path) -> None:
    _good("export", "model.py:build", "-o", "out.pte", "--no-verify")
    text = _good("inspect", "out.pte")
    assert "first.weight" in text and "second.bias" in text
    assert "model.py:11: return self.second(" in text
    assert "forward(x: float32[3, 4]) -> float32[3, 2]" in text


@pytest.mark.parametrize(
    ("command", "status"), [("inspect --html", 1), ("trace -o", 1), ("diff model.pte --html", 2)]
)
def test_what_cannot_be_written(folder: Path, command: str, status: int) -> None:
    result = _run(*command.split(), "no/where.json", "model.pte")
    assert result.exit_code == status
    assert "error: cannot write 'no/where.json': No such file or directory" in result.stderr


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "bench", "profile", "inspect"])
def test_files_that_are_no_programs(command: str, folder: Path) -> None:
    good = Path("model.pte").read_bytes()
    Path("cut.pte").write_bytes(good[: len(good) // 2])
    Path("text.pte").write_bytes(b"hello " * 100)
    for name in ("nothing.pte", "cut.pte", "text.pte", "."):
        assert len(_bad(command, name)) > 20


def test_wrong_usage_is_code_2() -> None:
    for args in (["run"], ["bench", "x.pte", "--repeat", "0"], ["inspect", "--jsn"], ["fly"]):
        assert _run(*args).exit_code == 2


def test_traceback_for_developers(folder: Path) -> None:
    result = _run("inspect", "nothing.pte", "--traceback")
    assert isinstance(result.exception, rl.LoadError)


@pytest.mark.parametrize("args", [["run", "model.pte", "--random"], ["bench", "model.pte"],
                                  ["profile", "model.pte"],
                                  ["bench", "model.pte", "--compare", "--repeat", "2"],
                                  ["inspect", "model.pte", "--html", "p.html"]])  # fmt: skip
def test_run_side_never_imports_torch(args: list[str], folder: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from rushlight.cli import app\n"
        f"app({args!r}, standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_as_a_process(folder: Path) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rushlight.cli", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good = run("inspect", "model.pte")
    assert good.returncode == 0 and good.stderr == "" and "model.pte" in good.stdout
    assert max(map(len, good.stdout.splitlines())) <= 120
    bad = run("inspect", "nothing.pte")
    assert bad.returncode == 1 and bad.stdout == "" and bad.stderr.startswith("error: cannot read")
    assert run("run").returncode == 2
    assert "Usage: rushlight" in run("--help").stdout


# --- ops ------------------------------------------------------------------------------------------


def test_ops_lists_operators_with_their_dtypes() -> None:
    text = _good("ops", "gather")
    assert re.search(r"aten::gather.out\s+any; index: int32, int64\s+portable\s+yes\s+core", text)
    assert "1 operators" in text and "aten::add.out" not in text
    assert int(re.findall(r"(\d+) operators", _good("ops"))[0]) == len(manifest())


def test_ops_by_dtype() -> None:
    half, wide = (
        set(json.loads(_good("ops", "--dtype", dtype, "--json"))["operators"])
        for dtype in ("float16", "complex64")
    )
    assert "aten::gelu.out" in half - wide and "aten::permute_copy.out" in half & wide
    assert "aten::bitwise_not.out" not in half


def test_ops_as_json_is_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "ops.json"
    path.write_text(_good("ops", "--json"))
    assert list(Manifest.read(path)) == sorted(manifest(), key=lambda k: (k.family, k.name))


def test_ops_says_what_is_wrong() -> None:
    assert "no operator with 'nothing' in its name" in _bad("ops", "nothing")
    assert "'float17' is not a dtype; there are bfloat16, bool" in _bad("ops", "--dtype", "float17")
    assert "and dtype float16" in _bad("ops", "bitwise", "--dtype", "float16")
