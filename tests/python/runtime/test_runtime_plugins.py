"""Backends of libraries that are built apart, and packages that bring backends: wheels, entry
points, capsules."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from backend_doubles import BUILT_IN, Recorder, registered
from runtime_programs import delegated, program

import rushlight as rl
from rushlight import runtime
from rushlight.errors import Code
from rushlight.inspect import Inspector
from rushlight.inspect.explain import explain

if TYPE_CHECKING:
    from packages import Package

PLUGINS = Path(__file__).resolve().parents[2] / "cpp" / "delegate" / "plugins"
SRC = Path(__file__).resolve().parents[3] / "src"
ONES = np.ones(2, np.float32)
C = ("gcc", "-std=c99", "-O0")
CPP = ("g++", "-std=c++17", "-O0", "-fno-exceptions", "-fno-rtti", "-D_GLIBCXX_DEBUG")


def _build(folder: Path, source: str, name: str, *flags: str) -> Path:
    """A shared library, compiled with nothing of the runtime but the header of the package."""
    library = folder / name
    compiler = CPP if source.endswith(".cpp") else C
    include = f"-I{runtime.include_path()}"
    command = [*compiler, "-fPIC", "-shared", "-Wall", "-Werror", include, *flags]
    subprocess.run([*command, str(PLUGINS / source), "-o", str(library)], check=True)
    return library


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tmp_path_factory.mktemp("plugin"), "scale.c", "libscale.so")


def _scaled(id: str = "Scale", **more: Any) -> bytes:
    payload = b"SCL1" + struct.pack("f", 3)
    return program(delegated(id, 2), blobs=[payload], **more)


def test_a_library_in_c(scale: Path) -> None:
    assert runtime.register_backend_library(scale) == ["Scale"]
    assert rl.load(_scaled())(ONES).tolist() == [3, 3]
    module = rl.load(_scaled(), backend_options={"Scale": {"bias": 4}})
    assert module(ONES).tolist() == [7, 7]
    module = rl.load(_scaled(named_data={"bias": struct.pack("f", 0.5)}))
    assert module(ONES).tolist() == [3.5, 3.5]
    with pytest.raises(rl.LoadError, match=r"delegate 0 \(Scale\): bias is an integer"):
        rl.load(_scaled(), backend_options={"Scale": {"bias": "much"}})


def test_a_library_in_the_current_folder(scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scale.parent)
    assert runtime.register_backend_library(scale.name) == ["Scale"]
    with pytest.raises(rl.LoadError, match=r"^libc\.so\.6: the library cannot be loaded"):
        runtime.register_backend_library("libc.so.6")  # of the system, not of this folder


def test_errors_of_a_library_reach_the_user(scale: Path, tmp_path: Path) -> None:
    runtime.register_backend_library(scale)
    debug = {
        "version": 1,
        "files": ["model.py"],
        "methods": {},
        "delegates": {"forward": [{"mul": [["mul", "aten.mul.Tensor", 0, 9, "f", "x * 3", ""]]}]},
    }
    path, report = tmp_path / "m.pte", tmp_path / "report.bin"
    path.write_bytes(_scaled(debug=debug))
    module = rl.load(path, trace=True, failure_report=report)
    with pytest.raises(rl.RunError) as run:
        module(-ONES)
    told = explain(report, path)
    assert (told.operator, told.place, told.report.delegate) == ("Scale", "mul", 0)
    assert "an element is negative" in str(told) and [n.name for n in told.nodes] == ["mul"]
    assert str(run.value) == (
        "forward: instruction 0 (Scale), at mul inside, model.py:9 in f: `x * 3`: an element is "
        "negative"
    )
    assert run.value.code == Code.INVALID_ARGUMENT
    module(ONES)
    assert [e.inside for e in module.trace.events()] == ["", "mul", "7"]
    events = Inspector(etdump_data=module.trace.to_bytes()[0]).event_blocks[-1].events
    told = {e.delegate_debug_identifier: e.delegate_debug_metadatas for e in events}
    assert told["mul"] == [struct.pack("f", 3)] and told[7] == []
    with pytest.raises(rl.LoadError) as load:
        rl.load(program(delegated("Scale", 2), blobs=[b"SCL1\0"]))
    assert load.value.code == Code.DELEGATE_INVALID_COMPATIBILITY
    assert "(Scale), at 7 inside: the payload is not 'SCL1' and a factor. The" in str(load.value)


def test_values_of_a_library_in_c(scale: Path) -> None:
    runtime.register_backend_library(scale)

    def told(values: Any) -> dict[Any, Any]:
        module = rl.load(_scaled(), trace=runtime.TraceOptions(values=values))
        module(ONES)
        dump, buffer = module.trace.to_bytes()
        events = Inspector(etdump_data=dump, debug_buffer=buffer).event_blocks[-1].events
        return {
            e.delegate_debug_identifier: [value.tolist() for value in e.debug_data]
            for e in events
            if e.is_delegated_op
        }

    assert told("all") == {"mul": [[3, 3]], 7: [[3, 3]]}
    assert told("none") == told("outputs") == {"mul": [], 7: []}
    assert told(["0/7"]) == {"mul": [], 7: [[3, 3]]}
    assert told(["0/mul", "0/8"]) == {"mul": [[3, 3]], 7: []}


def test_events_of_a_load_belong_to_no_call(scale: Path) -> None:
    runtime.register_backend_library(scale)
    later = delegated("Scale", 2)
    later.name = "later"
    data = program(delegated("Scale", 2), later, blobs=[b"SCL1" + struct.pack("f", 3)])
    module = rl.load(data, methods=["forward"], trace=True)
    module(ONES)
    module._core.method("later")
    assert [e.inside for e in module.trace.events()] == ["", "mul", "7"]


def test_a_library_in_c_plus_plus_with_other_flags(tmp_path: Path) -> None:
    library = _build(tmp_path, "reverse.cpp", "libreverse.so")
    assert runtime.register_backend_library(library) == ["Reverse"]
    module = rl.load(program(delegated("Reverse", 3), blobs=[b""]))
    assert module(np.arange(3, dtype=np.float32)).tolist() == [2, 1, 0]
    module = rl.load(program(delegated("Reverse", 3, dtype="int32"), blobs=[b""]))
    with pytest.raises(rl.RunError, match=r"\(Reverse\): forward takes float32 of the output's"):
        module(np.arange(3, dtype=np.int32))


def test_a_library_that_writes_past_its_output(tmp_path: Path) -> None:
    library = _build(tmp_path, "scale.c", "liboverrun.so", "-DWRITES_PAST_ITS_OUTPUT")
    runtime.register_backend_library(library)
    method = delegated("Scale", 2)
    method.tensor(4)
    payload = b"SCL1" + struct.pack("f", 3)
    module = rl.load(program(method, blobs=[payload]), check_backends=True)
    with pytest.raises(rl.RunError, match="the backend wrote past the end of output 0"):
        module(ONES)


def test_libraries_that_are_refused(scale: Path, tmp_path: Path) -> None:
    runtime.register_backend_library(scale)
    with pytest.raises(rl.LoadError, match="Scale cannot be added: there is one of that id"):
        runtime.register_backend_library(scale)
    with pytest.raises(rl.LoadError, match="cannot be loaded"):
        runtime.register_backend_library(tmp_path / "none.so")
    other = _build(tmp_path, "none.c", "libnone.so")
    with pytest.raises(rl.LoadError, match="exports no rl_get_backend_v1"):
        runtime.register_backend_library(other)
    newer = _build(tmp_path, "scale.c", "libnewer.so", "-DSCALE_VERSION=2")
    with pytest.raises(rl.LoadError, match="of version 2 of the interface; this runtime knows"):
        runtime.register_backend_library(newer)
    nameless = _build(tmp_path, "scale.c", "libnameless.so", '-DSCALE_ID=""')
    with pytest.raises(rl.LoadError, match="its id must have 1 to 63 bytes"):
        runtime.register_backend_library(nameless)
    assert runtime.backend_registry.registered_backend_names == [*BUILT_IN, "Scale"]


def _capsule(library: Path, name: bytes = b"rl_backend_v1") -> Any:
    get = ctypes.CDLL(str(library)).rl_get_backend_v1
    get.restype = ctypes.c_void_p
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(get(0), name, None)


def test_a_capsule(scale: Path) -> None:
    assert runtime.register_backend_capsule(_capsule(scale)) == "Scale"
    assert rl.load(_scaled())(ONES).tolist() == [3, 3]
    with pytest.raises(rl.LoadError, match="a backend 'Scale' already"):
        runtime.register_backend_capsule(_capsule(scale))
    other = b"rl_backend_v2"  # kept alive: a capsule does not own its name
    with pytest.raises(rl.LoadError, match="a capsule named 'rl_backend_v1' is expected"):
        runtime.register_backend_capsule(_capsule(scale, other))


# --- packages -------------------------------------------------------------------------------------

ADDER = """
class Adder:
    def init(self, context):
        return None
    def execute(self, context, handle, args):
        args[1][...] = args[0] + 1
