"""What a selective build reads from programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.python.runtime_programs import MethodBuilder, binary, delegated, program

from rushlight.errors import Error, LoadError
from rushlight.schema import cpu_engine
from rushlight.schema import program as fb
from rushlight.selective.uses import CPU, uses_of


def _file(folder: Path, data: bytes, name: str = "m.pte") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def _keys(path: Path, operator: str) -> set[str]:
    return {call.key(has_alias=True) for call in uses_of([path]).operators[operator]}


def test_a_call_is_known_by_dtypes_and_dim_orders(tmp_path: Path) -> None:
    path = _file(tmp_path, program(binary("aten::mul.out", 2, 3)))
    assert _keys(path, "aten::mul.out") == {"v1/6;0,1|6;0,1|6;0,1"}
    assert uses_of([path]).dtypes == {"float32"}


def test_methods_and_files_are_read_together(tmp_path: Path) -> None:
    other = binary("aten::mul.out", 2, 3, 4)
    other.name = "other"
    first = _file(tmp_path, program(binary("aten::mul.out", 2, 3), other))
    second = _file(tmp_path, program(binary("aten::sub.out", 5)), "n.pte")
    uses = uses_of([first, second])
    assert set(uses.operators) == {"aten::mul.out", "aten::sub.out"}
    assert len(uses.operators["aten::mul.out"]) == 2


def test_dtypes_of_lists_are_read(tmp_path: Path) -> None:
    method = binary("aten::mul.out", 2)
    half = method.tensor(2, dtype="float16")
    method.values.append(fb.EValue(fb.TensorList([half])))
    method.operators.append(fb.Operator("aten::cat", "out"))
    call = fb.KernelCall(len(method.operators) - 1, [len(method.values) - 1, 0, 0])
    method.instructions.append(fb.Instruction(call))
    uses = uses_of([_file(tmp_path, program(method))])
    assert uses.dtypes == {"float32", "float16"}


def test_kinds_of_nodes_are_read_from_payloads(tmp_path: Path) -> None:
    nodes = [cpu_engine.Node(operation=cpu_engine.Softmax()), cpu_engine.Node(cpu_engine.Copy())]
    payload = cpu_engine.pack(cpu_engine.Graph(version=1, nodes=nodes))
    uses = uses_of([_file(tmp_path, program(delegated(CPU, 2), blobs=[payload]))])
    assert uses.backends == {CPU}
    assert uses.nodes == {"Softmax", "Copy"}


def test_weights_and_operations_are_read_from_payloads(tmp_path: Path) -> None:
    code = [fb_op | 0x0100 for fb_op in (0, 3, 9, 1)]
    program_code = [word for op in code for word in (op, 0, 0)]
    tiles = cpu_engine.TileProgram(code=program_code, operands=[0, 0])
    nodes = [
        cpu_engine.Node(operation=cpu_engine.Elementwise(program=tiles)),
        cpu_engine.Node(operation=cpu_engine.DynamicProduct(bits=8)),
    ]
    path = _payload(tmp_path, nodes)
    assert uses_of([path]).tile_ops == {"ADD", "POW"}
    assert uses_of([path]).weights == set()
    epilogue = cpu_engine.Epilogue(program=tiles)
    nodes = [
        cpu_engine.Node(operation=cpu_engine.DynamicProduct(bits=4, epilogue=epilogue)),
        cpu_engine.Node(operation=cpu_engine.DynamicProduct(bits=4, row_group_size=32)),
    ]
    path = _payload(tmp_path, nodes)
    assert uses_of([path]).tile_ops == {"ADD", "POW"}
    assert uses_of([path]).weights == {"nibbles", "row_groups"}


def _payload(folder: Path, nodes: list[cpu_engine.Node]) -> Path:
    payload = cpu_engine.pack(cpu_engine.Graph(version=8, nodes=nodes))
    return _file(folder, program(delegated(CPU, 2), blobs=[payload]))


@pytest.mark.parametrize("payload", [b"", b"\xff" * 64, b"\0" * 100])
def test_a_damaged_payload_is_an_error_with_its_file(tmp_path: Path, payload: bytes) -> None:
    path = _file(tmp_path, program(delegated(CPU, 2), blobs=[payload]))
    with pytest.raises(LoadError, match=r"m\.pte.*export the model again"):
        uses_of([path])


def test_no_program_is_an_error_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"m\.pte"):
        uses_of([_file(tmp_path, b"no program at all, but long enough to be read" * 3)])


def test_a_damaged_index_is_an_error(tmp_path: Path) -> None:
    method: MethodBuilder = binary("aten::mul.out", 2)
    good = program(method)
    call = method.instructions[0].instr_args
    assert isinstance(call, fb.KernelCall)
    index = good.rfind(int(call.args[-1]).to_bytes(4, "little") * 2)
    assert index > 0
    damaged = bytearray(good)
    damaged[index : index + 4] = (999).to_bytes(4, "little")
    with pytest.raises(LoadError, match="value 999"):
        uses_of([_file(tmp_path, bytes(damaged))])
