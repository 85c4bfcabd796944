"""Loading programs: the sources that are accepted and refused, and that no resource is leaked."""

from __future__ import annotations

import io
import json
import mmap
import os
import pathlib
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from runtime_programs import (
    MethodBuilder,
    add,
    binary,
    counter,
    program,
    tensor_value,
    with_external_weight,
)
from runtime_programs import contract as make_contract

import rushlight as rl
from rushlight.errors import Code
from rushlight.schema import program as fb
from rushlight.schema.common import ScalarType
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.serialize.ptd import NamedTensor, write_ptd

ONES = np.ones((2, 2), np.float32)


def test_from_a_path_and_from_bytes(tmp_path: pathlib.Path) -> None:
    image = add(2, 2)
    file = tmp_path / "äd d.pte"
    file.write_bytes(image)
    writable = bytearray(image)
    misaligned = memoryview(b"x" + image)[1:]
    sources = [
        file,
        str(file),
        image,
        writable,
        memoryview(image),
        memoryview(writable),
        misaligned,
    ]
    for source in sources:
        module = rl.load(source)
        writable[:] = bytes(len(image))  # what was loaded is not touched by this
        np.testing.assert_array_equal(module(ONES, ONES), ONES * 2)
        writable[:] = image


def test_the_image_is_kept_alive() -> None:
    module = rl.load(bytes(bytearray(program(counter(), constants=[struct.pack("<f", 1.0)]))))
    junk = [bytes(2000) for _ in range(100)]
    np.testing.assert_array_equal(module(np.ones(2, np.float32)), [1, 1])
    del junk


def test_methods_may_be_chosen() -> None:
    other = binary("aten::mul.out", 2, 2)
    other.name = "times"
    image = program(binary("aten::add.out", 2, 2), other)
    assert rl.load(image).methods == ("forward", "times")
    module = rl.load(image, methods=["times"])
    assert module.methods == ("times",)
    np.testing.assert_array_equal(module.times(ONES, 3 * ONES), 3 * ONES)
    with pytest.raises(rl.RunError, match=r"no method 'forward'; call one of its methods.*times"):
        module(ONES, ONES)
    with pytest.raises(rl.LoadError, match="no method 'plus'; the program has forward, times"):
        rl.load(image, methods=["plus"])


@pytest.mark.parametrize(
    ("image", "code", "message"),
    [
        (b"", Code.INVALID_PROGRAM, "not a .pte program"),
        (b"hello world" * 20, Code.INVALID_PROGRAM, "not a .pte program"),
        (add(2, 2)[:200], Code.INVALID_PROGRAM, "outside|beyond|truncated|size|bytes"),
    ],
)
def test_what_is_no_program(image: bytes, code: Code, message: str) -> None:
    with pytest.raises(rl.LoadError, match=message) as caught:
        rl.load(image)
    assert caught.value.code == code
    assert caught.value.where == "program in memory"


def test_a_path_without_a_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(rl.LoadError, match="no such file") as caught:
        rl.load(tmp_path / "missing.pte")
    assert caught.value.code == Code.ACCESS_FAILED
    with pytest.raises(rl.LoadError, match="as bytes or as an open binary file, not as int"):
        rl.load(3)  # type: ignore[arg-type]
    exported = SimpleNamespace(buffer=b"")  # as what rl.export returns has it
    with pytest.raises(rl.LoadError, match="not as SimpleNamespace: pass its buffer"):
        rl.load(exported)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"threads": "2"}, Code.INVALID_ARGUMENT, "threads='2'"),
        ({"backend": "tpu"}, Code.NOT_FOUND, "backend='tpu': the program has one form only"),
        ({"threads": True}, Code.INVALID_ARGUMENT, "threads=True: give a number of threads"),
        ({"memory_limit": 0}, Code.INVALID_ARGUMENT, "memory_limit=0"),
        ({"memory_limit": 1.5}, Code.INVALID_ARGUMENT, "memory_limit=1.5: give a number of bytes"),
        ({"methods": "forward"}, Code.INVALID_ARGUMENT, r"methods=\['forward'\]"),
        ({"methods": {"forward": 1}}, Code.INVALID_ARGUMENT, r"methods=\['forward'\]; constant"),
    ],
)
def test_options_that_are_refused(options: dict[str, object], code: Code, message: str) -> None:
    with pytest.raises(rl.LoadError, match=message) as caught:
        rl.load(add(2, 2), **options)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_options_that_are_taken() -> None:
    module = rl.load(add(2, 2), threads=np.int64(2), backend="portable")
    assert module.threads == 2 and module.clone().threads == 2
    np.testing.assert_array_equal(module(ONES, ONES), ONES * 2)


