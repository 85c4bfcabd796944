"""`rushlight diff`: what it prints, its page, its JSON and its exit status."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


class Network(nn.Module):
    """Two outputs, the second of which can be made wrong in one element."""

    def __init__(self, fault: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 4)
        self.fault = torch.zeros(4)
        self.fault[2] = fault

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.linear(x)
        return y, torch.sigmoid(y) + self.fault


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    x = torch.randn(3, 8)
    for name, fault in (("right", 0.0), ("wrong", 0.5)):
        program = rl.export(Network(fault).eval(), (x,), backend="cpu")
        program.save(folder / f"{name}.pte", quiet=True)
    shapes = ({0: torch.export.Dim("n", min=2, max=9)},)
    program = rl.export(Network().eval(), (x,), dynamic_shapes=shapes)
    program.save(folder / "dynamic.pte", quiet=True)
    halves = rl.export(Network().eval().half(), (x.half(),), verify=False)
    halves.save(folder / "half.pte", quiet=True)
    rl.export(nn.Linear(8, 4).eval(), (x,)).save(folder / "one.pte", quiet=True)
    return folder


def run(*args: Any) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["diff", *map(str, args)], env={"COLUMNS": "160"})
    return done.exit_code, done.output


def json_of(*args: Any) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["diff", *map(str, args), "--json"])
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_file_and_itself(folder: Path) -> None:
    rules = ["contract changed", "size > 1x", "memory > 1x", "accuracy < 100 dB", "error > 0"]
    options = [part for rule in rules for part in ("--fail-if", rule)]
    code, told = run(folder / "right.pte", folder / "right.pte", *options, "--repeat", 6)
    assert code == 0, told
    assert told.count("passed") == len(rules)
    assert "the same: contract, sizes" in told and "forward: memory, operators" in told


def test_a_planted_fault_is_named(folder: Path) -> None:
    one = json_of(folder / "right.pte", folder / "wrong.pte", "--run", "--repeat", 6)
    [method] = one["methods"]
    first, second = method["run"]["outputs"]
    assert not first["departs"] and first["max_error"] == 0 and first["sqnr"] is None
    assert second["departs"] and second["max_error"] == pytest.approx(0.5, rel=1e-5)
    assert second["where"][1] == 2 and 0 < second["cosine"] < 1
    code, told = run(
        *(folder / "right.pte", folder / "wrong.pte", "--repeat", 6),
        *("--fail-if", "error > 0.4", "--fail-if", "error > 0.6"),
    )
    assert code == 1 and "departs by more than roundings is 1;" in told
    assert re.search(r"failed\s+error > 0.4\s+forward: 0.5", told)
    assert re.search(r"passed\s+error > 0.6", told)


def test_inputs_that_both_take_are_made_up(folder: Path) -> None:
    for pair in (("right.pte", "dynamic.pte"), ("dynamic.pte", "right.pte")):
        made = json_of(*(folder / name for name in pair), "--run", "--repeat", 6)
        assert made["methods"][0]["run"]["inputs"] == "float32[3, 8]" and made["contract_changed"]
        assert not any(output["departs"] for output in made["methods"][0]["run"]["outputs"])
    made = json_of(folder / "right.pte", folder / "half.pte", "--run", "--repeat", 6)
    output = made["methods"][0]["run"]["outputs"][0]
    assert (output["before"], output["after"]) == ("float32[3, 4]", "float16[3, 4]")
    assert 0 < output["max_error"] < 0.01 and not output["departs"]


def test_inputs_from_files(folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((5, 8), 0.25, np.float32))
    args = (folder / "dynamic.pte", folder / "dynamic.pte", "--input", tmp_path / "x.npy")
    assert json_of(*args, "--repeat", 6)["methods"][0]["run"]["inputs"] == "float32[5, 8]"
    code, told = run(folder / "dynamic.pte", folder / "right.pte", *args[2:])
    assert code == 0 and "no inputs that both programs take were found" in " ".join(told.split())
    code, told = run(*args[:3], tmp_path / "none.npy")
    assert code == 2 and "cannot read" in told


def test_another_number_of_outputs(folder: Path) -> None:
    made = json_of(folder / "right.pte", folder / "one.pte", "--run", "--repeat", 6)
    outputs = made["methods"][0]["run"]["outputs"]
    assert [output["after"] for output in outputs] == ["float32[3, 4]", ""]
    changed = {text["name"]: text["after"] for text in made["methods"][0]["contract"]}
    assert changed == {"input 0": "input: float32[3, 8]", "output 1": ""}
    code, told = run(folder / "right.pte", folder / "one.pte", "--fail-if", "accuracy < 1 dB")
    assert code == 1 and "1 cannot be compared" in told


def test_times(folder: Path) -> None:
    made = json_of(folder / "right.pte", folder / "dynamic.pte", "--run", "--repeat", 12)
    made_run = made["methods"][0]["run"]
    latency = made_run["latency"]
    assert made_run["runs"] == 12 and latency["before"] > 0
    assert 0 < latency["low"] <= latency["ratio"] <= latency["high"]
    names = {change["name"] for change in made_run["kinds"]}
    assert any("aten.linear" in name for name in names)


def test_rules_of_a_file(folder: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("# what a release may not do\ncontract changed\n\nsize > 10x  # at most\n")
    pair = (folder / "right.pte", folder / "dynamic.pte")
    code, told = run(*pair, "--rules", rules)
    assert code == 1 and re.search(r"failed\s+contract changed\s+changed", told)
    rules.write_text("size > 10x\nsice > 10x\n")
    code, told = run(*pair, "--rules", rules)
    assert code == 2 and "rules.txt:2: 'sice' is not understood here" in told and "^^^^" in told
    code, told = run(*pair, "--rules", tmp_path / "none.txt")
    assert code == 2 and "cannot be read: No such file" in told


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.pte", "right.pte"], "No such file or directory"),
        (["model.txt", "right.pte"], "is no program and no model"),
        (["right.pte", "right.pte", "--method", "x"], "'x' is not in both programs; methods of b"),
        (["right.pte", "right.pte", "--fail-if", "memory of x > 1x"], "there are forward"),
        (["right.pte", "right.pte", *["--data", "a.ptd"] * 3, "--run"], "--data is given 3 times"),
    ],
)
def test_what_cannot_be_compared(
    args: list[str], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, told = run(*args)
    assert code == 2 and message in " ".join(told.split()), told


def test_a_program_that_does_not_run_here(folder: Path, tmp_path: Path) -> None:
    """What the files hold is shown all the same, and rules about runs are broken."""
    path = tmp_path / "absent.pte"
    path.write_bytes((folder / "right.pte").read_bytes().replace(b"CpuBackend", b"GpuBackend"))
    code, told = run(path, path, "--fail-if", "latency > 2x", "--fail-if", "size > 1x")
    assert code == 1 and "it cannot be loaded" in told and "GpuBackend" in told
    assert re.search(r"passed\s+size > 1x", told)


def test_language_models_are_run_by_their_runner(tmp_path: Path) -> None:
    path = GOLDEN / "llm" / "v1.pte"
    made = json_of(path, path, "--run", "--repeat", 6)
    runs = {method["name"]: method["run"] for method in made["methods"]}
    shown = {name: [output["name"] for output in runs[name]["outputs"]] for name in runs}
    assert shown["step"] == ["tokens", "log probabilities"]
    assert shown["embed"] == ["tokens", "embedding"]
    assert not any(o["max_error"] for name in ("step", "embed") for o in runs[name]["outputs"])
    assert runs["step"]["latency"]["ratio"] > 0
    assert [kind["name"] for kind in runs["step"]["kinds"]] == ["generating 16 tokens"]
    np.save(tmp_path / "t.npy", np.array([5, 3, 1]))
    made = json_of(path, path, "--method", "step", "--input", tmp_path / "t.npy", "--repeat", 6)
    [shorter] = [method["run"] for method in made["methods"] if method["name"] == "step"]
    assert shorter["inputs"].startswith("3 tokens given")
    assert shorter["outputs"][0]["before"] == "float32[2]"
    code, told = run(path, path, "--method", "step", "--input", f"wanted={tmp_path / 't.npy'}")
    assert code == 2 and "makes all inputs but the tokens" in " ".join(told.split())


def test_inputs_of_test_cases(folder: Path, tmp_path: Path) -> None:
    x = torch.linspace(-1, 1, 24).reshape(3, 8)
    cases = [(x,), rl.TestCase((x * 9,), name="large")]
    bundle = tmp_path / "right.bpte"
    rl.bundle(folder / "right.pte", cases).save(bundle, quiet=True)
    wrong = folder / "wrong.pte"
    inputs = ("--input", bundle)
    for pair in ((bundle, wrong), (wrong, bundle), (folder / "right.pte", wrong, *inputs)):
        [method] = json_of(*pair, "--run", "--repeat", 6)["methods"]
        outputs = {output["name"]: output for output in method["run"]["outputs"]}
        assert list(outputs) == ["case 0: 0", "case 0: 1", "case large: 0", "case large: 1"]
        assert outputs["case large: 1"]["departs"] and not outputs["case large: 0"]["departs"]
        assert method["run"]["inputs"] == "float32[3, 8], and those of 1 more test case(s)"
    one = json_of(folder / "one.pte", bundle, "--run", "--repeat", 6)["methods"][0]["run"]
    assert [output["after"] for output in one["outputs"]] == ["float32[3, 4]"] * 4
    other = json_of(folder / "dynamic.pte", bundle, "--run", "--repeat", 6)["methods"][0]["run"]
    assert len(other["outputs"]) == 4 and not other["note"]
    code, told = run(folder / "one.pte", folder / "one.pte", "--input", tmp_path / "none.bpte")
    assert code == 2 and "none.bpte" in told and "No such file" in told


def test_cases_of_another_program(folder: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "other.bpte"
    program = rl.export(nn.Linear(5, 4).eval(), (torch.ones(2, 5),))
    rl.bundle(program, [(torch.ones(2, 5),)]).save(bundle, quiet=True)
    code, told = run(folder / "one.pte", folder / "one.pte", "--input", bundle)
    told = " ".join(told.split())
    assert code == 0 and "case 0: no inputs that both programs take" in told
    assert "float32[3, 8]" in told
    rule = ("--fail-if", "error > 1")
    code, told = run(folder / "one.pte", folder / "one.pte", "--input", bundle, *rule)
    assert code == 1 and "case 0 cannot be compared" in " ".join(told.split())


def test_models_are_exported(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made.py").write_text(
        "from torch import nn, ones\n\n\ndef build():\n"
        "    return nn.Linear(8, 4).eval(), (ones(3, 8),)\n\n\ndef other():\n"
        "    return nn.Linear(8, 4).eval(), (ones(3, 8),)\n"
    )
    monkeypatch.chdir(tmp_path)
    made = json_of(folder / "one.pte", "made.py:build", "--backend", "cpu")
    assert (made["before"], made["after"]) == ("one.pte", "made.py:build")
    assert made["methods"][0]["delegation"][1]["partitions"] == {"CpuBackend": 1}
    made = json_of("made.py:build", "made.py:other", "--run", "--repeat", 6)
    assert (made["before"], made["after"]) == ("made.py:build", "made.py:other")
    [output] = made["methods"][0]["run"]["outputs"]
    assert output["departs"] and output["max_error"] > 0.1


class _Reader(HTMLParser):
    """The texts of a page, and whether anything is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page(folder: Path, tmp_path: Path) -> None:
    html = tmp_path / "diff.html"
    code, _ = run(
        *(folder / "right.pte", folder / "dynamic.pte", "--run", "--repeat", 6, "--html", html),
        *("--fail-if", "contract changed"),
    )
    assert code == 1
    reader = _Reader()
    reader.feed(html.read_text("utf-8"))
    text = " ".join(reader.texts)
    for wanted in ("contract changed", "sizes", "forward: memory", "forward: outputs", "at 95 %"):
        assert wanted in text
    assert "script" not in reader.tags and {"table", "style"} <= reader.tags
    assert "planned memory 1" in text
