"""The map to Python lines as bytes: nothing is lost, nothing is large, nothing is trusted."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import subprocess
import tracemalloc
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rushlight.schema.debug import (
    LEFT_OUT,
    DebugCall,
    DebugLine,
    DebugMap,
    DebugMethod,
    DebugNode,
)
from rushlight.serialize import debug_lines, sequences
from rushlight.serialize.debug import MAGIC, read_debug, write_debug
from rushlight.serialize.debug_limit import with_debug
from rushlight.serialize.file import PTEFile
from rushlight.serialize.sequences import Sequences, write_sequence
from rushlight.serialize.varints import Reader, Writer

ROOT = Path(__file__).resolve().parents[3]


def line(number: int, text: str = "y = x", file: str = "model.py") -> DebugLine:
    return DebugLine(file, number, "forward", text)


def node(name: str, number: int, module: str = "layer", **of_line: str) -> DebugNode:
    operator = f"aten.{name.rpartition('_')[0]}.default"
    return DebugNode(name, operator, line(number, **of_line), module, number)


def rich_map() -> DebugMap:
    """A map with every kind of content."""
    nodes = [node(f"mul_{i}", 10 + i % 7, f"layers.{i % 5}") for i in range(40)]
    odd = [
        DebugNode(),
        DebugNode("mul", "aten.mul.Tensor", DebugLine(), "only.a.module"),
        node("größe_01", 3, "été", text="größe = 'ß'  # 漢字", file="модель.py"),
        node("x_007", 2**40, "", file="<string>"),
        node("lone\ud800", 5, text="'\ud800'"),
        node("", 8, text="x" * 1000),
    ]
    forward = DebugMethod(
        [*nodes, *odd, *nodes[::-1]],
        {0: "weight", 7: "größe.bias", 3: "layers.0.weight"},
        [
            {},
            {str(i): tuple(nodes[i : i + 1 + i % 3]) for i in range(20)},
            {
                "5": (nodes[0],),
                "6": (),
                "4": (nodes[1], nodes[0]),
                "007": (nodes[2],),
                "-1": (nodes[2],),
                "node/é": tuple(nodes),
                "": (odd[0],),
                "9999999999999999999": (nodes[9],),
            },
        ],
        [
            DebugCall(nodes[3], "CpuBackend", 0, 1.25, (("CpuBackend", "slow"),)),
            DebugCall(nodes[4], "", -1, 0.0, (("A", "why"), ("B", "not"))),
            DebugCall(odd[2], "", -1, 1e9),
        ],
    )
    other = DebugMethod([nodes[0]], {}, [{"0": (nodes[5],)}])
    return DebugMap({"forward": forward, "méthode": other, "empty": DebugMethod()})


def smaller_and_smaller(debug: DebugMap) -> Iterator[bytes]:
    """The forms of a map, each with a limit that the one before is above."""
    data = write_debug(debug)
    while True:
        yield data
        limit = len(data) - 1
        data = write_debug(debug, limit)
        if len(data) > limit:
            return


def without_surrogates(debug: DebugMap) -> DebugMap:
    """A lone surrogate cannot be stored in a string that is read in place."""
    nodes = debug.methods["forward"].instructions
    nodes[44] = nodes[44]._replace(line=line(5, text="'?'"))
    return debug


def long_map(iterations: int, lines: int = 12) -> DebugMap:
    """An unrolled loop: every instruction of the backend is made of two nodes."""
    calls = [node(f"{op}_{i}", 100 + i % lines) for i in range(iterations) for op in ("mm", "add")]
    places = {str(i): pair for i, pair in enumerate(pairwise(calls))}
    covered = [DebugCall(call, "CpuBackend", 0, 0.125) for call in calls]
    return DebugMap({"forward": DebugMethod([node("call", 1)], {}, [places], covered)})


def test_a_whole_map_comes_back_whole() -> None:
    assert read_debug(write_debug(rich_map())) == without_surrogates(rich_map())
    for empty in (DebugMap(), DebugMap({"forward": DebugMethod()})):
        assert read_debug(write_debug(empty)) == empty


@pytest.mark.parametrize("lines", [1, 12, 10**9], ids=["one", "a loop", "all different"])
def test_the_size_is_linear_and_small(lines: int) -> None:
    sizes = [
        len(write_debug(long_map(iterations, lines))) for iterations in (1000, 2000, 4000, 8000)
    ]
    assert all(after < 2.2 * before for before, after in pairwise(sizes))
    assert sizes[-1] < (2_000 if lines < 100 else 8 * 16_000)


def test_a_row_of_lines_is_a_run() -> None:
    """5,000 lines of one instruction each fit without their text."""
    debug = DebugMap({"forward": DebugMethod([node(f"add_{i}", i, "") for i in range(1, 5001)])})
    decoded = read_debug(write_debug(debug, 16 * 1024))
    assert decoded.left_out == ["source text"][: decoded.level]
    assert [n.line.number for n in decoded.methods["forward"].instructions] == list(range(1, 5001))


class Counted(list[int]):
    """Counts how often an element is looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


