"""The modules of a bundled program's tables at work: ExecuTorch's, and ours in the tests' process.

* ``tables bpte= folder=``: what they read in a file; writes what they make of it into the folder.
* ``json_forms folder=``: the JSON that ExecuTorch makes of ``all.bpte`` there, and the JSON that
  flatc makes of ``all.bpte`` and of ``all.etdp`` by the schemas there; writes ``made.bpte`` of
  ``all.json``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import flatbuffers
import numpy as np

GENERATED = "executorch.devtools.bundled_program.serialize.generated.bundled_program_flatbuffer"
TABLES = ("BundledProgram", "BundledMethodTestSuite", "BundledMethodTestCase", "Value", "Tensor",
          "Int", "Bool", "Double", "ValueUnion")  # fmt: skip

Modules = Callable[[str], Any]


def tables(bpte: str, folder: str) -> dict[str, Any]:
    from executorch.devtools.bundled_program import serialize

    def modules(name: str) -> Any:
        return importlib.import_module(f"{GENERATED}.{name}")

    serialize._install_fast_packers()  # which align bytes as the schema says
    # Its readers of vectors call the modules of these names in place of the classes in them.
    for owner, name in pairwise(TABLES[:4]):
        setattr(modules(owner), name, getattr(modules(name), name))
    return told(modules, bpte, folder)


def json_forms(folder: str) -> list[Any]:
    from executorch.devtools.bundled_program import serialize
    from executorch.exir._serialize._flatbuffer import _flatc_decompile

    at = Path(folder)
    made = serialize.convert_to_flatbuffer((at / "all.json").read_text())
    (at / "made.bpte").write_bytes(made)
    told = [json.loads(serialize.convert_from_flatbuffer((at / "all.bpte").read_bytes()))]
    for schema, name in (("bundled_program_schema", "bpte"), ("etdump_schema_flatcc", "etdp")):
        _flatc_decompile(folder, str(at / f"{schema}.fbs"), str(at / f"all.{name}"))
        told.append(json.loads((at / "all.json").read_text()))
    return told


def told(modules: Modules, bpte: str, folder: str) -> dict[str, Any]:
    """What `tables` answers with, by any modules."""
    data = bytearray(Path(bpte).read_bytes())
    made = modules("BundledProgram").BundledProgramT.InitFromPackedBuf(data)
    (Path(folder) / "packed.bpte").write_bytes(_finished(made.Pack))
    (Path(folder) / "built.bpte").write_bytes(_finished(lambda builder: _build(modules, builder)))
    return {
        "names": {name: _own(modules(name), name) for name in TABLES},
        "methods": {n: _public(getattr(modules(n), n)) for n in TABLES},
        "attributes": {n: sorted(vars(getattr(modules(n), f"{n}T")())) for n in TABLES[:-1]},
        "read": _read(modules, data),
        "objects": _plain(made),
    }


def _public(owner: Any) -> list[str]:
    return sorted(name for name in dir(owner) if name[0] != "_")


def _own(module: Any, table: str) -> list[str]:
    """The names of a module without what it imports."""
    imported = ("Any", "List", "Optional", "Union", "Table", "import_numpy", *TABLES)
    return [
        name
        for name in _public(module)
        if name == table
        or (name not in imported and not isinstance(getattr(module, name), ModuleType))
    ]


def _finished(pack: Callable[[Any], int]) -> bytes:
    builder = flatbuffers.Builder()
    builder.Finish(pack(builder), file_identifier=b"BP08")
    return bytes(builder.Output())


def _plain(value: Any) -> Any:
    """Objects and arrays as what JSON has."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if hasattr(value, "Pack"):
        return {key: _plain(item) for key, item in sorted(vars(value).items())}
    return value


