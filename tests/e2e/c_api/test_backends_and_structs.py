"""Backends that the caller gives, programs in memory, and structs of other versions."""

from __future__ import annotations

import ctypes
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from c_library import PATH, CError, CModule, Library

import rushlight as rl
from rushlight.errors import Code

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))
from runtime_programs import delegated, program

SCALE = PATH.parent / "tests" / "cpp" / "libplugin_scale.so"
ONES = np.ones(2, np.float32)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


@pytest.fixture
def scaled(tmp_path: Path) -> Path:
    """A program with a delegate of the backend Scale, which multiplies by 3."""
    path = tmp_path / "scaled.pte"
    path.write_bytes(program(delegated("Scale", 2), blobs=[b"SCL1" + struct.pack("f", 3)]))
    return path


def _tables(library: Library, count: int) -> Any:
    """The backend of the library that was built apart, `count` times."""
    table = library.types["rl_backend_v1"]
    get = ctypes.CDLL(str(SCALE)).rl_get_backend_v1
    get.restype = ctypes.POINTER(table)
    return (ctypes.POINTER(table) * count)(*[get(0)] * count)


def test_backend_as_a_table(library: Library, scaled: Path) -> None:
    module = library.open(scaled, backends=_tables(library, 1), n_backends=1)
    assert module.run(ONES)[0].tolist() == [3, 3]
    copy = module.copy("clone")
    module.close()
    assert copy.run(ONES)[0].tolist() == [3, 3]
    with pytest.raises(CError, match="an element is negative") as failure:
        copy.run(-ONES)
    assert (failure.value.instruction, failure.value.delegate) == (0, 0)
    copy.close()


def test_backend_of_a_library(library: Library, scaled: Path, tmp_path: Path) -> None:
    paths = (ctypes.c_char_p * 1)(str(SCALE).encode())
    kind = ctypes.POINTER(ctypes.c_char_p)
    options = {"backend_libraries": ctypes.cast(paths, kind), "n_backend_libraries": 1}
    module = library.open(scaled, **options)
    assert module.run(ONES)[0].tolist() == [3, 3]
    module.close()
    missing = (ctypes.c_char_p * 1)(str(tmp_path / "none.so").encode())
    with pytest.raises(CError, match="cannot be loaded"):
        library.open(scaled, **{**options, "backend_libraries": ctypes.cast(missing, kind)})


def test_backends_that_cannot_be_used(library: Library, scaled: Path) -> None:
    with pytest.raises(CError, match="there is one of that id"):
        library.open(scaled, backends=_tables(library, 2), n_backends=2)
    module = library.open(scaled)
    with pytest.raises(CError, match="Scale") as failure:
        module.run(ONES)
    assert failure.value.code == Code.NOT_FOUND
    module.close()


def test_program_in_memory_with_a_data_file(library: Library, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = torch.nn.Linear(6, 5).eval()
    x = torch.randn(2, 6)
    made = rl.export(net, (x,))
    path = tmp_path / "net.pte"
    made.save(path)
    data = path.read_bytes()
    kept = ctypes.create_string_buffer(data, len(data))
    handle = library.handle("rl_module_open_memory", kept, len(data), None)
    module = CModule(library, handle)
    np.testing.assert_array_equal(module.run(x.numpy())[0], rl.load(path)(x.numpy()))
    module.call("unload", b"forward")
    info = library.make("rl_method_info")
    module.call("describe_method", b"forward", ctypes.byref(info))
    assert info.is_loaded == 0
    assert module.run(x.numpy())[0].shape == (2, 5)
    module.close()
    with pytest.raises(CError, match="no such file"):
        library.open(path, data_path=str(tmp_path / "none.ptd").encode())


def test_changed_file_is_refused(library: Library, scaled: Path) -> None:
    module = library.open(scaled, backends=_tables(library, 1), n_backends=1, guards_file=1)
    assert module.run(ONES)[0].tolist() == [3, 3]
    scaled.write_bytes(scaled.read_bytes() + b"\0")
    with pytest.raises(CError, match="was changed") as failure:
        module.run(ONES)
    assert failure.value.code == Code.ACCESS_FAILED
    module.close()


def test_structs_of_earlier_and_later_callers(library: Library, scaled: Path) -> None:
    known = ctypes.sizeof(library.types["rl_module_options"])
    options = (ctypes.c_uint8 * (known + 16))()
    path = str(scaled).encode()
    ctypes.memmove(options, struct.pack("I", known + 16), 4)
    library.call("rl_module_close", library.handle("rl_module_open", path, _cast(library, options)))
    options[known + 8] = 1
    with pytest.raises(CError, match=f"a field at byte {known + 8}") as failure:
        library.handle("rl_module_open", path, _cast(library, options))
    assert failure.value.code == Code.NOT_SUPPORTED
    ctypes.memmove(options, struct.pack("II", 16, 1), 8)  # the first two fields and a limit
    handle = library.handle("rl_module_open", path, _cast(library, options))
    info = library.make("rl_module_info")
    info.size, info.memory_in_use = 16, 77  # written up to `reserved`
    library.call("rl_module_describe", handle, ctypes.byref(info))
    assert (info.n_methods, info.threads, info.memory_in_use) == (1, 1, 77)
    info.size = 0
    with pytest.raises(CError, match="its size is not set"):
        library.call("rl_module_describe", handle, ctypes.byref(info))
    short = library.make("rl_error")
    short.size = 24
    assert library.dll.rl_module_load(handle, b"none", ctypes.byref(short)) != 0
    assert 0 < len(short.text) <= 7 and bytes(short)[24:] == bytes(len(bytes(short)) - 24)
    library.call("rl_module_close", handle)


def _cast(library: Library, options: Any) -> Any:
    return ctypes.cast(options, ctypes.POINTER(library.types["rl_module_options"]))
