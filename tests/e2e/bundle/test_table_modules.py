"""Bundled programs by the modules of their tables and as JSON, beside what real ExecuTorch has."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flatbuffers
import numpy as np
import pytest

from peer import tables_side
from rushlight.devtools import bundled_tables, schema_files
from rushlight.errors import ExportError
from rushlight.schema import bundled_program as fb
from rushlight.schema import etdump
from rushlight.schema.common import ScalarType

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


def _modules(name: str) -> Any:
    return getattr(bundled_tables, name)


def _program(notes: bool) -> fb.BundledProgram:
    """Values of all kinds, empty ones, and a method without cases."""
    tensor = fb.Tensor(ScalarType.FLOAT, [2, 3], np.arange(6, dtype=np.float32).tobytes(), [1, 0])
    values: list[Any] = [
        tensor,
        fb.Tensor(),
        fb.Int(-(1 << 40)),
        fb.Bool(True),
        fb.Bool(),
        fb.Double(0.1),
    ]
    case = fb.BundledMethodTestCase([*map(fb.Value, values), fb.Value()], [fb.Value(tensor)])
    if notes:
        case.notes = fb.CaseNotes("first", "eager", [1e-3], [1e-4])
    suites = [
        fb.BundledMethodTestSuite("forward", [case, fb.BundledMethodTestCase()]),
        fb.BundledMethodTestSuite("größer"),
    ]
    return fb.BundledProgram(2, suites, bytes(range(100)))


def test_our_modules_and_executorchs_read_and_write_the_same(
    executorch: ExecuTorch, tmp_path: Path
) -> None:
    file = tmp_path / "all.bpte"
    file.write_bytes(fb.pack(_program(notes=False)))
    folders = [tmp_path / "ours", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()
    ours = tables_side.told(_modules, str(file), str(folders[0]))
    theirs = executorch.call("tables", bpte=file, folder=folders[1])
    assert ours["read"] == theirs["read"]
    assert fb.unpack((folders[0] / "packed.bpte").read_bytes()) == _program(notes=False)
    for name in ("packed.bpte", "built.bpte"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
    for table in tables_side.TABLES:
        for kind in ("names", "methods", "attributes"):
            missing = {*theirs[kind].get(table, ())} - {*ours[kind].get(table, ())}
            assert not missing, (kind, table)
    _drop(ours["objects"], "notes")
    assert ours["objects"] == theirs["objects"]


def test_our_json_and_schemas_are_executorchs(executorch: ExecuTorch, tmp_path: Path) -> None:
    program = _program(notes=False)
    text = schema_files.serialize_from_bundled_program_to_json(program)
    (tmp_path / "all.json").write_text(text)
    (tmp_path / "all.bpte").write_bytes(fb.pack(program))
    value = etdump.Value(etdump.ValueType.TENSOR_LIST, tensor_list=etdump.TensorList())
    event = etdump.Event(debug_event=etdump.DebugEvent(debug_entry=value))
    trace = etdump.ETDump(0, [etdump.RunData("Execute", events=[event])])
    (tmp_path / "all.etdp").write_bytes(etdump.pack(trace))
    for name in ("bundled_program_schema", "etdump_schema_flatcc", "scalar_type"):
        schema_files.write_schema(tmp_path, name)
    theirs, by_schema, of_trace = executorch.call("json_forms", folder=tmp_path)
    assert theirs == by_schema
    ours = schema_files.convert_from_flatbuffer(fb.pack(_program(notes=True)))
    _drop(told := json.loads(ours), "notes")
    for tree in (theirs, told):
        _drop(tree, "val_type")  # flatc names that of an absent value, too
    assert told == theirs
    [shown] = of_trace["run_data"][0]["events"]
    assert shown["debug_event"]["debug_entry"] == {
        "val": "TensorList",
        "tensor_list": {"tensors": []},
    }
    # What either reads of the other's JSON, and of its files.
    made = (tmp_path / "made.bpte").read_bytes()
    assert fb.unpack(made) == program
    assert schema_files.deserialize_from_json_to_bundled_program(ours) == _program(notes=True)
    assert fb.unpack(schema_files.convert_to_flatbuffer(text)) == program


def test_schemas_have_names() -> None:
    with pytest.raises(ExportError, match=r"no schema 'program': choose one of bundled_program_s"):
        schema_files.write_schema(".", "program")


def _drop(tree: Any, key: str) -> None:
    """What only our tables have."""
    if isinstance(tree, dict):
        tree.pop(key, None)
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _drop(item, key)


def test_objects_keep_notes_of_cases_and_are_pickled() -> None:
    data = bytearray(fb.pack(_program(notes=True)))
    made = bundled_tables.BundledProgram.BundledProgramT.InitFromPackedBuf(data)
    made = pickle.loads(pickle.dumps(made))
    builder = flatbuffers.Builder()
    builder.Finish(made.Pack(builder), file_identifier=b"BP08")
    assert fb.unpack(builder.Output()) == _program(notes=True)


def test_bytes_are_aligned_and_taken_in_any_form() -> None:
    for data in (b"abc", bytearray(b"abc"), [97, 98, 99], np.frombuffer(b"abc", np.uint8)):
        made = bundled_tables.Tensor.TensorT()
        made.data, made.sizes = data, (3,)
        builder = flatbuffers.Builder()
        builder.Finish(made.Pack(builder))
        packed = bytearray(builder.Output())
        assert packed.index(b"abc") % 16 == 0
        read = bundled_tables.Tensor.Tensor.GetRootAs(packed)
        assert (read.DataAsNumpy().tobytes(), read.Sizes(0)) == (b"abc", 3)
