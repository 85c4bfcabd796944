"""Programs for the tests of files: a generator of arbitrary tables, and handwritten programs."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rushlight.schema import codec
from rushlight.schema import program as fb
from rushlight.serialize.file import PTEFile

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


_FLOATS = st.floats(allow_nan=False)
#: Doubles that a text with few decimals represents exactly.
SHORT_FLOATS = st.integers(-(1 << 40), 1 << 40).map(lambda eighths: eighths / 8)


def numbers(letter: str, floats: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    """Every number that struct's `letter` can hold; the doubles are `floats`."""
    if letter == "?":
        return st.booleans()
    if letter == "d":
        return floats
    bits = _BITS[letter.lower()]
    if letter.isupper():
        return st.integers(0, (1 << bits) - 1)
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def tables(
    format: codec.Format, cls: type, floats: st.SearchStrategy[float] = _FLOATS
) -> st.SearchStrategy[Any]:
    """Instances of `cls` with arbitrary values in their fields, as far as a file can hold them."""
    fields = {f.name: _field(format, f, floats) for f in format.tables[cls]}
    return st.builds(cls, **fields)


def _field(
    format: codec.Format, f: codec.Field, floats: st.SearchStrategy[float]
) -> st.SearchStrategy[Any]:
    if isinstance(f, codec.Scalar):
        return st.sampled_from(f.enum) if f.enum is not None else numbers(f.letter, floats)
    if isinstance(f, codec.Union):
        return st.one_of([tables(format, member, floats) for member in f.members])
    if isinstance(f, codec.Text):
        strategy: st.SearchStrategy[Any] = _TEXTS
    elif isinstance(f, codec.Bytes):
        strategy = st.binary(max_size=40)
    elif isinstance(f, codec.Numbers):
        strategy = st.lists(numbers(f.letter, floats), max_size=6)
    elif isinstance(f, codec.Child):
        strategy = tables(format, f.table, floats)
    else:
        strategy = st.lists(tables(format, f.table, floats), max_size=3)
    return st.none() | strategy if f.optional else strategy


def tensor(sizes: list[int], *, constant: int = 0, at: int | None = None, **rest: Any) -> fb.EValue:
    """A float tensor: constant `constant`, or planned in arena 1 at byte `at`."""
    place = None if at is None else fb.AllocationDetails(1, at, 0)
    return fb.EValue(
        fb.Tensor(
            fb.ScalarType.FLOAT,
            sizes=sizes,
            dim_order=list(range(len(sizes))),
            data_buffer_idx=constant,
            allocation_info=place,
            **rest,
        )
    )


def method(
    values: list[fb.EValue],
    calls: list[tuple[str, list[int]]],
    *,
    name: str = "forward",
    inputs: list[int],
    outputs: list[int],
    arena: int = 1024,
    delegates: list[fb.BackendDelegate] | None = None,
) -> fb.ExecutionPlan:
    """A method; its calls are pairs of an operator name with overload and its arguments."""
    operators = list(dict.fromkeys(operator for operator, _ in calls))
    return fb.ExecutionPlan(
        name=name,
        container_meta_type=fb.ContainerMetadata("", ""),
        values=values,
        inputs=inputs,
        outputs=outputs,
        chains=[
            fb.Chain(
                instructions=[
                    fb.Instruction(fb.KernelCall(operators.index(operator), args))
                    for operator, args in calls
                ]
            )
        ],
        operators=[fb.Operator(*operator.split(".")) for operator in operators],
        delegates=delegates or [],
        non_const_buffer_sizes=[0, arena],
    )


def add_program() -> PTEFile:
    """forward(x) = (x + c1) + c2, with x of 2 x 3 and constants of 24 bytes."""
    values = [
        tensor([2, 3], constant=1),
        tensor([2, 3], constant=2),
        tensor([2, 3], at=0),
        fb.EValue(fb.Int(1)),
        tensor([2, 3], at=32),
        tensor([2, 3], at=64),
    ]
    calls = [("aten::add.out", [2, 0, 3, 4, 4]), ("aten::add.out", [4, 1, 3, 5, 5])]
    constants = [np.arange(6, dtype=np.float32), np.full((2, 3), 10, np.float32)]
    plan = method(values, calls, inputs=[2], outputs=[5])
    return PTEFile(fb.Program(execution_plan=[plan]), constants=[b"", *constants])


