"""What `rushlight.bundle` refuses, by name, and what it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import rushlight as rl
from rushlight import TestCase
from rushlight.schema import bundled_program as fb


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> dict[str, torch.Tensor]:
        return {"y": self.linear(x) * scale, "pair": torch.cat([x, x])}


X = torch.ones(3, 4)
GOOD = {"y": torch.zeros(3, 2), "pair": torch.zeros(6, 4)}


@pytest.fixture(scope="module")
def program() -> rl.Program:
    torch.manual_seed(0)
    shapes = {"x": {0: Dim("batch", min=1, max=8)}}
    return rl.export(Net().eval(), (X,), dynamic_shapes=shapes, verify=False)


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ({"fwd": [(X,)]}, "cases for a method 'fwd', which the program does not have; it has forw"),
        (X, "the cases of 'forward' are an object of type Tensor: give a list of them"),
        ([], "there is no test case"),
        ([(X,), X], "forward: case 1: its inputs are an object of type Tensor: give a tuple"),
        ([(X, 1.0, 2)], r"forward: case 0: got 3 positional arguments; it takes x"),
        ([()], "forward: case 0: 'x' missing"),
        ([TestCase((X,), kwargs={"scal": 1.0})], "unexpected keyword argument 'scal'"),
        ([(3,)], r"case 0: input 'x': got an int \(3\), expected a tensor \(float32\[1..8, 4\]\)"),
        (
            [(X,), TestCase((X.double(),), name="wide")],
            r"forward: case 1 \('wide'\): input 'x': dtype is float64, the program takes float32",
        ),
        ([(torch.zeros(3, 5),)], "case 0: input 'x': size 1 is 5, allowed 4"),
        ([(torch.zeros(9, 4),)], "case 0: input 'x': size 0 is 9, allowed 1..8"),
        (
            [TestCase((X,), expected=X)],
            "case 0: the expected outputs: expected a dict with 'y', 'pair', got a Tensor: give "
            "what the method returns, or a flat list of its 2 outputs",
        ),
        (
            [TestCase((X,), expected={**GOOD, "pair": torch.zeros(5, 4)})],
            r"case 0: output 'pair': float32\[5, 4\] is expected, the program gives "
            r"float32\[6, 4\] for these inputs",
        ),
        (
            [TestCase((X,), expected={**GOOD, "y": torch.zeros(3, 2).double()})],
            r"output 'y': float64\[3, 2\] is expected, the program gives float32\[3, 2\]",
        ),
        (
            [TestCase((X,), expected=[3, GOOD["pair"]])],
            "output 'y': an object of type int is expected, the program gives float32",
        ),
        ([TestCase((X,), rtol=-1)], "case 0: rtol is -1: give a number that is not negative"),
        ([TestCase((X,), atol=[1, 2, 3])], "case 0: atol has 3 numbers for 2 outputs"),
        ([TestCase((X,), atol=float("inf"))], "case 0: atol is inf: give a finite number"),
    ],
)
def test_cases_that_do_not_fit(program: rl.Program, cases: Any, message: str) -> None:
    with pytest.raises(rl.ExportError, match=message):
        rl.bundle(program, cases)


def test_eager_refuses_inputs(monkeypatch: pytest.MonkeyPatch, program: rl.Program) -> None:
    def fails(*args: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("rushlight.check.eager.flat_results", fails)
    with pytest.raises(rl.ExportError, match="forward: case 0: eager fails on these inputs: no"):
        rl.bundle(program, [(X,)])


def notes(bundle: Any) -> fb.CaseNotes:
    [case] = bundle.cases_in_file("forward")
    return case.notes


def test_the_default_tolerance_is_that_of_export(program: rl.Program) -> None:
    """Each output's is relative to its own largest magnitude, NaN and infinities aside."""
    large = {**GOOD, "pair": torch.full((6, 4), -1e3)}
    large["pair"][0, 0], large["pair"][0, 1] = float("nan"), float("inf")
    made = notes(rl.bundle(program, [TestCase((X,), expected=large)]))
    assert (made.rtol, made.origin) == ([0, 0], "given")
    np.testing.assert_allclose(made.atol, [1e-5, 1e-5 + 1e-4 * 1e3])
    made = notes(rl.bundle(program, [TestCase((X,), atol=[0.5, 2])]))
    assert (made.rtol, made.atol, made.origin) == ([0, 0], [0.5, 2], "eager")
    made = notes(rl.bundle(program, [TestCase((X,), rtol=0.25)]))
    assert (made.rtol, made.atol) == ([0.25, 0.25], [0, 0])


