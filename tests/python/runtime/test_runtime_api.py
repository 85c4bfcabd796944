"""`rushlight.runtime.Runtime`, as ExecuTorch's users know it."""

from __future__ import annotations

import io
import pathlib
from pathlib import Path

import numpy as np
import pytest
from runtime_programs import MethodBuilder, add, binary, program

import rushlight as rl
from rushlight.errors import Code
from rushlight.runtime import Runtime, Verification
from rushlight.schema import program as fb

ONES = np.ones((2, 2), np.float32)


def test_one_runtime() -> None:
    assert Runtime.get() is Runtime.get()


def test_registries() -> None:
    runtime = Runtime.get()
    names = runtime.operator_registry.operator_names
    assert isinstance(names, set) and "aten::add.out" in names
    assert "BackendWithCompilerDemo" in runtime.backend_registry.registered_backend_names
    assert not runtime.backend_registry.is_available("QnnBackend")


def test_execute(tmp_path: pathlib.Path) -> None:
    image = add(2, 2)
    path = tmp_path / "add.pte"
    path.write_bytes(image)
    for source in (path, str(path), image, bytearray(image), io.BytesIO(image)):
        loaded = Runtime.get().load_program(source, verification=Verification.Minimal)
        assert loaded.method_names == {"forward"}
        (result,) = loaded.load_method("forward").execute([ONES, ONES])
        np.testing.assert_array_equal(result, ONES * 2)


def test_metadata() -> None:
    method = binary("aten::add.out", 2, 2)
    method.inputs.append(method.value(fb.Int(3)))
    loaded = Runtime.get().load_program(program(method))
    metadata = loaded.metadata("forward")
    assert (metadata.name(), metadata.num_inputs(), metadata.num_outputs()) == ("forward", 3, 1)
    x = metadata.input_tensor_meta(0)
    assert (x.sizes(), x.dtype(), x.nbytes(), x.is_memory_planned()) == (
        (2, 2),
        6,
        16,
        True,
    )
    assert metadata.output_tensor_meta(0).sizes() == (2, 2)
    # As real ExecuTorch writes it, but for the kind of an input that is no tensor.
    tensor = "TensorInfo(sizes=[2, 2], dtype=Float, is_memory_planned=True, nbytes=16)"
    assert repr(metadata) == (
        f"MethodMeta(name='forward', num_inputs=3, input_tensor_meta=['{tensor}', '{tensor}', "
        f"'int'], num_outputs=1, output_tensor_meta=['{tensor}'])"
    )
    with pytest.raises(IndexError, match="input 2 is not a tensor but of kind int"):
        metadata.input_tensor_meta(2)
    for outside in (3, -1):
        with pytest.raises(IndexError, match=f"there is no input {outside}"):
            metadata.input_tensor_meta(outside)
    assert repr(loaded.load_method("forward").metadata) == repr(metadata)


def test_an_unknown_method() -> None:
    loaded = Runtime.get().load_program(add(2, 2))
    with pytest.raises(KeyError):
        loaded.load_method("backward")
    with pytest.raises(KeyError):
        loaded.metadata("backward")


def test_methods_are_loaded_one_by_one() -> None:
    broken = binary("aten::add.out", 2, 2)
    broken.name = "broken"
    broken.call("acme::spin", *broken.inputs)
    loaded = Runtime.get().load_program(program(binary("aten::add.out", 2, 2), broken))
    loaded.load_method("forward").execute([ONES, ONES])
    with pytest.raises(rl.LoadError, match="acme::spin  at broken: instruction 1") as caught:
        loaded.load_method("broken")
    assert caught.value.code == Code.OPERATOR_MISSING
    loaded.load_method("forward").execute([ONES, ONES])


def test_methods_share_state() -> None:
    """Memory id 2 is planned alike by both methods, so it is one memory."""
    methods = []
    for name in ("first", "second"):
        method = MethodBuilder(name)
        x, out = method.tensor(2), method.tensor(2)
        state = method.tensor(2, memory_id=2)
        method.binary("aten::add.out", state, x, state)
        method.call("aten::abs.out", state, out, out)
        method.inputs, method.outputs = [x], [out]
        methods.append(method)
    loaded = Runtime.get().load_program(program(*methods))
    first, second = loaded.load_method("first"), loaded.load_method("second")
    x = np.ones(2, np.float32)
    assert [float(m.execute([x])[0][0]) for m in (first, second, first)] == [1, 2, 3]


def test_refused() -> None:
    method = Runtime.get().load_program(add(2, 2)).load_method("forward")
    with pytest.raises(rl.RunError, match="got 1 inputs, the method takes 2"):
        method.execute([ONES])
    with pytest.raises(rl.RunError, match="input 1: dtype is float64"):
        method.execute([ONES, ONES.astype(np.float64)])
    with pytest.raises(rl.LoadError, match=r"not a \.pte program"):
        Runtime.get().load_program(b"no")
    with pytest.raises(TypeError, match="Verification"):
        Runtime.get().load_program(add(2, 2), verification="full")  # type: ignore[arg-type]


def test_traces(tmp_path: Path) -> None:
    program = Runtime.get().load_program(add(2, 2), enable_etdump=True, debug_buffer_size=1 << 16)
    assert program.is_traced
    program.load_method("forward").execute([ONES, ONES])
    program.write_etdump_result_to_file(tmp_path / "a.etdp", tmp_path / "a.bin")
    assert (tmp_path / "a.etdp").read_bytes()[8:12] == b"ED00"
    assert np.full(4, 2, np.float32).tobytes() in (tmp_path / "a.bin").read_bytes()
    untraced = Runtime.get().load_program(add(2, 2))
    assert not untraced.is_traced
    with pytest.raises(rl.RunError):
        untraced.write_etdump_result_to_file(tmp_path / "b.etdp")
