"""Projects of others build with Rushlight, in every way that docs/cpp.md names, and run programs.

Nine consumers come by it from a wheel, from an install prefix and from its sources, with two
compilers and their options. Some also make a shared library with a Rushlight of its own; all of
these are then loaded into one process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import rushlight as rl
from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
SOURCES = Path(__file__).resolve().parent / "consumers"
GOLDEN = ROOT / "tests" / "golden"
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
NINJA = shutil.which("ninja") or str(Path(sys.executable).parent / "ninja")

pytestmark = pytest.mark.full


@dataclass(frozen=True)
class Consumer:
    """A project: how it comes by Rushlight, what it links, and how it is compiled.

    Attributes:
        way: wheel and prefix (by CMake), sources (of the wheel), add_subdirectory, FetchContent.
        source: the file of its program.
        library: the target that it links.
        compiler: gcc or clang.
        options: of CMake.
        copy: the factor of its shared library (copy.cpp); 0 if it makes none.
    """

    way: str
    source: Path
    library: str
    compiler: str
    options: tuple[str, ...] = ()
    copy: int = 0


CPP, LLM = ROOT / "examples" / "cpp_consumer" / "main.cpp", ROOT / "examples" / "llm" / "main.cpp"
# What the wheel may weigh: it was 14.3 MB when the half for C and C++ came into it, 9.5 of them.
WHEEL_BYTES = 16_000_000
LTO = "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON"
SMALL = ("-DRUSHLIGHT_BUILD_KERNELS=OFF", "-DRUSHLIGHT_THREADS=OFF", "-DRUSHLIGHT_BUILD_C=OFF")
STRICT = "-DFLAGS=-fno-exceptions;-fno-rtti;-fvisibility=hidden"
CONSUMERS = {
    "wheel-gcc-17": Consumer("wheel", CPP, "rushlight", "gcc", ("-DCMAKE_CXX_STANDARD=17",), 2),
    "wheel-gcc-c": Consumer("wheel", SOURCES / "c_interface.c", "c", "gcc"),
    "wheel_sources-gcc-20": Consumer(
        *("sources", SOURCES / "own_kernels.cpp", "module", "gcc"),
        ("-DCMAKE_CXX_STANDARD=20", "-DRUSHLIGHT_FROM_SOURCES=ON", *SMALL),
        copy=5,
    ),
    "prefix-clang-20-strict": Consumer(
        "prefix", CPP, "rushlight", "clang", ("-DCMAKE_CXX_STANDARD=20", STRICT), 3
    ),
    "prefix-gcc-23-llm": Consumer("prefix", LLM, "llm", "gcc", ("-DCMAKE_CXX_STANDARD=23",)),
    "add_subdirectory-gcc-23-lto": Consumer(
        *("add_subdirectory", SOURCES / "own_kernels.cpp", "module", "gcc"),
        ("-DCMAKE_CXX_STANDARD=23", LTO, "-DRUSHLIGHT_BUILD_KERNELS=OFF"),
        copy=7,
    ),
    "FetchContent-clang-17": Consumer(
        *("FetchContent", SOURCES / "own_kernels.cpp", "module", "clang"),
        ("-DCMAKE_CXX_STANDARD=17", *SMALL),
        copy=11,
    ),
}


def _run(*command: str | Path, folder: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def _compiler(name: str, language: str = "CXX") -> str:
    """The compiler's path; skips the test where it is not installed."""
    command = {"gcc": {"CXX": "g++", "C": "gcc"}, "clang": {"CXX": "clang++", "C": "clang"}}
    path = shutil.which(command[name][language])
    if path is None:
        pytest.skip(f"{command[name][language]} is not installed; on Debian: apt install {name}")
    return path


@pytest.fixture(scope="session")
def wheel(shared_files: SharedFiles) -> Path:
    """The project's wheel, and in ``site`` what it installs."""

    def fill(folder: Path) -> None:
        pip = (sys.executable, "-m", "pip", "--quiet")
        _run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
        [made] = folder.glob("*.whl")
        _run(*pip, "install", "--no-deps", "--no-index", "--target", folder / "site", made)

    return shared_files.folder("wheel", fill)