def test_a_program_from_a_file_computes_its_own_outputs(
    program: rl.Program, tmp_path: Path
) -> None:
    program.save(tmp_path / "m.pte", quiet=True)
    for source in (tmp_path / "m.pte", program.buffer, program.manager):
        bundle = rl.bundle(source, [(X,)])
        assert notes(bundle).origin == "program"
        assert "1 by the program itself" in repr(bundle)
        assert bundle.program == program.buffer
    with (tmp_path / "m.pte").open("rb") as file:
        assert rl.bundle(file, [(X,)]).test()[0].passed


def test_a_bundled_program_may_be_bundled_again(program: rl.Program, tmp_path: Path) -> None:
    """From its path, with other cases, or with its own cases for another program."""
    first = rl.bundle(program, [TestCase((X,), name="one")])
    first.save(tmp_path / "m.bpte")
    second = rl.bundle(tmp_path / "m.bpte", [(X * 2,), (X * 3,)])
    assert second.program == program.buffer
    assert len(second.cases_in_file("forward")) == 2
    third = rl.bundle(program, rl.load_bundle(tmp_path / "m.bpte").cases)
    assert third.to_bytes() == first.to_bytes()


def test_saving(program: rl.Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = rl.bundle(program, [(X,), TestCase((X,), expected=GOOD)])
    bundle.save(tmp_path / "m.bpte")
    wanted = "forward: 2 test cases, expected outputs: 1 by eager, 1 as given"
    assert capsys.readouterr().out == f"{tmp_path / 'm.bpte'}\n  {wanted}\n"
    with pytest.raises(rl.ExportError, match=r"name must end in \.bpte"):
        bundle.save(tmp_path / "m.pte")
    with pytest.raises(rl.ExportError, match=r"cannot write .*check the path"):
        bundle.save(tmp_path / "none" / "m.bpte")


class Optional(nn.Module):
    def forward(
        self, x: torch.Tensor, y: torch.Tensor | None, mode: str
    ) -> tuple[torch.Tensor, None, int]:
        return x if y is None and mode == "up" else -x, None, x.shape[0]


def test_none_and_texts_are_in_the_program() -> None:
    shapes = {"x": {0: Dim("n", min=2, max=9)}, "y": None, "mode": None}
    program = rl.export(Optional(), (torch.ones(3), None, "up"), dynamic_shapes=shapes)
    bundle = rl.bundle(program, [(torch.ones(5), None, "up")])
    [case] = bundle.cases["forward"]
    assert case.inputs[1:] == (None, "up") and case.expected[1:] == (None, 5)
    assert bundle.test()[0].passed
    wrong = rl.bundle(program, [TestCase((torch.ones(5), None, "up"), (torch.ones(5), None, 6))])
    [result] = wrong.test()
    assert (result.passed, result.output, result.got, result.expected) == (False, 2, 5, 6)
    with pytest.raises(rl.ExportError, match="input 'mode': is 'down', but the program was"):
        rl.bundle(program, [(torch.ones(5), None, "down")])


def test_arrays_of_other_layouts_are_stored_in_the_programs() -> None:
    class Images(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1).to(memory_format=torch.channels_last)

    x = torch.randn(1, 3, 4, 5)
    bundle = rl.bundle(rl.export(Images(), (x,)), [(x.to(memory_format=torch.channels_last),)])
    [case] = bundle.cases_in_file("forward")
    orders = [value.val.dim_order for value in (*case.inputs, *case.expected_outputs)]
    assert orders == [[0, 1, 2, 3], [0, 2, 3, 1]]
    np.testing.assert_array_equal(bundle.cases["forward"][0].inputs[0], x)
    assert bundle.test()[0].passed