def plain_program() -> PTEFile:
    """forward(x) = x + x, without any data."""
    values = [tensor([4], at=0), fb.EValue(fb.Int(1)), tensor([4], at=16)]
    plan = method(values, [("aten::add.out", [0, 0, 1, 2, 2])], inputs=[0], outputs=[2])
    return PTEFile(fb.Program(execution_plan=[plan]))


def full_program() -> PTEFile:
    """A program with all kinds of values, instructions and data, and two methods."""
    frames = fb.FrameList([fb.Frame("model.py", 7, "forward", "return x + 1")])
    values = [
        fb.EValue(fb.Null()),
        fb.EValue(fb.Int(-3)),
        fb.EValue(fb.Bool(True)),
        fb.EValue(fb.Double(-0.0)),
        fb.EValue(fb.String("grüße")),
        fb.EValue(fb.IntList([1, 1])),
        fb.EValue(fb.DoubleList([0.5, -1e300])),
        fb.EValue(fb.BoolList([True, False, True])),
        tensor([2, 2], constant=1),
        tensor([], constant=2),
        tensor([3], constant=1, at=16),
        fb.EValue(fb.TensorList([8, 9])),
        fb.EValue(fb.OptionalTensorList([-1, 10])),
        tensor(
            [8],
            extra_tensor_info=fb.ExtraTensorInfo(
                fully_qualified_name="w", location=fb.TensorDataLocation.EXTERNAL
            ),
        ),
        tensor([4, 2], at=64, shape_dynamism=fb.TensorShapeDynamism.DYNAMIC_BOUND),
    ]
    delegates = [
        fb.BackendDelegate("A", fb.BackendDelegateDataReference(fb.DataLocation.SEGMENT, 0)),
        fb.BackendDelegate(
            "B",
            fb.BackendDelegateDataReference(fb.DataLocation.INLINE, 1),
            [fb.CompileSpec("key", b"\x00\xff")],
        ),
    ]
    plan = method(values, [], inputs=[14], outputs=[10], delegates=delegates)
    plan.operators = [fb.Operator("aten::add", "out")]
    plan.non_const_buffer_sizes = [0, 128, 256]
    plan.non_const_buffer_device = [fb.NonConstBufferDevice(2, fb.DeviceType.CUDA, 1)]
    instructions = [
        fb.KernelCall(0, [14, 14, 1, 10, 10]),
        fb.DelegateCall(1, [14, 10]),
        fb.MoveCall(8, 9),
        fb.JumpFalseCall(2, 5),
        fb.FreeCall(10),
    ]
    plan.chains = [
        fb.Chain(instructions=[fb.Instruction(i) for i in instructions], stacktrace=[frames] * 5)
    ]
    other = method([fb.EValue(fb.Int(5))], [], name="version", inputs=[], outputs=[0])
    return PTEFile(
        fb.Program(execution_plan=[plan, other]),
        constants=[b"", np.arange(4, dtype=np.float32), struct.pack("<f", 2.5)],
        mutable_data=[b"", struct.pack("<3f", 1, 2, 3)],
        named_data={"rushlight/contract": b"{}", "weights": bytes(range(100)), "same": b"{}"},
        delegate_blobs=[b"payload of A" * 20, b"payload of B"],
    )


def rewritten(data: bytes, change: Callable[[fb.Program], object]) -> bytes:
    """A file of `write_pte` with a changed root table; the data behind it are kept, no checks."""
    program_size, base = struct.unpack_from("<QQ", data, 16)
    root = fb.unpack(data[:program_size])
    change(root)
    flatbuffer = fb.pack(root)
    head = int.from_bytes(flatbuffer[:4], "little") + 32
    new_base = (len(flatbuffer) + 32 + 127) // 128 * 128
    header = struct.pack("<4sIQQQ", b"eh00", 32, len(flatbuffer) + 32, new_base, len(data) - base)
    whole = head.to_bytes(4, "little") + flatbuffer[4:8] + header + flatbuffer[8:]
    return whole.ljust(new_base, b"\0") + data[base:]
