"""What two files hold, beside each other: contract, operators, delegation, sizes, memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

import rushlight as rl
from rushlight.errors import LoadError, RunError
from rushlight.inspect import report_of
from rushlight.inspect.diff.compare import compare_files
from rushlight.inspect.diff.model import MethodDiff, Placement, ProgramDiff

GOLDEN = Path(__file__).resolve().parents[3] / "golden"


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(self.second(torch.relu(self.first(x))), -1)


class Counter(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total + 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff")
    torch.manual_seed(0)
    model, x = Network().eval(), torch.randn(4, 8)
    save = {"quiet": True}
    rl.export(model, (x,)).save(folder / "portable.pte", **save)
    rl.export(model, (x,), backend="cpu").save(folder / "cpu.pte", **save)
    rl.export(model, (x,), backend="cpu", debug="none").save(folder / "bare.pte", **save)
    rl.export(model, (x,), backend=["cpu", "portable"]).save(folder / "fat.pte", **save)
    for name in ("n", "batch"):
        shapes = ({0: Dim(name, min=2, max=9)},)
        program = rl.export(model, (x,), dynamic_shapes=shapes)
        program.save(folder / f"dynamic_{name}.pte", **save)
    program = rl.export({"run": torch.export.export(model, (x,))})
    program.save(folder / "renamed.pte", **save)
    rl.export(model.half(), (x.half(),)).save(folder / "half.pte", **save)
    for size in (3, 5):
        rl.export(Counter(size), (torch.ones(size),)).save(folder / f"state{size}.pte", **save)
    return folder


def diff(folder: Path, before: str, after: str, **options: Any) -> ProgramDiff:
    return compare_files(folder / f"{before}.pte", folder / f"{after}.pte", **options)


def only(program: ProgramDiff) -> MethodDiff:
    [method] = program.methods
    return method


def contract(program: ProgramDiff) -> list[tuple[str, str, str]]:
    return [(text.name, text.before, text.after) for text in only(program).contract]


@pytest.mark.parametrize("name", ["portable", "cpu", "fat", "dynamic_n", "state3"])
def test_a_file_is_equal_to_itself(name: str, folder: Path) -> None:
    made = diff(folder, name, name)
    assert not made.contract_changed and made.removed == made.added == {}
    method = only(made)
    assert all(amount.before == amount.after for amount in [*made.sizes, *method.memory])
    assert all(count.before == count.after for count in method.operators)
    assert {placement.kind for placement in method.placements} <= {"same"}
    assert method.delegation[0] == method.delegation[1] and not method.weak


def test_operators_move_to_a_backend(folder: Path) -> None:
    method = only(diff(folder, "portable", "cpu"))
    kinds = {placement.op: placement.kind for placement in method.placements}
    assert kinds["aten.linear"] == kinds["aten.relu"] == "moved"
    moved = next(p for p in method.placements if p.op == "aten.linear")
    assert (moved.before, moved.after) == ({"portable": 2}, {"CpuBackend": 2})
    one, other = method.delegation
    assert one.partitions == {} and one.share == 0.0
    assert sum(other.partitions.values()) >= 1 and other.share is not None and other.share > 0.5
    stayed = {c.op for c in report_of(folder / "cpu.pte").methods[0].coverage if not c.backend}
    assert {why.partition(":")[0] for why in other.stayed} == stayed
    counts = {(c.name, c.dtype, c.place): (c.before, c.after) for c in method.operators}
    assert counts["aten::linear.out", "float32", "portable"] == (2, 0)
    assert counts["CpuBackend", "", "delegates"][1] == sum(other.partitions.values())
    assert any(c.is_node and c.place == "CpuBackend" for c in method.operators)


def test_placements_have_kinds() -> None:
    def kind(before: dict[str, int], after: dict[str, int]) -> str:
        return Placement("aten.add", before, after).kind

    assert kind({"a": 1}, {"a": 1}) == "same"
    assert kind({"a": 2}, {"a": 1, "b": 1}) == "moved"
    assert kind({"a": 2}, {"a": 3}) == "changed"
    assert kind({}, {"a": 1}) == "added" and kind({"a": 1}, {}) == "removed"


def test_what_a_file_does_not_tell(folder: Path) -> None:
    method = only(diff(folder, "portable", "bare"))
    assert method.placements == [] and method.delegation[1].share is None
    assert contract(diff(folder, "cpu", "bare")) == []


def test_sizes_and_memory_are_those_of_the_reports(folder: Path) -> None:
    made = diff(folder, "portable", "cpu")
    sizes = {amount.name: (amount.before, amount.after) for amount in made.sizes}
    paths = [folder / "portable.pte", folder / "cpu.pte"]
    assert sizes["file"] == tuple(os.path.getsize(path) for path in paths)
    weights = 4 * (8 * 16 + 16 + 16 * 4 + 4)
    assert sizes["constants of float32"] == (weights, None)
    memory = {amount.name: (amount.before, amount.after) for amount in only(made).memory}
    reports = [report_of(path).memory()["forward"] for path in paths]
    assert memory["planned memory 1"] == tuple(report["arenas"] for report in reports)
    assert memory["needed by a run"] == tuple(
        report["arenas"] + report["scratch"] + report["io"] for report in reports
    )


def test_contracts(folder: Path) -> None:
    assert contract(diff(folder, "portable", "dynamic_n")) == [
        ("input 0", "x: float32[4, 8]", "x: float32[s77=2..9, 8]"),
        ("output 0", "float32[4, 4]", "float32[s77=2..9, 4]"),
    ]
    assert (
        contract(diff(folder, "dynamic_n", "dynamic_batch")) == []
    )  # a symbol's name is no matter
    halves = diff(folder, "portable", "half")
    assert ("input 0", "x: float32[4, 8]", "x: float16[4, 8]") in contract(halves)
    states = diff(folder, "state3", "state5")
    assert ("state total", "float32[3]", "float32[5]") in contract(states)
    assert contract(diff(folder, "portable", "cpu")) == contract(diff(folder, "cpu", "fat")) == []


def test_a_method_that_was_renamed(folder: Path) -> None:
    made = diff(folder, "portable", "renamed")
    method = only(made)
    assert (method.name, method.after_name) == ("forward", "run") and made.contract_changed
    assert method.contract == [] and made.removed == made.added == {}
    other = diff(folder, "dynamic_n", "renamed")
    assert other.methods == [] and list(other.removed) == ["forward"] and "run" in other.added


def test_forms_of_a_fat_program(folder: Path) -> None:
    assert only(diff(folder, "fat", "cpu")).delegation[0].partitions == {"CpuBackend": 1}
    portable = only(diff(folder, "fat", "portable", form="portable"))
    assert portable.delegation[0].partitions == {} and not portable.contract
    with pytest.raises(RunError, match=r"fat.pte' has no form 'xnnpack'; it has cpu, portable"):
        diff(folder, "fat", "portable", form="xnnpack")


def test_files_of_executorch() -> None:
    made = compare_files(GOLDEN / "linear.pte", GOLDEN / "methods.pte")
    assert made.methods[0].weak == "linear.pte and methods.pte"
    assert made.added and made.contract_changed


def test_a_damaged_file_is_named(folder: Path, tmp_path: Path) -> None:
    content = (folder / "cpu.pte").read_bytes()
    (tmp_path / "cut.pte").write_bytes(content[: len(content) // 2])
    with pytest.raises(LoadError, match=r"cut\.pte: it ends at byte"):
        compare_files(folder / "cpu.pte", tmp_path / "cut.pte")
    (tmp_path / "text.pte").write_text("no program at all")
    with pytest.raises(LoadError, match=r"text\.pte"):
        compare_files(tmp_path / "text.pte", folder / "cpu.pte")
