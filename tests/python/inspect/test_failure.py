"""Reports of failures that are cut, damaged, of another version, or made of random bytes."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pytest

import rushlight as rl
from rushlight import _core
from rushlight.errors import LoadError
from rushlight.inspect.explain import explain
from rushlight.inspect.failure import read_failure

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
COND = GOLDEN / "cond.pte"
SIZE = 3424


def sealed(content: bytes) -> bytes:
    """The report with the checksum of what it says."""
    return content[:12] + struct.pack("<I", zlib.crc32(content[16:])) + content[16:]


@pytest.fixture(scope="module")
def report() -> bytes:
    """Of a refused call; the rest of the fields are filled by the tests."""
    program = _core.Program.open(
        str(COND).encode(), None, None, None, 0, (0, 0, 0, []), 1, None, True, False, b"unused", []
    )
    told = program.method("forward").report_refusal(0x12, "input 'x': no")
    assert told is not None and told[0] == b"unused"
    return told[1]


def changed(report: bytes, *fields: tuple[int, str, int]) -> bytes:
    """The report with other values at some offsets of its fields."""
    made = bytearray(report)
    for offset, kind, value in fields:
        struct.pack_into(f"<{kind}", made, offset, value)
    return sealed(bytes(made))


# Offsets of fields in cpp/trace/failure_report.h.
SIGNAL, CODE, PHASE, KIND, CHAIN, INSTRUCTION = 56, 60, 64, 65, 68, 72
DELEGATE, N_VALUES, N_MEMORIES, NAME, VALUES = 76, 84, 88, 160, 1632


def test_a_whole_report(report: bytes) -> None:
    assert len(report) == SIZE
    read = read_failure(report)
    assert not read.problems and read.method == "forward" and read.message == "input 'x': no"
    assert read.phase == "input" and read.instruction is None and read.events == ()
    assert not explain(report, COND).doubts


def test_cut_reports(report: bytes) -> None:
    for size in (4, 15, 16, 100, 1000, SIZE - 1):
        made = explain(report[:size], COND)
        assert f"it has {size} of {SIZE} bytes" in made.doubts[0]
    assert read_failure(report[:1000]).method == "forward"
    for size in range(4):
        with pytest.raises(LoadError, match="no report of a failure"):
            read_failure(report[:size])


def test_damaged_reports(report: bytes) -> None:
    damaged = bytearray(report)
    damaged[700] ^= 1
    assert "checksum" in read_failure(bytes(damaged)).problems[0]
    later = report[:4] + struct.pack("<I", 2) + report[8:]
    assert "version 2" in read_failure(later).problems[0]
    unused = report[:8] + bytes(4) + report[12:]
    assert "before anything failed" in read_failure(unused).problems[0]
    # What follows the report is not looked at: a flash page, say.
    assert not read_failure(report + bytes(100)).problems


def test_what_does_not_fit_the_program(report: bytes) -> None:
    beyond = changed(report, (PHASE, "B", 3), (CHAIN, "I", 0), (INSTRUCTION, "I", 999))
    made = explain(beyond, COND)
    assert "instruction 999" in made.doubts[0] and not made.nodes
    other = changed(report, (PHASE, "B", 3), (CHAIN, "I", 0), (INSTRUCTION, "I", 0))
    other = sealed(other[:NAME] + b"aten::nothing.out\0" + other[NAME + 18 :])
    assert "aten::nothing.out in the report" in explain(other, COND).doubts[0]
    unknown = sealed(report[:96] + b"backward\0" + report[105:])
    assert "no method 'backward'; it has forward" in explain(unknown, COND).doubts[0]


def test_signals_and_codes_that_are_not_known(report: bytes) -> None:
    crash = changed(report, (PHASE, "B", 3), (SIGNAL, "I", 11))
    assert "the process crashed while forward ran: SIGSEGV" in str(explain(crash, COND))
    strange = changed(report, (SIGNAL, "I", 9999), (PHASE, "B", 77))
    assert "signal 9999" in explain(strange).what
    assert "code 0x1234" in explain(changed(report, (CODE, "I", 0x1234))).what


def test_more_arguments_than_there_is_room(report: bytes) -> None:
    many = changed(report, (N_VALUES, "I", 1000), (N_MEMORIES, "I", 1000))
    read = read_failure(many)
    assert len(read.values) == 16 and len(read.memories) == 8
    assert "and 984 more" in str(explain(many, COND))
    strange = changed(many, (VALUES + 4, "B", 1), (VALUES + 6, "b", 99), (VALUES + 7, "B", 200))
    assert read_failure(strange).values[0].text == "dtype 99[0, 0, 0, 0, 0, 0, 0, 0, …]"


@pytest.mark.parametrize("rounds", [150, pytest.param(20000, marks=pytest.mark.full)])
def test_fuzz(report: bytes, rounds: int) -> None:
    """Any bytes are explained or refused; nothing else is raised."""
    draw = random.Random(rounds)
    for _ in range(rounds):
        mutant = bytearray(report)
        for _ in range(draw.choice((1, 4, 30, 300))):
            at = draw.randrange(8, SIZE)
            mutant[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        if draw.random() < 0.5:
            mutant[8:12] = struct.pack("<I", SIZE)
            mutant = bytearray(sealed(bytes(mutant)))
        if draw.random() < 0.1:
            mutant = mutant[: draw.randrange(4, SIZE)]
        made = explain(bytes(mutant), COND if draw.random() < 0.2 else None)
        assert str(made) and made.to_json()


def test_another_kind_of_file() -> None:
    for content in (b"", b"RLF", COND.read_bytes()):
        with pytest.raises(rl.LoadError, match="no report of a failure"):
            read_failure(content)
