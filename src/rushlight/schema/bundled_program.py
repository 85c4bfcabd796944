"""A program with test cases for its methods (.bpte), in ExecuTorch's format.

Made from schema/bundled_program.fbs by `python -m codegen.schema`; edit that file instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rushlight.errors import Code
from rushlight.schema import codec
from rushlight.schema.common import DataSegment as DataSegment
from rushlight.schema.common import ScalarType as ScalarType


@dataclass(slots=True)
class Int:
    """A whole number."""

    int_val: int = 0


@dataclass(slots=True)
class Bool:
    """A truth value."""

    bool_val: bool = False


@dataclass(slots=True)
class Double:
    """A number of 64 bits."""

    double_val: float = 0.0


@dataclass(slots=True)
class Tensor:
    """A tensor with its elements, which lie in its dim order without gaps."""

    scalar_type: ScalarType = ScalarType.BYTE
    sizes: list[int] = field(default_factory=list)
    data: codec.Buffer = b""
    #: The dimensions from the outermost in memory to the innermost.
    dim_order: list[int] = field(default_factory=list)


ValueUnion = Tensor | Int | Bool | Double


@dataclass(slots=True)
class Value:
    """An input or an output."""

    #: Absent for what a program always has in this place: None, or a text.
    val: ValueUnion | None = None


@dataclass(slots=True)
class CaseNotes:
    """What Rushlight keeps with a test case; other runtimes do not read it."""

    name: str = ""
    #: What the expected outputs come from: "eager", "program" or "given".
    origin: str = ""
    #: How far each output may depart from what is expected, by |got - expected| <= atol + rtol *
    #: |expected|; for whole numbers by atol alone. Empty: rtol is 1e-5 and atol is 1e-8, and whole
    #: numbers must be equal.
    rtol: list[float] = field(default_factory=list)
    atol: list[float] = field(default_factory=list)


@dataclass(slots=True)
class BundledMethodTestCase:
    """One call of a method."""

    inputs: list[Value] = field(default_factory=list)
    #: Empty if they are not known.
    expected_outputs: list[Value] = field(default_factory=list)
    #: Far from ExecuTorch's own fields, which may become more.
    notes: CaseNotes | None = None


@dataclass(slots=True)
class BundledMethodTestSuite:
    """The test cases of a method."""

    method_name: str = ""
    test_cases: list[BundledMethodTestCase] = field(default_factory=list)


@dataclass(slots=True)
class BundledProgram:
    """The whole file."""

    version: int = 0
    method_test_suites: list[BundledMethodTestSuite] = field(default_factory=list)
    #: A program file.
    program: codec.Buffer = b""


_TABLES: Mapping[type, tuple[codec.Field, ...]] = {
    BundledProgram: (
        codec.Scalar("version", 0, "I", 0),
        codec.Children("method_test_suites", 1, BundledMethodTestSuite),
        codec.Bytes("program", 2, align=32),
    ),
    BundledMethodTestSuite: (
        codec.Text("method_name", 0),
        codec.Children("test_cases", 1, BundledMethodTestCase),
    ),
    BundledMethodTestCase: (
        codec.Children("inputs", 0, Value),
        codec.Children("expected_outputs", 1, Value),
        codec.Child("notes", 16, CaseNotes, optional=True),
    ),
    Value: (
        codec.Union(
            "val",
            0,
            (
                Tensor,
                Int,
                Bool,
                Double,
            ),
            optional=True,
        ),
    ),
    CaseNotes: (
        codec.Text("name", 0),
        codec.Text("origin", 1),
        codec.Numbers("rtol", 2, "d"),
        codec.Numbers("atol", 3, "d"),
    ),
    Tensor: (
        codec.Scalar("scalar_type", 0, "b", ScalarType.BYTE, ScalarType),
        codec.Numbers("sizes", 1, "i"),
        codec.Bytes("data", 2, align=16),
        codec.Numbers("dim_order", 3, "B"),
    ),
    Int: (codec.Scalar("int_val", 0, "q", 0),),
    Bool: (codec.Scalar("bool_val", 0, "?", False),),
    Double: (codec.Scalar("double_val", 0, "d", 0.0),),
}

BUNDLED_PROGRAM = codec.Format(BundledProgram, b"BP08", _TABLES, Code.INVALID_PROGRAM)


def pack(bundled_program: BundledProgram, alignments: Mapping[type, int] | None = None) -> bytes:
    """The flatbuffer of `bundled_program`; see :func:`rushlight.schema.codec.pack`."""
    return codec.pack(BUNDLED_PROGRAM, bundled_program, alignments)


def unpack(data: codec.Buffer) -> BundledProgram:
    """The objects in `data`; see :func:`rushlight.schema.codec.unpack`."""
    bundled_program = codec.unpack(BUNDLED_PROGRAM, data)
    assert isinstance(bundled_program, BundledProgram)
    return bundled_program
