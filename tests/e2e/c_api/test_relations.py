"""What inputs have to do with each other: the C interface refuses what ``rl.load`` refuses."""

from __future__ import annotations

import ctypes
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from c_library import CError, CModule, Library, text_of
from torch.export import Dim

import rushlight as rl
from rushlight.errors import Code
from rushlight.runtime.contract import KEY
from rushlight.serialize.pte import read_pte, write_pte
from rushlight.serialize.segments import as_bytes


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


class Halves(torch.nn.Module):
    """A size that is computed from another one's, and one that is a multiple of 4."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[::2] + y + x.reshape(-1, 4).sum()


class Longer(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[: y.shape[0]] + y


def relations(module: CModule) -> list[str]:
    count = ctypes.c_uint32()
    module.call("relation_count", b"forward", ctypes.byref(count))
    texts = []
    for i in range(count.value):
        text = module.library.types["rl_text_v1"]()
        module.call("relation", b"forward", i, ctypes.byref(text))
        texts.append(text_of(text))
    with pytest.raises(CError, match="there is no relation"):
        module.call("relation", b"forward", count, ctypes.byref(text_like(module)))
    return texts


def text_like(module: CModule) -> Any:
    return module.library.types["rl_text_v1"]()


def told(run: Any, *inputs: Any) -> str:
    """Why a call is refused; "" if it is not."""
    try:
        run(*inputs)
    except rl.RunError as error:
        assert error.code == Code.NOT_SUPPORTED
        return str(error)
    except CError as error:
        assert error.code == Code.NOT_SUPPORTED.value
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["halves", "longer"])
def test_models(library: Library, kind: str, tmp_path: Path) -> None:
    if kind == "halves":
        half = Dim("half", min=2, max=6)
        shapes = {"x": {0: 4 * half}, "y": {0: 2 * half}}
        model, inputs = Halves(), (torch.ones(12), torch.ones(6))
    else:
        shapes = {"x": {0: Dim("n", min=2, max=9)}, "y": {0: Dim("m", min=2, max=9)}}
        model, inputs = Longer(), (torch.ones(8), torch.ones(5))
    path = tmp_path / "m.pte"
    rl.export(model.eval(), inputs, dynamic_shapes=shapes).save(path, quiet=True)
    ours, theirs = rl.load(path), library.open(path)
    texts = relations(theirs)
    assert [text.replace("input ", "").replace("'", "") for text in texts] == list(
        ours.signature("forward").relations
    )
    refused = 0
    for n in range(1, 26):
        for m in range(1, 14):
            x, y = np.ones(n, np.float32), np.ones(m, np.float32)
            wrong = told(theirs.run, x, y)
            assert bool(wrong) == bool(told(ours, x, y)), (n, m, wrong)
            refused += bool(wrong)
    assert 0 < refused < 25 * 13


def expression(chance: random.Random, depth: int) -> str:
    """A number, often of s0 and s1."""
    if depth == 0 or chance.random() < 0.15:
        return chance.choice(["s0", "s1", "s0", "s1", "2", "3", "7", "0", "1.5"])
    a, b, c = (expression(chance, depth - 1) for _ in range(3))
    kind = chance.randrange(9)
    if kind == 0:
        return f"({condition(chance, depth - 1)} and {a})"
    if kind == 1:
        return f"({a} if {condition(chance, depth - 1)} else {b})"
    if kind == 2:
        return f"{chance.choice(['Max', 'min'])}({a}, {b}, {c})"
    if kind == 3:
        return f"{chance.choice(['Mod', 'FloorDiv', 'CeilDiv', 'PythonMod'])}({a}, {b})"
    if kind == 4:
        names = ["abs", "ToFloat", "CeilToInt", "RoundToInt", "math.sqrt", "math.floor"]
        return f"{chance.choice(names)}({a})"
    if kind == 5:
        return f"-{a}" if a[0] not in "-" else a
    if kind == 6:
        return f"({a} {chance.choice(['&', '|', '^'])} {b})"
    if kind == 7:
        return f"{a}**{chance.choice('012')}" if a[0] not in "-" else a
    return f"({a} {chance.choice(['+', '-', '*', '//', '%', '/'])} {b})"


def condition(chance: random.Random, depth: int) -> str:
    a, b, c = (expression(chance, depth) for _ in range(3))
    sign, other = (chance.choice(["<", "<=", ">", ">=", "==", "!="]) for _ in range(2))
    kind = chance.randrange(6)
    if kind == 0:
        return f"{a} {sign} {b} {other} {c}"
    if kind == 1 and depth > 0:
        return f"not {condition(chance, depth - 1)} or {a} {sign} {b}"
    if kind == 2:
        return f"{chance.choice(['Eq', 'Ne'])}({a}, {b})"
    return f"{a} {sign} {b}"


class Sums(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum() + y.sum()


@pytest.fixture(scope="module")
def two_sizes() -> tuple[bytes, list[str]]:
    """A program of two inputs without conditions, and the symbols of their sizes."""
    shapes = {name: {0: Dim(f"n_{name}", min=2, max=9)} for name in "xy"}
    program = rl.export(Sums(), (torch.ones(3), torch.ones(4)), dynamic_shapes=shapes)
    values = json.loads(bytes(as_bytes(read_pte(program.buffer).named_data[KEY])))
    entry = values["methods"]["forward"]
    assert entry["relations"] == []
    return program.buffer, [value["shape"][0]["sym"] for value in entry["inputs"]]


def with_condition(program: bytes, condition: str, path: Path) -> Path:
    file = read_pte(program)
    values = json.loads(bytes(as_bytes(file.named_data[KEY])))
    values["methods"]["forward"]["relations"] = [{"expr": condition, "text": condition}]
    named = {**file.named_data, KEY: json.dumps(values).encode()}
    path.write_bytes(write_pte(replace(file, named_data=named)))
    return path


@pytest.mark.parametrize(
    ("derived", "accepted"),
    [
        ("2*s7", {2, 4, 6, 8}),  # solved: no size gives s7
        ("s7 + 3", set(range(2, 10))),
        ("s7*9223372036854775807 - 9223372036854775807", set()),
        ("s7 // 0", set()),
        ("3", {3}),
        ("s7 + s8", set(range(2, 10))),
    ],
)
def test_derived_sizes(
    library: Library,
    two_sizes: tuple[bytes, list[str]],
    derived: str,
    accepted: set[int],
    tmp_path: Path,
) -> None:
    file = read_pte(two_sizes[0])
    values = json.loads(bytes(as_bytes(file.named_data[KEY])))
    size = values["methods"]["forward"]["inputs"][0]["shape"][0]
    del size["sym"]
    size["expr"] = derived
    named = {**file.named_data, KEY: json.dumps(values).encode()}
    path = tmp_path / "m.pte"
    path.write_bytes(write_pte(replace(file, named_data=named)))
    ours, theirs = rl.load(path), library.open(path)
    for n in range(2, 10):
        inputs = np.ones(n, np.float32), np.ones(3, np.float32)
        assert (told(theirs.run, *inputs) == "") == (n in accepted)
        assert (told(ours, *inputs) == "") == (n in accepted)


@pytest.mark.parametrize("seed", range(3))
def test_conditions(
    library: Library, two_sizes: tuple[bytes, list[str]], seed: int, tmp_path: Path
) -> None:
    program, symbols = two_sizes
    chance = random.Random(seed)
    verdicts = [0, 0]
    for _ in range(60):
        text = condition(chance, chance.randrange(4))
        text = text.replace("s0", symbols[0]).replace("s1", symbols[1])
        path = with_condition(program, text, tmp_path / "m.pte")
        ours, theirs = rl.load(path), library.open(path)
        for _ in range(6):
            inputs = [np.ones(chance.randrange(2, 10), np.float32) for _ in range(2)]
            refused = bool(told(theirs.run, *inputs))
            assert refused == bool(told(ours, *inputs)), (text, [len(x) for x in inputs])
            verdicts[refused] += 1
        theirs.call("close")
    assert min(verdicts) > 60


@pytest.mark.parametrize(
    "text",
    [
        *("", "s0 +", "s0 == ", "(s0", "sin(s0) == 1", "s0 if s1", "s0 ** ", "not", "max(s0) == 2"),
        *("__import__('os')", "s0.bit_length() == 1", "'a' == 'a'", "s0 <> 2", "[s0]", "s0 := 2"),
        *("99999999999999999999 == s0", "(" * 3000 + "s0", "-" * 3000 + "s0", "1" + "+1" * 1990),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_not_checked(
    library: Library, two_sizes: tuple[bytes, list[str]], text: str, tmp_path: Path
) -> None:
    module = library.open(with_condition(two_sizes[0], text, tmp_path / "m.pte"))
    assert told(module.run, np.ones(2, np.float32), np.ones(3, np.float32)) == ""
    assert relations(module) == []