@pytest.mark.parametrize("limit", [10**30, 1 << 64, (1 << 64) - 1, np.int64(1 << 40)])
def test_a_memory_limit_beyond_all_memory_is_none(limit: int) -> None:
    np.testing.assert_array_equal(rl.load(add(2, 2), memory_limit=limit)(ONES, ONES), ONES * 2)


@pytest.mark.parametrize("threads", [10**30, -(10**30)])
def test_a_number_of_threads_beyond_all_cores(threads: int) -> None:
    with pytest.warns(RuntimeWarning, match="threads"):
        module = rl.load(add(2, 2), threads=threads)
    np.testing.assert_array_equal(module(ONES, ONES), ONES * 2)


def test_from_buffers_and_open_files(tmp_path: pathlib.Path) -> None:
    image = add(2, 2)
    file = tmp_path / "add.pte"
    file.write_bytes(b"head" + image)
    array = np.frombuffer(bytearray(image), np.uint8)
    reversed_twice = array[::-1].copy()[::-1]
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        opened.seek(4)
        sources = [array, reversed_twice, io.BytesIO(image), opened, memoryview(mapped)[4:]]
        for source in sources:
            module = rl.load(source)
            np.testing.assert_array_equal(module(ONES, ONES), ONES * 2)
        del source, sources
    array[:] = 0  # what was loaded is a copy
    np.testing.assert_array_equal(module(ONES, ONES), ONES * 2)
    weight = np.ones((2, 2), np.float32)
    layout = TensorLayout(ScalarType.FLOAT, [2, 2], [0, 1])
    data = write_ptd({"w": NamedTensor(weight.tobytes(), layout)})
    module = rl.load(io.BytesIO(with_external_weight()), data=np.frombuffer(data, np.uint8))
    np.testing.assert_array_equal(module(ONES), weight)