"""


NOWHERE = """
    def is_available(self):
        return False
"""


@pytest.mark.parametrize(
    "end",
    [
        "found = Adder",
        "found = Adder()",
        "def found(): return Adder",
        "found = lambda: Adder()",
    ],
)
def test_backends_of_packages_are_found(package: Package, end: str) -> None:
    package.offer("Adder", ADDER + end)
    assert "Adder" in runtime.backend_registry.installed_backend_names
    assert "Adder" not in runtime.backend_registry.registered_backend_names
    assert rl.load(program(delegated("Adder", 2), blobs=[b""]))(ONES).tolist() == [2, 2]
    assert "Adder" in runtime.backend_registry.registered_backend_names
    stepper = runtime.Stepper(program(delegated("Adder", 2), blobs=[b""]), "forward", [ONES])
    assert list(stepper) == [0]


def test_an_installed_backend_is_available_before_a_program_names_it(package: Package) -> None:
    package.offer("Adder", ADDER, "Adder")
    package.offer("Broken", "import a_module_that_is_not_there")
    package.offer("Elsewhere", ADDER + NOWHERE, "Adder")
    registry = runtime.backend_registry
    assert registry.is_available("Adder") and "Adder" in registry.registered_backend_names
    assert not registry.is_available("Broken")
    assert not registry.is_available("Elsewhere")
    assert not registry.is_available("Nobody")


def test_libraries_and_capsules_of_packages(package: Package, scale: Path) -> None:
    package.offer("Scale", f"import pathlib\nfound = pathlib.Path({str(scale)!r})")
    loaded = runtime.Runtime.get().load_program(_scaled()).load_method("forward")
    assert loaded.execute([ONES])[0].tolist() == [3, 3]
    runtime.unregister_backend("Scale")
    assert rl.load(_scaled())(ONES).tolist() == [3, 3]


def test_what_is_registered_comes_before_what_is_installed(package: Package) -> None:
    package.offer("Adder", "raise RuntimeError('never imported')")
    with registered("Adder", Recorder()):
        assert rl.load(program(delegated("Adder", 2), blobs=[b""]))(ONES).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import a_module_that_is_not_there", "which fails: ModuleNotFoundError: No module named"),
        ("found = 3", "which fails: TypeError: its entry point gives int, not a backend"),
        ("found = lambda: found", "which fails: TypeError: its entry point gives function"),
        ("found = '/no/such/library.so'", "which fails: LoadError: /no/such/library.so: the libr"),
        ("class found: pass", "which fails: TypeError: found is not a backend: it has no init and"),
    ],
)
def test_packages_that_fail(package: Package, code: str, message: str) -> None:
    name = package.offer("Broken", code)
    with pytest.raises(rl.LoadError) as caught:
        rl.load(program(delegated("Broken", 2), blobs=[b""]))
    assert f"Broken: offered by {name}, {message}" in str(caught.value)


def test_a_library_with_another_backend(package: Package, scale: Path) -> None:
    package.offer("Other", f"found = {str(scale)!r}")
    with pytest.raises(rl.LoadError, match="which does not have it: its entry point has another"):
        rl.load(_scaled("Other"))


def test_two_packages_with_one_backend(package: Package) -> None:
    names = sorted(package.offer("Adder", ADDER, "Adder") for _ in range(2))
    with pytest.raises(rl.LoadError, match=f"several packages: {names[0]}, {names[1]}. Uninstall"):
        rl.load(program(delegated("Adder", 2), blobs=[b""]))


def test_a_wheel_that_was_built_apart(tmp_path: Path) -> None:
    """Installed by pip; the program that uses it names nothing but the file."""
    library = _build(tmp_path, "scale.c", "libscale.so", "-g", "-fno-omit-frame-pointer")
    entry = b"[rushlight.runtime_backends]\nScale = scale_backend:library\n"
    init = "import pathlib\nlibrary = pathlib.Path(__file__).with_name('libscale.so')\n"
    info = "scale_backend-1.0.dist-info"
    files = {
        "scale_backend/__init__.py": init.encode(),
        "scale_backend/libscale.so": library.read_bytes(),
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: scale-backend\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: false\n"
        b"Tag: py3-none-any\n",
        f"{info}/entry_points.txt": entry,
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]).encode()
    wheel = tmp_path / "scale_backend-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    target = ["--no-index", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run([*pip, *target], check=True)
    shutil.copy(_written(tmp_path), site)
    code = (
        "import numpy, rushlight as rl\n"
        "print(rl.load('scaled.pte')(numpy.ones(2, numpy.float32)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=site,
        env={**os.environ, "PYTHONPATH": f"{site}:{SRC}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[3.0, 3.0]\n", done.stderr


def _written(folder: Path) -> Path:
    path = folder / "scaled.pte"
    path.write_bytes(_scaled())
    return path