def test_what_repeats_too_often_to_be_copied_takes_linear_time() -> None:
    """Each copy is one of the copy before, which a reader follows 16 times at most."""
    block = [i * i for i in range(3, 3000)]
    numbers = Counted(n for i in range(40) for n in [*block, 10**7 + i])
    data = write_sequence(numbers)
    assert numbers.looks < 12 * len(numbers)
    assert Sequences().read(Reader(memoryview(data))) == numbers


def test_what_is_left_out_comes_in_order() -> None:
    decoded = [read_debug(data) for data in smaller_and_smaller(rich_map())]
    assert list(dict.fromkeys(one.level for one in decoded)) == list(range(7))
    assert all(one.left_out == list(LEFT_OUT[: one.level]) for one in decoded)
    methods = {one.level: one.method("forward") for one in decoded}
    has = {
        level: [
            any(n.line.text for n in method.instructions),
            any(n.module for n in method.instructions),
            bool(method.coverage),
            any(n.name for n in method.instructions) and bool(method.values),
            any(places for places in method.delegates),
            any(n.line.file for n in method.instructions),
        ]
        for level, method in methods.items()
    }
    assert has == {level: [i >= level for i in range(6)] for level in range(7)}
    kept = methods[5].instructions
    assert [n.line._replace(text="") for n in rich_map().methods["forward"].instructions][:44] == [
        n.line for n in kept
    ][:44]


def test_a_very_long_line_is_cut_only_where_there_is_a_limit() -> None:
    debug = DebugMap({"forward": DebugMethod([node("a", 1, text="é" * 100_000)])})
    [whole] = read_debug(write_debug(debug)).methods["forward"].instructions
    [cut] = read_debug(write_debug(debug, 16 * 1024)).methods["forward"].instructions
    assert whole.line.text == "é" * 100_000 and cut.line.text == "é" * 159 + "…"


def test_the_limit_is_two_percent_of_the_file_or_16_kib() -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=50)) for _ in range(6000)]
    nodes = [node("a", i, word, text=word) for i, word in enumerate(words)]
    debug = DebugMap({"forward": DebugMethod(nodes)})

    def size(level: str, **fields: Any) -> int:
        file = PTEFile(program=None, **fields)  # type: ignore[arg-type]
        return len(with_debug(file, debug, level).named_data.get("rushlight/debug", b""))

    full = size("full")
    assert full > 100_000 and size("none") == 0
    assert 0 < size("lines") <= 16 * 1024
    for fields in ({"constants": [bytes(10**7)]}, {"delegate_blobs": [bytes(10**7)]}):
        assert 16 * 1024 < size("lines", **fields) <= 200_000
    assert size("lines", constants=[bytes(10**8)]) == full