def test_open_files_that_give_no_program(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "add.pte"
    file.write_bytes(add(2, 2))
    written = io.BytesIO()
    written.write(add(2, 2))
    with pytest.raises(rl.LoadError, match=r"nothing left to read: seek\(0\) first"):
        rl.load(written)
    with (
        open(file, encoding="latin-1", newline="") as text,
        pytest.raises(rl.LoadError, match="open as text: open it with mode 'rb'"),
    ):
        rl.load(text)  # type: ignore[arg-type]
    with open(file, "rb") as closed:
        pass
    with pytest.raises(rl.LoadError, match=r"BufferedReader cannot be read: .*closed file"):
        rl.load(closed)
    with open(file, "wb") as write_only, pytest.raises(rl.LoadError, match="cannot be read"):
        rl.load(write_only)
    with pytest.raises(rl.LoadError, match="gives int, not bytes"):
        rl.load(SimpleNamespace(read=lambda: 3))  # type: ignore[arg-type]


def test_paths_that_are_no_file(tmp_path: pathlib.Path) -> None:
    pipe, closed = tmp_path / "pipe", tmp_path / "closed"
    os.mkfifo(pipe)
    closed.write_bytes(add(2, 2))
    for path, why in (
        (tmp_path, "it is a directory, not a file"),
        (pipe, "it is a named pipe, not a file"),
        ("/dev/null", "it is a device, not a file"),
        (closed / "x.pte", "no such file"),
        (tmp_path / ("x" * 300), "the file cannot be read: File name too long"),
    ):
        with pytest.raises(rl.LoadError, match=why) as caught:
            rl.load(path)
        assert caught.value.code == Code.ACCESS_FAILED
        assert str(caught.value).count(str(path)) == 1
        with pytest.raises(rl.LoadError, match=why):
            rl.load(with_external_weight(), data=path)
    with pytest.raises(rl.LoadError, match="no NUL character"):
        rl.load("a\0b.pte")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_unless_by_root(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "add.pte").write_bytes(add(2, 2))
    folder.chmod(0)
    try:
        with pytest.raises(rl.LoadError, match="the file cannot be read: Permission denied"):
            rl.load(folder / "add.pte")
    finally:
        folder.chmod(0o700)


def test_memory_limit() -> None:
    image = add(1000, 1000)
    with pytest.raises(rl.LoadError, match=r"takes 1\d{7} bytes .*Raise the limit") as caught:
        rl.load(image, memory_limit=1 << 20)
    assert caught.value.code == Code.OUT_OF_RESOURCES
    memory = rl.load(image, memory_limit=32 << 20).memory
    assert memory.arenas == {"forward": (12_000_000,)}
    assert 12_000_000 < memory.peak < 32 << 20
    assert memory.resident < 1 << 20  # nothing has run: no arena was touched
    assert memory.file == len(image)


def test_weights_of_a_data_file(tmp_path: pathlib.Path) -> None:
    image = with_external_weight()
    weight = np.arange(4, dtype=np.float32).reshape(2, 2)
    layout = TensorLayout(ScalarType.FLOAT, [2, 2], [0, 1])
    data = write_ptd({"w": NamedTensor(weight.tobytes(), layout)})
    file = tmp_path / "weights.ptd"
    file.write_bytes(data)
    for source in (data, file, str(file), bytearray(data)):
        module = rl.load(image, data=source)
        np.testing.assert_array_equal(module(ONES * 2), weight * 2)
        np.testing.assert_array_equal(module.clone()(ONES), weight)
    with pytest.raises(rl.LoadError, match="'w'"):
        rl.load(image)
    with pytest.raises(rl.LoadError) as caught:
        rl.load(image, data=b"nonsense" * 20)
    assert caught.value.code == Code.INVALID_EXTERNAL_DATA
    with pytest.raises(rl.LoadError, match="no such file"):
        rl.load(image, data=tmp_path / "other.ptd")


def missing_program(debug: bool) -> bytes:
    method = binary("aten::add.out", 2, 2)
    x, y, out = method.inputs[0], method.inputs[1], method.outputs[0]
    for name in ("acme::fold.out", "acme::spin", "acme::fold.out"):
        method.call(name, x, y, out)
    lines = [["n", "op", 0, 7 + i, "forward", f"line {i}", "m"] for i in range(4)]
    document = {"version": 1, "files": ["model.py"], "methods": {"forward": lines}}
    return program(method, debug=document if debug else None)


def test_all_missing_operators_are_listed_with_their_lines() -> None:
    with pytest.raises(rl.LoadError) as caught:
        rl.load(missing_program(debug=True))
    text = str(caught.value)
    assert caught.value.code == Code.OPERATOR_MISSING
    assert "2 operators missing" in text
    assert "acme::fold.out  at forward: instruction 1, model.py:8 in forward: `line 1`; " in text
    assert "acme::spin  at forward: instruction 2, model.py:9 in forward: `line 2`" in text
    assert "instruction 3, model.py:10" in text


def test_missing_operators_without_a_debug_map() -> None:
    with pytest.raises(rl.LoadError, match="acme::spin  at forward: instruction 2\n"):
        rl.load(missing_program(debug=False))


def test_missing_of_several_methods_in_one_error() -> None:
    methods = []
    for name in ("a", "b"):
        method = binary("aten::add.out", 2, 2)
        method.name = name
        method.call(f"acme::{name}", *method.inputs)
        methods.append(method)
    with pytest.raises(rl.LoadError, match=r"(?s)2 operators.*acme::a  at a:.*acme::b  at b:"):
        rl.load(program(*methods))


def test_wrong_arguments_of_an_instruction() -> None:
    method = MethodBuilder()
    x, number = method.tensor(2), method.value(fb.Int(1))
    method.call("aten::abs.out", x, number, number)
    method.inputs, method.outputs = [x], [x]
    with pytest.raises(rl.LoadError, match=r"aten::abs\.out") as caught:
        rl.load(program(method))
    assert caught.value.code == Code.INVALID_PROGRAM


GOOD = make_contract(
    [tensor_value(2, 2, name="x"), tensor_value(2, 2, name="y")], [tensor_value(2, 2)]
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": GOOD["inputs"][:1]}, "structures do not fit"),
        ({"in_spec": {"t": "leaf"}}, "structures do not fit"),
        ({"in_spec": {"t": "list", "c": [{"t": "leaf"}] * 2}}, "not .args, kwargs"),
        (
            {"outputs": [{"kind": "int"}]},
            "output 0 is int, in the program float32 tensor of rank 2",
        ),
        (
            {"inputs": [tensor_value(2, 2, dtype="int64")] * 2},
            "input 0 is int64 tensor of rank 2, in the program",
        ),
        ({"inputs": [tensor_value(2)] * 2}, "input 0 is float32 tensor of rank 1, in the program"),
        ({"inputs": [tensor_value({"min": 3, "max": 2}, 2)] * 2}, "not a range"),
        ({"inputs": [tensor_value(10**30, 2)] * 2}, "not a range"),
        ({"inputs": [{"kind": "what"}] * 2}, "kind 'what'"),
        ({"inputs": 3}, ""),
        ({"parameters": None}, ""),
    ],
)
def test_a_contract_that_contradicts_the_program(change: dict[str, object], message: str) -> None:
    image = program(binary("aten::add.out", 2, 2), contract={"forward": {**GOOD, **change}})
    with pytest.raises(rl.LoadError, match=f"contract in the program cannot be read .*{message}"):
        rl.load(image)