def _read(modules: Modules, data: bytearray) -> list[Any]:
    cls = modules("BundledProgram").BundledProgram
    root = cls.GetRootAs(data)
    same = cls.GetRootAsBundledProgram(data, 0)
    facts = [cls.BundledProgramBufferHasIdentifier(data, 0), root.Version(), same.ProgramLength(),
             root.ProgramIsNone(), root.Program(3), root.ProgramAsNumpy()[:8].tolist()]  # fmt: skip
    for i in range(root.MethodTestSuitesLength()):
        suite = root.MethodTestSuites(i)
        facts.append([suite.MethodName().decode(), suite.TestCasesIsNone()])
        for j in range(suite.TestCasesLength()):
            case = suite.TestCases(j)
            inputs = [case.Inputs(k) for k in range(case.InputsLength())]
            outputs = [case.ExpectedOutputs(k) for k in range(case.ExpectedOutputsLength())]
            facts.append([_value(modules, value) for value in (*inputs, *outputs)])
    return facts


def _value(modules: Modules, value: Any) -> list[Any]:
    kind, table = value.ValType(), value.Val()
    union = modules("ValueUnion").ValueUnion
    [name] = [n for n in _public(union) if getattr(union, n) == kind]
    if table is None:
        return [name]
    made = modules("ValueUnion").ValueUnionCreator(kind, table)
    read = getattr(modules(name), name)()
    read.Init(table.Bytes, table.Pos)
    if name != "Tensor":
        return [name, _plain(made), getattr(read, f"{name}Val")()]
    facts = [read.ScalarType(), read.SizesLength(), read.DataLength(), read.DimOrderLength()]
    if read.SizesLength():
        facts += [read.Sizes(0), read.DimOrder(0), read.DimOrderAsNumpy().tolist()]
    return [name, facts, read.SizesIsNone(), read.Data(0), _plain(made)]


def _build(modules: Modules, builder: Any) -> int:
    """A small program by the functions for builders alone, in both of their names."""
    tensor, value, case = modules("Tensor"), modules("Value"), modules("BundledMethodTestCase")
    suite, program = modules("BundledMethodTestSuite"), modules("BundledProgram")
    sizes = builder.CreateNumpyVector(np.array([2, 3], np.int32))
    dim_order = builder.CreateNumpyVector(np.array([0, 1], np.uint8))
    data = builder.CreateNumpyVector(np.arange(24, dtype=np.uint8))
    tensor.TensorStart(builder)
    tensor.TensorAddScalarType(builder, 6)
    tensor.TensorAddSizes(builder, sizes)
    tensor.AddData(builder, data)
    tensor.AddDimOrder(builder, dim_order)
    values = [_valued(modules, builder, "Tensor", tensor.End(builder))]
    for name, number in (("Int", -7), ("Bool", True), ("Double", 2.5)):
        module = modules(name)
        getattr(module, f"{name}Start")(builder)
        getattr(module, f"Add{name}Val")(builder, number)
        values.append(_valued(modules, builder, name, module.End(builder)))
    value.Start(builder)
    values.append(value.ValueEnd(builder))
    case.StartInputsVector(builder, len(values))
    for offset in reversed(values):
        builder.PrependUOffsetTRelative(offset)
    inputs = builder.EndVector()
    case.BundledMethodTestCaseStart(builder)
    case.AddInputs(builder, inputs)
    made = case.End(builder)
    suite.BundledMethodTestSuiteStartTestCasesVector(builder, 1)
    builder.PrependUOffsetTRelative(made)
    cases, name = builder.EndVector(), builder.CreateString("forward")
    suite.Start(builder)
    suite.AddMethodName(builder, name)
    suite.BundledMethodTestSuiteAddTestCases(builder, cases)
    made = suite.BundledMethodTestSuiteEnd(builder)
    program.StartMethodTestSuitesVector(builder, 1)
    builder.PrependUOffsetTRelative(made)
    suites = builder.EndVector()
    program.Start(builder)
    program.AddVersion(builder, 2)
    program.BundledProgramAddMethodTestSuites(builder, suites)
    return int(program.End(builder))


def _valued(modules: Modules, builder: Any, name: str, offset: int) -> int:
    module = modules("Value")
    module.ValueStart(builder)
    module.ValueAddValType(builder, getattr(modules("ValueUnion").ValueUnion, name))
    module.AddVal(builder, offset)
    return int(module.End(builder))


COMMANDS = {"tables": tables, "json_forms": json_forms}
