"""`rushlight doctor`: every blocker in one run, with its line; healthy models are told so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.doctor import examine

MODEL = """
import dataclasses
import numpy as np
import torch

class Part(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # branch
            return x
        return -x

class Outside(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.sin(x.numpy()))  # numpy

class Many(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.part(x)
        if x.max() > 1:  # second branch
            x = x * 2
        x.add_(1)  # write
        y = torch.linalg.eigvals(x.double() @ x.double().T).real  # eigenvalues
        return y, torch.nonzero_static(x, size=3)  # static

class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.outside, self.many = Outside(), Many()

    def forward(self, x):
        return self.many(self.outside(x))

def many():
    return Many(), (torch.full((4, 4), 0.5),)

def both():
    return Both(), (torch.full((4, 4), 0.5),)

def healthy():
    return torch.nn.Linear(4, 2), (torch.ones(3, 4),)

class Remembers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hist, self.mode = [], "first"

    def forward(self, x):
        print("from the model")
        self.hist.append(1)
        self.mode = "next"
        return x + len(self.hist)

def remembers():
    return Remembers(), (torch.ones(3),)

@dataclasses.dataclass
class Pair:
    a: torch.Tensor

class Plain:
    def __init__(self, a):
        self.a = a

class Takes(torch.nn.Module):
    def forward(self, pair):
        return pair.a + 1

def takes():
    return Takes(), (Pair(torch.ones(3)),)

def takes_plain():
    return Takes(), (Plain(torch.ones(3)),)

print("from the file")
"""
IN_MANY = {
    ("data-dependent-branch", "branch"),
    ("data-dependent-branch", "second branch"),
    ("unsupported-operator", "eigenvalues"),
    ("unsupported-dtype", "eigenvalues"),
    ("unsupported-operator", "static"),
    ("python-state", ""),
}


def doctor(tmp_path: Path, name: str, *options: str) -> tuple[int, str]:
    path = tmp_path / "doctor_model.py"
    path.write_text(MODEL, "utf-8")
    done = CliRunner().invoke(app, ["doctor", f"{path}:{name}", *options])
    return done.exit_code, done.stdout


def found(text: str) -> set[tuple[str, str]]:
    """(kind, the comment on its line) of every finding."""
    lines = MODEL.splitlines()
    findings: list[dict[str, Any]] = json.loads(text)["forward"]["findings"]
    pairs = set()
    for finding in findings:
        assert finding["problem"] and finding["advice"]
        source = finding["source"]
        if source is None:
            pairs.add((finding["kind"], ""))
            continue
        assert source["file"].endswith("doctor_model.py")
        pairs.add((finding["kind"], lines[source["line"] - 1].rpartition("# ")[2]))
    return pairs


@pytest.mark.parametrize(
    ("name", "more"),
    [("many", {("mutated-input", "write")}), ("both", {("leaves-pytorch", "numpy")})],
)
def test_all_blockers_at_once(name: str, more: set[tuple[str, str]], tmp_path: Path) -> None:
    code, text = doctor(tmp_path, name, "--json")
    assert code == 1
    assert IN_MANY | more <= found(text)
    assert not json.loads(text)["forward"]["exports"]


def test_a_healthy_model(tmp_path: Path) -> None:
    code, text = doctor(tmp_path, "healthy", "--dynamic", "input:0=1..8")
    assert code == 0
    assert "nothing is in the way" in text
    assert "proven: forward(input: float32[1..8, 4]) -> float32[1..8, 2]" in text
    code, text = doctor(tmp_path, "healthy", "--json")
    assert (code, json.loads(text)["forward"]["exports"]) == (0, True)


def test_state_in_python_is_no_clean_bill(tmp_path: Path) -> None:
    code, text = doctor(tmp_path, "remembers")
    assert code == 1
    assert "it exports, but 2 things are not as in Python" in text
    assert "nothing is in the way" not in text
    assert "from the model" not in text and "from the file" not in text
    assert "proven: forward(x: float32[3]) -> float32[3]" in text
    code, text = doctor(tmp_path, "remembers", "--json")
    document = json.loads(text)["forward"]
    assert code == 1 and document["exports"]
    told = {f["problem"].partition(",")[0]: f["advice"] for f in document["findings"]}
    assert 'self.register_buffer("hist"' in told["forward changes the list hist"]
    assert "buffer" not in told["forward changes the attribute mode from 'first' to 'next'"]


@pytest.mark.parametrize(
    ("name", "cls", "advice"),
    [
        ("takes", "Pair", "torch.export.register_dataclass(Pair)"),
        ("takes_plain", "Plain", "torch.utils._pytree.register_pytree_node(Plain, ...)"),
    ],
)
def test_what_is_passed_is_called_by_its_class(
    name: str, cls: str, advice: str, tmp_path: Path
) -> None:
    _, text = doctor(tmp_path, name, "--json")
    [finding] = json.loads(text)["forward"]["findings"]
    assert finding["problem"].startswith(f"the model takes {cls}, which")
    assert advice in finding["advice"]


class Fixed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(8, 2, 2)


def test_a_fixed_automatic_size_is_a_warning() -> None:
    diagnosis = examine(Fixed(), (torch.ones(8, 4),), dynamic_shapes=({0: Dim.AUTO(max=64)},))
    [finding] = diagnosis.findings
    assert not diagnosis.blockers and finding.kind == "specialised-size"
    assert "size 0 of x should vary, but the program takes only 8" in finding.problem
    assert finding.source.text == "return x.view(8, 2, 2)"
    with pytest.warns(UserWarning, match="size 0 of x should vary, but the program takes only 8"):
        rl.export(Fixed(), (torch.ones(8, 4),), dynamic_shapes=({0: Dim.AUTO(max=64)},))


class Squeezed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.squeeze(0)


def test_a_size_that_the_contract_should_not_promise_is_refused_at_export() -> None:
    args = (torch.ones(8, 4),)
    with pytest.raises(rl.ExportError, match=r"such as \[1, 4\].*min and max of their Dim"):
        rl.export(Squeezed(), args, dynamic_shapes=({0: Dim("batch", max=16)},))
    program = rl.export(Squeezed(), args, dynamic_shapes=({0: Dim("batch", min=2, max=16)},))
    with pytest.raises(rl.RunError, match=r'Dim\("name", min=1, max=16\)'):
        rl.load(program.buffer)(torch.ones(1, 4))


def test_an_earlier_capture_puts_no_condition_on_sizes() -> None:
    length, batch = Dim("length", min=1, max=20), Dim("batch", min=1, max=8)
    model = torch.nn.GRU(4, 6).eval()
    for size, sizes in ((2, {0: length}), (3, {0: length, 1: batch})):
        findings = examine(model, (torch.randn(5, size, 4),), dynamic_shapes=(sizes,))
        assert findings.blockers == []