def test_a_contract_of_another_version() -> None:
    image = program(binary("aten::add.out", 2, 2), contract={"forward": GOOD})
    document = json.dumps({"version": 1}).encode()[:12]
    assert document in image
    with pytest.raises(rl.LoadError, match="version 2 is unknown"):
        rl.load(image.replace(b'{"version": 1', b'{"version": 2'))


def test_a_relation_that_is_not_understood_is_told() -> None:
    odd = {**GOOD, "relations": [{"expr": "sin(s0) == 1", "text": "odd"}]}
    image = program(binary("aten::add.out", 2, 2), contract={"forward": odd})
    with pytest.warns(RuntimeWarning, match="not checked before a call.*sin"):
        module = rl.load(image)
    np.testing.assert_array_equal(module(ONES, ONES), ONES * 2)


def test_a_broken_debug_map_only_costs_the_lines() -> None:
    image = missing_program(debug=True).replace(b'"files"', b'"fxles"')
    with pytest.raises(rl.LoadError, match="acme::spin  at forward: instruction 2\n"):
        rl.load(image)


def test_closing() -> None:
    with rl.load(add(2, 2)) as module:
        module(ONES, ONES)
        method = module["forward"]
    module.close()
    for use in (lambda: module(ONES, ONES), lambda: method(ONES, ONES), lambda: module.memory):
        with pytest.raises(rl.RunError, match="the module is closed") as caught:
            use()
        assert caught.value.code == Code.INVALID_STATE
    with pytest.raises(rl.RunError, match="the module is closed"):
        module.clone()
    assert "forward(input 0: float32[2, 2]" in repr(module)


def test_the_debris_of_a_failed_load(tmp_path: pathlib.Path) -> None:
    """Files stay closed, and the next load works."""
    file = tmp_path / "missing.pte"
    file.write_bytes(missing_program(debug=True))
    before = len(list(pathlib.Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(rl.LoadError):
            rl.load(file)
    assert len(list(pathlib.Path("/proc/self/fd").iterdir())) <= before
    assert str(file) not in pathlib.Path("/proc/self/maps").read_text()


def test_memory_follows_the_inputs() -> None:
    method = MethodBuilder()
    x, out = method.tensor(1 << 22, dynamic=True), method.tensor(1 << 22, dynamic=True)
    method.call("aten::exp.out", x, out, out)
    method.inputs, method.outputs = [x], [out]
    module = rl.load(program(method))
    resident = []
    for size in (100, 1 << 22, 100, 100):
        module(np.zeros(size, np.float32))
        resident.append(module.memory.resident)
    assert resident[1] >= 32 << 20 <= module.memory.peak
    assert max(resident[0], *resident[2:]) < 1 << 20
