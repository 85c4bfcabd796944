"""The bytes of bundled programs: where the program lies, and what damage does."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

import rushlight as rl
from rushlight.bundled.bundle import Bundle, load_bundle
from rushlight.inspect import report_of
from rushlight.schema import bundled_program as fb
from rushlight.serialize.bundle import (
    is_bundle,
    program_in,
    read_bundle,
    write_bundle,
    write_bundle_to,
)

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
BUNDLES = sorted(GOLDEN.glob("*.bpte"))
PROGRAM = (GOLDEN / "linear.pte").read_bytes()


def suite(method: str, *names: str) -> fb.BundledMethodTestSuite:
    cases = [fb.BundledMethodTestCase([fb.Value()], [], fb.CaseNotes(name)) for name in names]
    return fb.BundledMethodTestSuite(method, cases)


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_golden_bundles_pass(path: Path) -> None:
    results = load_bundle(path).test()
    assert results and all(result.passed and result.compared for result in results)
    assert rl.load(path).methods == rl.load(bytes(program_in(path.read_bytes()))).methods


@pytest.mark.parametrize("size", [0, 1, 64, 4096, 100_001])
def test_the_program_lies_on_a_page(size: int, tmp_path: Path) -> None:
    """As the last bytes of the file, so that writing it takes no copy."""
    program, suites = bytes(range(256)) * (size // 256 + 1), [suite("b", "x"), suite("a", "y", "z")]
    data = write_bundle(program[:size], suites)
    with (tmp_path / "m.bpte").open("wb") as file:
        assert write_bundle_to(file, memoryview(program)[:size], suites) == len(data)
    assert (tmp_path / "m.bpte").read_bytes() == data
    assert (len(data) - size) % 4096 == 0 and data.endswith(program[:size])
    if size == 0:
        with pytest.raises(rl.LoadError, match="has no program in it"):
            read_bundle(data)
        return
    read = read_bundle(data)
    assert read.version == 2 and read.program == program[:size]
    names = {s.method_name: [c.notes.name for c in s.test_cases] for s in read.method_test_suites}
    assert names == {"a": ["y", "z"], "b": ["x"]}
    assert [*names] == ["a", "b"]


def test_a_bundle_of_more_than_its_format_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rushlight.serialize.bundle._MAX_BYTES", 4095 + len(PROGRAM))
    with pytest.raises(rl.ExportError, match=r"at most \d+: keep weights in a data file \(\.ptd\)"):
        write_bundle(PROGRAM, [])


def test_a_program_in_a_bundle_is_read_in_place() -> None:
    data = write_bundle(PROGRAM, [])
    assert is_bundle(data) and not is_bundle(PROGRAM) and not is_bundle(b"")
    assert program_in(PROGRAM) is PROGRAM and program_in(data) == PROGRAM
    assert isinstance(program_in(data), memoryview)
    assert report_of(data).methods[0].name == report_of(PROGRAM).methods[0].name
    assert report_of(data).bytes == len(PROGRAM)


def test_the_extras_are_far_from_executorchs_fields() -> None:
    """So that later fields of ExecuTorch do not meet them; see schema/bundled_program.fbs."""
    [notes] = [f for f in fb.BUNDLED_PROGRAM.tables[fb.BundledMethodTestCase] if f.name == "notes"]
    assert notes.slot == 16


def damaged(data: bytes, chance: random.Random) -> bytes:
    copy = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(copy))
        if chance.random() < 0.5:
            copy[at] ^= 1 << chance.randrange(8)
        else:
            at = min(at // 4 * 4, len(copy) - 4)
            struct.pack_into("<I", copy, at, chance.choice([0, 1, 255, 1 << 31, (1 << 32) - 1]))
    return bytes(copy[: chance.randrange(len(copy))] if chance.random() < 0.1 else copy)


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_damage_is_refused_by_name_or_harmless(path: Path) -> None:
    whole, chance = path.read_bytes(), random.Random(path.name)
    tables = len(whole) - len(program_in(whole))  # the rest is attacked elsewhere
    outcomes = set()
    for _ in range(300):
        data = damaged(whole[:tables], chance) + whole[tables:]
        try:
            bundle = load_bundle(data)
            _ = bundle.cases
            outcomes |= {result.passed for result in bundle.test()}
        except rl.Error as error:
            assert str(error)
            outcomes.add(type(error).__name__)
    assert {"LoadError", True, False} <= outcomes


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_a_cut_bundle_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        for use in (load_bundle, rl.load):
            with pytest.raises(rl.LoadError):
                use(whole[:size])


def test_a_case_of_a_method_that_is_not_there() -> None:
    [result] = Bundle(PROGRAM, [suite("forward", "x")]).test()
    assert not result.passed and "the case has 1 inputs" not in result.message
    with pytest.raises(rl.LoadError, match="no method 'gone'; the program has forward"):
        Bundle(PROGRAM, [suite("gone", "x")]).test()