def test_a_map_never_has_more_than_a_reader_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a program beyond the reader's limits, the file leaves out a part of the map, not all."""
    debug = long_map(300)
    whole = read_debug(write_debug(debug))
    assert whole == debug
    places = sum(len(nodes) + 2 for nodes in debug.methods["forward"].delegates[0].values())
    for most, left in ((places + 1, 0), (places // 2, 5), (0, 6)):
        for module in (sequences, debug_lines):
            monkeypatch.setattr(module, "MAX_NUMBERS", most)
        decoded = read_debug(write_debug(debug))
        assert decoded.left_out == list(LEFT_OUT[:left])
        assert left == 6 or decoded.methods["forward"].instructions[0].line.number == 1
    for module in (sequences, debug_lines):
        monkeypatch.setattr(module, "MAX_NUMBERS", 1 << 20)
    monkeypatch.setattr(debug_lines, "MAX_TEXT", 100)
    assert read_debug(write_debug(rich_map())).left_out == ["source text"]


# --- damage ---------------------------------------------------------------------------------------


def test_damaged_maps_are_read_in_parts_or_not_at_all() -> None:
    whole = write_debug(rich_map())
    for size in range(len(whole)):
        assert isinstance(read_debug(whole[:size]), DebugMap)
    chance = random.Random(0)
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
            )
        read_debug(bytes(damaged))


def _details_of(whole: bytes) -> bytes:
    """The end that is compressed: lines before it, or bytes in it, may look like its beginning."""
    for at in range(len(whole)):
        if whole.startswith(b"x\xda", at):
            with contextlib.suppress(zlib.error):
                zlib.decompress(whole[at:])
                return whole[at:]
    raise AssertionError("the map has no details")


def _details(document: Any) -> bytes:
    """A map whose lines are sound and whose details are these."""
    whole = write_debug(rich_map())
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return whole.removesuffix(_details_of(whole)) + zlib.compress(text)


def test_damaged_details_leave_the_lines() -> None:
    whole = write_debug(rich_map())
    document = json.loads(zlib.decompress(_details_of(whole)))
    assert read_debug(_details(document)) == without_surrogates(rich_map())
    nodes = read_debug(whole).methods["forward"].instructions
    chance = random.Random(0)
    values: list[Any] = [None, -1, 10**9, 1e300, "x", [], {}, [[]], True, 10**4000]

    def spots(value: Any) -> list[tuple[Any, Any]]:
        if isinstance(value, str | int | float | None):
            return []
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        return [(value, k) for k in keys] + [s for k in keys for s in spots(value[k])]

    for _ in range(400):
        damaged = json.loads(json.dumps(document))
        where, key = chance.choice(spots(damaged))
        if chance.random() < 0.2:
            del where[key]
        else:
            where[key] = chance.choice(values)
        [first, *_] = read_debug(_details(damaged)).methods["forward"].instructions
        assert first.line in {DebugLine(), *(n.line for n in nodes)}


def test_what_claims_more_than_a_program_has_is_refused() -> None:
    def of(*sections: bytes) -> bytes:
        out = Writer()
        for section in sections:
            out.sized(section)
        return MAGIC + bytes([2, 0]) + bytes(out.data)

    def written(*numbers: int) -> bytes:
        out = Writer()
        for number in numbers:
            out.number(number)
        return bytes(out.data)

    name = written(0, 7) + b"forward"
    runs = written(2**61, 0)  # one entry of instructions
    body = written(len(runs)) + runs
    method = written(1, len(body)) + body
    assert read_debug(of(name, b"", b"", method)) == DebugMap()
    shares = written(0, 60_000) + b"x" * 60_000 + written(60_000, 0) * 60_000
    assert read_debug(of(shares, b"", b"", b"")) == DebugMap()
    runs = written(2**16 << 2, 0)
    body = written(len(runs)) + runs
    many = (written(1, len(body)) + body) * 64
    assert read_debug(of(name, b"", b"", many)) == DebugMap()
    bomb = _details(b"[" + b"0," * 2**25 + b"0]")
    assert read_debug(bomb).methods["forward"].values == {}
    assert read_debug(_details(b"[" * 100_000)).methods["forward"].values == {}


@pytest.mark.parametrize(("stem", "first"), [("x" * 9999, 0), ("x", 10**4000)], ids=["stem", "no"])
def test_names_that_few_bytes_claim_are_refused(stem: str, first: int) -> None:
    """A map of 40,000 nodes whose names share a long stem, or a long number."""
    document = json.loads(zlib.decompress(_details_of(write_debug(rich_map()))))
    columns, n = document["nodes"], 40_000
    more = n - len(columns["stem"])
    document["strings"].append(stem)
    columns["stem"] += [len(document["strings"]) - 1] * more
    columns["number"] += [first + 1, *([0] * (more - 1))]
    for column in ("operator", "module", "line", "handle"):
        columns[column] += [0] * more
    tracemalloc.start()
    decoded = read_debug(_details(document)).methods["forward"]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoded.values == {} and len(decoded.instructions) > 0
    assert most < 64 << 20


# --- other forms ----------------------------------------------------------------------------------


def test_maps_of_version_1() -> None:
    """JSON, a row for every mention of a node."""
    row = ["mul", "aten.mul.Tensor", 0, 3, "forward", "x * y", "layer"]
    unknown = ["made", "op", -1, 0, "", "", ""]
    document = {
        "version": 1,
        "files": ["a.py"],
        "methods": {"forward": [row, unknown]},
        "values": {"forward": {"2": "weight"}},
        "delegates": {"forward": [{"7": [row]}]},
        "coverage": {"forward": [["Cpu", 0, 1.5, {"Cpu": "why"}, *row]]},
    }
    known = DebugNode("mul", "aten.mul.Tensor", DebugLine("a.py", 3, "forward", "x * y"), "layer")
    method = DebugMethod(
        [known, DebugNode("made", "op")],
        {2: "weight"},
        [{"7": (known,)}],
        [DebugCall(known, "Cpu", 0, 1.5, (("Cpu", "why"),))],
    )
    assert read_debug(json.dumps(document).encode()) == DebugMap({"forward": method})
    method.coverage = []
    for damaged in (3, None, {"forward": [3]}, {"forward": None}):  # costs only itself
        document["coverage"] = damaged
        assert read_debug(json.dumps(document).encode()) == DebugMap({"forward": method})


@pytest.mark.parametrize("data", [None, b"", b"RLDM", b"RLDM\x02", b"RLDM\x03\x00", b"\xff", b"{"])
def test_what_is_no_map_tells_nothing(data: bytes | None) -> None:
    assert read_debug(data) == DebugMap()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/cpp/module/test_debug_lines.cpp as an executable, with sanitizers."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None, "a C++ compiler is needed to build the runtime, and for this test"
    folder = tmp_path_factory.mktemp("debug_lines")
    (folder / "rushlight").symlink_to(ROOT / "cpp")
    flags = "-std=c++17 -O1 -g -Wall -Wextra -Werror -fno-exceptions -fno-rtti".split()
    includes = [f"-I{folder}", "-Itests/cpp/support"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = ["tests/cpp/module/test_debug_lines.cpp", "cpp/module/debug/debug_lines.cpp"]
    subprocess.run(
        [compiler, *flags, *sanitizers, *includes, *sources, "-o", str(folder / "reader")],
        cwd=ROOT,
        check=True,
    )
    return folder / "reader"


@pytest.mark.parametrize("level", [0, 3, 5])
@pytest.mark.parametrize("make", [rich_map, lambda: long_map(300)], ids=["rich", "long"])
def test_the_runtime_finds_the_same_lines(
    make: Any, level: int, reader: Path, tmp_path: Path
) -> None:
    whole = make()
    data = next(data for data in smaller_and_smaller(whole) if read_debug(data).level >= level)
    read = read_debug(data)
    questions, answers = [], []
    for name, method in read.methods.items():
        for i, one in enumerate(method.instructions):
            questions.append(f"{name}\t{i}")
            answers.append([one])
        for i, places in enumerate(method.delegates):
            for key, nodes in places.items():
                questions.append(f"{name}\t{i}\t{key}")
                answers.append(list(nodes))
    (tmp_path / "map").write_bytes(data)
    (tmp_path / "questions").write_text("".join(f"{q}\n" for q in questions), "utf-8")
    done = subprocess.run(
        [str(reader), str(tmp_path / "map"), str(tmp_path / "questions")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    expected = [list(dict.fromkeys(n.line for n in nodes if n.line.file)) for nodes in answers]
    shown = [[f"{x.file}:{x.number} in {x.function}: {x.text}" for x in ls] for ls in expected]
    printed = done.stdout.decode().splitlines()
    assert len(printed) == len(shown) >= 1
    for one, wanted in zip(printed, shown, strict=True):
        assert one == "; ".join(wanted) or max(map(len, wanted)) > 500
