"""Kernels that the caller gives: functions of ctypes, structs of a library, and libraries."""

from __future__ import annotations

import ctypes
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_kernels import SCHEMA, make, write_program
from c_library import PATH, CError, Library

import rushlight as rl
from rushlight.errors import Code

TWICE = PATH.parent / "tests" / "cpp" / "libplugin_twice.so"
X = np.arange(6, dtype=np.float32).reshape(2, 3)
_KEPT: list[Any] = []  # kernels must live as long as the process


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    return write_program(tmp_path / "twice.pte")


def _given(library: Library, *kernels: Any) -> dict[str, Any]:
    """The options with these structs, which the array keeps."""
    pointers = [ctypes.pointer(kernel) for kernel in kernels]
    array = (ctypes.POINTER(library.types["rl_kernel_v1"]) * len(kernels))(*pointers)
    return {"kernels": array, "n_kernels": len(kernels)}


def _libraries(*paths: Path | str) -> dict[str, Any]:
    array = (ctypes.c_char_p * len(paths))(*(str(path).encode() for path in paths))
    kind = ctypes.POINTER(ctypes.c_char_p)
    return {"kernel_libraries": ctypes.cast(array, kind), "n_kernel_libraries": len(paths)}


def _kernel(library: Library, run: Any, signature: bytes = b"tw=") -> Any:
    """A kernel whose function is Python's: `run(call)` returns a code."""
    kind = dict(library.types["rl_kernel_v1"]._fields_)["run"]
    function = kind(lambda _, call: run(call.contents))
    kernel = library.make("rl_kernel_v1", version=1, run=function)
    kernel.name, kernel.signature = b"acme::twice.out", signature
    _KEPT.append((kernel, function))
    return kernel


def _double(library: Library, call: Any) -> int:
    host = call.host.contents
    x, y = library.make("rl_value_v1"), library.make("rl_value_v1")
    assert host.value(call.context, 0, ctypes.byref(x)) == 0
    assert host.resize(call.context, 1, 0, x.sizes, x.rank) == 0
    assert host.value(call.context, 1, ctypes.byref(y)) == 0
    numbers = np.frombuffer(ctypes.string_at(x.data, x.nbytes), np.float32) * 2
    ctypes.memmove(y.data, numbers.tobytes(), y.nbytes)
    return 0


def test_a_function_of_the_caller(library: Library, twice: Path) -> None:
    kernel = _kernel(library, lambda call: _double(library, call))
    module = library.open(twice, **_given(library, kernel))
    np.testing.assert_array_equal(module.run(X)[0], X * 2)
    copy = module.copy("fork")
    module.close()
    np.testing.assert_array_equal(copy.run(X + 1)[0], (X + 1) * 2)
    copy.close()


def test_what_a_function_fails_with(library: Library, twice: Path) -> None:
    def fails(call: Any) -> int:
        call.host.contents.explain(call.context, library.text("no luck"))
        return int(Code.OUT_OF_RESOURCES)

    module = library.open(twice, **_given(library, _kernel(library, fails)))
    with pytest.raises(CError, match=r"\(acme::twice.out\): no luck") as failure:
        module.run(X)
    assert (failure.value.code, failure.value.instruction) == (Code.OUT_OF_RESOURCES, 0)
    module.close()


def test_a_library_of_kernels(library: Library, twice: Path, tmp_path: Path) -> None:
    module = library.open(twice, **_libraries(TWICE))
    np.testing.assert_array_equal(module.run(X)[0], X * 2)
    module.close()
    scale = TWICE.parent / "libplugin_scale.so"
    for path, message, code in (
        (tmp_path / "none.so", "none.so: the library cannot be loaded", Code.ACCESS_FAILED),
        (scale, "exports no rl_get_kernel_v1: it is not a library of kernels", Code.NOT_FOUND),
    ):
        with pytest.raises(CError, match=message) as failure:
            library.open(twice, **_libraries(path))
        assert failure.value.code == code


def test_structs_of_a_library(library: Library, twice: Path) -> None:
    get = ctypes.CDLL(str(TWICE)).rl_get_kernel_v1
    get.restype = ctypes.POINTER(library.types["rl_kernel_v1"])
    both = get(0).contents, get(1).contents
    module = library.open(twice, **_given(library, *both))
    np.testing.assert_array_equal(module.run(X)[0], X * 2)
    module.close()
    module = library.open(twice, **_given(library, both[0]))  # the one without a key
    with pytest.raises(CError, match="x must be a float32 matrix by rows"):
        module.run(X)
    module.close()


def test_kernels_that_cannot_be_used(library: Library, twice: Path, tmp_path: Path) -> None:
    one, another = (_kernel(library, lambda call: 0) for _ in range(2))
    library.open(twice, **_libraries(TWICE, TWICE)).close()  # the same one
    for options in (
        _given(library, one, another),
        {**_given(library, one), **_libraries(TWICE)},
    ):
        with pytest.raises(CError, match=r"acme::twice.out cannot be added: there is") as failure:
            library.open(twice, **options)
        assert failure.value.code == Code.REGISTRATION_ALREADY_REGISTERED
    other = write_program(tmp_path / "other.pte", SCHEMA.replace(b"x,", b"x, int n,"))
    module = library.open(other, **_given(library, one))
    with pytest.raises(CError, match=r"argument 1 \(n\) is int in the program's schema"):
        module.run(X)
    module.close()
    with pytest.raises(CError, match=r"the signature of acme::twice.out"):
        library.open(twice, **_given(library, _kernel(library, lambda call: 0, b"t=")))
    module = library.open(twice)
    with pytest.raises(CError, match=r"no kernel for acme::twice.out") as failure:
        module.run(X)
    assert failure.value.code == Code.OPERATOR_MISSING
    module.close()


def test_two_threads(library: Library, twice: Path) -> None:
    module = library.open(twice, threads=1, **_libraries(TWICE))
    modules = [module, module.copy("clone")]
    results: list[Any] = [None, None]

    def work(i: int) -> None:
        x = X + i
        results[i] = all(np.array_equal(modules[i].run(x)[0], x * 2) for _ in range(50))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True, True]
    for one in modules:
        one.close()


def test_libraries_that_are_refused_or_fail(library: Library, tmp_path: Path) -> None:
    """The cases that the bindings have, too; in C, and in Python's own runtime."""
    make(tmp_path, TWICE)
    path = tmp_path / "twice.pte"
    cases = [line.split("\t") for line in (tmp_path / "bad_kernels.tsv").read_text().splitlines()]
    assert len(cases) >= 7
    for part, listed in cases:
        libraries = [one for one in listed.split(";") if one]
        with pytest.raises(CError, match=re.escape(part)):
            library.open(path, **_libraries(*libraries)).run(X)
        # Python names the line of the operator and what to write.
        told = part if libraries else "write RUSHLIGHT_KERNEL(acme, twice_out)"
        with pytest.raises(rl.Error, match=re.escape(told)):
            rl.load(path, kernels=libraries)(X)
    np.testing.assert_array_equal(library.open(path, **_libraries(TWICE)).run(X)[0], X * 2)
    np.testing.assert_array_equal(rl.load(path, kernels=[TWICE])(X), X * 2)