@pytest.fixture(scope="session")
def prefix(shared_files: SharedFiles) -> Path:
    """An install prefix, moved after it was filled."""
    build = ROOT / "build" / "dev"
    assert (build / "CMakeCache.txt").exists(), "run `make ext` first"

    def fill(folder: Path) -> None:
        _run(CMAKE, "--install", build, "--prefix", folder)

    return shared_files.folder("prefix", fill)


def _cmake_dir(wheel: Path) -> str:
    """What `rushlight.cmake_dir()` says where the wheel alone is installed."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import rushlight; "
    printed = f"{code}print(rushlight.cmake_dir())"
    return _run(sys.executable, "-I", "-S", "-c", printed, wheel / "site").strip()


@pytest.fixture(scope="session")
def built(
    request: pytest.FixtureRequest, shared_files: SharedFiles
) -> Callable[[str], tuple[Consumer, Path]]:
    """A consumer by its name, and the folder that it is built in."""

    def build(name: str) -> tuple[Consumer, Path]:
        c = CONSUMERS[name]
        language = "C" if c.source.suffix == ".c" else "CXX"
        options = [f"-DCMAKE_{language}_COMPILER={_compiler(c.compiler, language)}", *c.options]
        way = c.way if c.way in ("add_subdirectory", "FetchContent") else "find_package"
        if c.way == "prefix":
            options.append(f"-DCMAKE_PREFIX_PATH={request.getfixturevalue('prefix')}")
        elif way == "find_package":
            options.append(f"-Drushlight_DIR={_cmake_dir(request.getfixturevalue('wheel'))}")

        def fill(folder: Path) -> None:
            _run(
                *(CMAKE, "-S", SOURCES, "-B", folder, "-G", "Ninja"),
                *(f"-DCMAKE_MAKE_PROGRAM={NINJA}", "-DCMAKE_BUILD_TYPE=Release"),
                *(f"-DWAY={way}", f"-DRUSHLIGHT_SOURCE={ROOT}", f"-DSOURCE={c.source}"),
                *(f"-DLIBRARY={c.library}", f"-DCOPY={c.copy}", *options),
            )
            _run(CMAKE, "--build", folder, "-j", str(os.cpu_count()))

        return c, shared_files.folder(f"consumer-{name}", fill)

    return build


@dataclass(frozen=True)
class Files:
    """A linear layer as programs, and what eager computes."""

    folder: Path
    numbers: tuple[str, ...]
    expected: list[float]

    def check(self, program: Path, backend: str, **environment: str) -> None:
        """The program prints eager's result."""
        file = self.folder / f"{backend}.pte"
        printed = _run(program, file, *self.numbers, **environment).split()
        assert [float(n) for n in printed] == pytest.approx(self.expected, abs=1e-5)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The programs that the consumers run."""
    model, folder = torch.nn.Linear(3, 2).eval(), tmp_path_factory.mktemp("programs")
    for backend in ("portable", "cpu"):
        program = rl.export(model, (torch.ones(1, 3),), backend=backend)
        program.save(folder / f"{backend}.pte", quiet=True)
    return Files(folder, ("1", "2", "-0.5"), model(torch.tensor([1, 2, -0.5])).tolist())


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_project_builds_with_cmake_and_runs(
    name: str, built: Callable[[str], tuple[Consumer, Path]], files: Files, tmp_path: Path
) -> None:
    consumer, folder = built(name)
    program = folder / "consumer"
    if consumer.source.name == "own_kernels.cpp":
        total = str(1 + consumer.copy)
        assert _run(program, GOLDEN / "add.pte").split() == [total, total]
    elif consumer.library == "llm":
        file, prompt = GOLDEN / "llm" / "v1.pte", "A lamp in the window"
        known = rl.llm.load(file).generate(prompt, max_tokens=100, echo=True).text
        assert _run(program, file, prompt) == f"{known}\n"
    else:
        files.check(program, "portable")
        if consumer.library != "module":
            files.check(program, "cpu")
    damaged = tmp_path / "damaged.pte"
    damaged.write_bytes((GOLDEN / "add.pte").read_bytes()[:100])
    refused = subprocess.run([program, damaged, "1"], capture_output=True, check=False)
    assert refused.returncode > 0


@pytest.mark.parametrize(
    ("module", "source", "flags"),
    [
        ("rushlight-c", SOURCES / "c_interface.c", ("-std=c11",)),
        ("rushlight", CPP, ("-std=c++23", "-O2", "-flto")),
    ],
    ids=["prefix-gcc-c", "wheel-gcc-23-lto"],
)
def test_a_command_line_with_pkg_config(
    module: str,
    source: Path,
    flags: tuple[str, ...],
    request: pytest.FixtureRequest,
    files: Files,
    tmp_path: Path,
) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed; on Debian: apt install pkg-config")
    if module == "rushlight-c":
        lib, language = request.getfixturevalue("prefix") / "lib", "C"
    else:
        lib, language = Path(_cmake_dir(request.getfixturevalue("wheel"))).parents[1], "CXX"
    asked = ("pkg-config", "--cflags", "--libs", module)
    told = _run(*asked, PKG_CONFIG_PATH=str(lib / "pkgconfig")).split()
    strict = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags)
    _run(_compiler("gcc", language), *strict, source, "-o", tmp_path / "program", *told)
    files.check(tmp_path / "program", "cpu", LD_LIBRARY_PATH=str(lib))


COPIES = [name for name, consumer in CONSUMERS.items() if consumer.copy]


@pytest.mark.parametrize("name", COPIES)
def test_a_shared_library_exports_nothing_of_its_rushlight(
    name: str, built: Callable[[str], tuple[Consumer, Path]]
) -> None:
    _, folder = built(name)
    [library] = folder.glob("libcopy.*")
    exported = _run("nm", "-D", "-C", "--defined-only", library).splitlines()
    assert {"copy_run", "copy_backends"} <= {line.split()[-1] for line in exported}
    # Tables of abstract classes may be seen: they refer to no state.
    seen = [line for line in exported if "rushlight" in line]
    assert not [s for s in seen if not re.search(r" \w (vtable|typeinfo|typeinfo name) for ", s)]


def test_copies_in_one_process_do_not_meet(
    built: Callable[[str], tuple[Consumer, Path]], tmp_path: Path
) -> None:
    """Each has other options, and a kernel of its own for one operator."""
    made = [built(name) for name in COPIES]
    program = tmp_path / "copies"
    _run(_compiler("gcc", "C"), SOURCES / "copies.c", "-o", program, "-pthread", "-ldl")
    libraries = [folder / "libcopy.so" for _, folder in made]
    for order in (libraries, libraries[::-1]):
        printed = [line.split() for line in _run(program, GOLDEN / "add.pte", *order).splitlines()]
        by_library = dict(zip(order, printed, strict=True))
        sums = [by_library[library][0] for library in libraries]
        assert sums == [str(1 + consumer.copy) for consumer, _ in made]
        tables = [table for _, table in printed if table != "(nil)"]
        assert len(tables) == len(set(tables)) >= 2


@pytest.mark.parametrize(
    ("options", "lines", "told"),
    [
        ("", "find_package(rushlight REQUIRED COMPONENTS teapot)", "no target rushlight::teapot"),
        ("", "find_package(rushlight 9.0 REQUIRED)", "9.0"),
        (
            "set(CMAKE_SYSTEM_PROCESSOR riscv64)",
            "find_package(rushlight REQUIRED)",
            "These libraries are for Linux on .* Set RUSHLIGHT_FROM_SOURCES=ON",
        ),
    ],
    ids=["component", "version", "processor"],
)
def test_a_package_that_does_not_fit_is_refused(
    options: str, lines: str, told: str, prefix: Path, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\nproject(p LANGUAGES C)\n{options}\n{lines}\n"
    )
    done = subprocess.run(
        [CMAKE, "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert re.search(told, " ".join(done.stderr.split()))


def test_installed_headers_find_each_other(prefix: Path) -> None:
    include = prefix / "include"
    named = {
        (header, name)
        for header in include.rglob("*.h")
        for name in re.findall(r'#include ["<]((?:rushlight/|rl_).*)[">]', header.read_text())
    }
    assert len({header for header, _ in named}) > 200
    beside = {(h, n) for h, n in named if (h.parent / n).is_file() or (include / n).is_file()}
    assert not named - beside
    assert not (include / "rushlight" / "runner").exists()


def test_a_wheel_stays_small(wheel: Path) -> None:
    [made] = wheel.glob("*.whl")
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
    assert made.stat().st_size < WHEEL_BYTES
    for name in ("lib/librushlight.a", "include/rushlight.h", "share/rushlight/CMakeLists.txt"):
        assert names.count(f"rushlight/{name}") == 1
    assert not [name for name in names if name.endswith((".o", ".pte"))]
