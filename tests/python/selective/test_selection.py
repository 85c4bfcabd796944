"""What a selective build is made from: tables, header, sources, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.python.runtime_programs import binary, program

from rushlight.errors import Error
from rushlight.schema.operators import SCHEMAS
from rushlight.selective import build as building
from rushlight.selective.by_operator import rows_of
from rushlight.selective.estimate import needs_of
from rushlight.selective.link_map import Part, parts_of
from rushlight.selective.selection import Options, stems, write_selection
from rushlight.selective.sources import Sources, source_root
from rushlight.selective.uses import uses_of

ROOT = source_root()


@pytest.fixture
def mul(tmp_path: Path) -> Path:
    path = tmp_path / "mul.pte"
    path.write_bytes(program(binary("aten::mul.out", 2, 3)))
    return path


def _write(program_file: Path, **options: Any) -> Path:
    folder = program_file.parent / "selection"
    write_selection([program_file], Options("app", **options), folder, ROOT)
    return folder


def test_the_table_has_what_is_called_by_its_key(mul: Path) -> None:
    text = (_write(mul) / "kernels.cpp").read_text()
    assert text.count('{"aten::') == 1
    assert '{"aten::mul.out", "ttw=", kernels::mul_out,\n     "v1/6;0,1|6;0,1|6;0,1"}' in text


def test_the_header_keeps_dtypes_nodes_and_one_instruction_set(mul: Path) -> None:
    folder = _write(mul, isa="avx512vnni")
    text = (folder / "rushlight_selection.h").read_text()
    assert "#define RL_SELECTED_DTYPES(X) X(Float32)\n" in text
    assert "#define RL_SELECTED_NODES(X)\n" in text
    assert "#define RL_SELECTED_PRODUCTS {1, false, false}\n" in text
    assert "#define RL_SELECTED_WEIGHTS {false, false}\n" in text
    assert "#define RL_SELECTED_TILE_OPS(X)\n" in text
    assert "#define RL_SELECTED_ISA avx512\n#define RL_SELECTED_DOT_ISA avx512vnni\n" in text


def test_sources_of_other_kernels_are_left_out(mul: Path) -> None:
    text = (_write(mul, module=False) / "sources.cmake").read_text()
    assert "kernels/portable/elementwise/binary.cpp" in text
    assert "method/method.cpp" in text
    for other in ("linalg/matmul.cpp", "convolution/", "engine/", "backends/", "module/"):
        assert other not in text, other


def test_a_second_time_writes_nothing(mul: Path) -> None:
    folder = _write(mul)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert {path: path.stat().st_mtime_ns for path in _write(mul).iterdir()} == before


def test_an_unknown_operator_is_refused_and_one_of_the_users_own_is_not(tmp_path: Path) -> None:
    path = tmp_path / "own.pte"
    path.write_bytes(program(binary("acme::snake.out", 2)))
    with pytest.raises(Error, match=r"no kernels for acme::snake\.out"):
        _write(path)
    schema = b"acme::snake.out(Tensor x, Tensor y, *, Tensor(a!) out) -> Tensor(a!)\n"
    path.write_bytes(program(binary("acme::snake.out", 2), named_data={SCHEMAS: schema}))
    folder = _write(path)
    assert "acme" not in (folder / "kernels.cpp").read_text()
    assert "acme::snake.out" in (folder / "app.h").read_text()
    assert json.loads((folder / "selection.json").read_text())["own operators"]


@pytest.mark.parametrize("name", ["", "App", "9a", "a-b", "rushlight", "a b"])
def test_a_name_that_is_none_in_cpp_is_refused(name: str) -> None:
    with pytest.raises(Error, match="namespace"):
        Options(name)


def test_an_unknown_instruction_set_is_refused() -> None:
    with pytest.raises(Error, match=r"'sse' is none of all, plain, avx2"):
        Options("app", isa="sse")


def test_embedded_programs_need_names_of_their_own(tmp_path: Path) -> None:
    assert stems([Path("a/m-1.pte"), Path("2.pte")]) == ["m_1", "_2"]
    with pytest.raises(Error, match="would be called 'm'"):
        stems([Path("a/m.pte"), Path("b/m.pte")])


def test_an_unknown_target_is_refused_with_those_that_there_are(mul: Path) -> None:
    known = "aarch64-linux, cortex-m55, riscv64-linux"
    with pytest.raises(Error, match=f"'toaster' is neither.*{known}"):
        building.build([mul], Options("app"), mul.parent / "app", "toaster")


def test_without_cmake_it_says_what_to_install(mul: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building.shutil, "which", lambda name: None)
    with pytest.raises(Error, match="pip install cmake"):
        building.build([mul], Options("app"), mul.parent / "app")


def test_the_command_for_cmake_tells_errors_in_a_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rushlight.selective", "--name", "app", "--root", str(ROOT)]
    command += ["--folder", str(tmp_path / "s"), str(tmp_path / "missing.pte")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "missing.pte" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_map_of_a_linker_is_read_by_object(tmp_path: Path) -> None:
    (tmp_path / "map").write_text(
        "Discarded input sections\n .text.f 0x0000 0x99 libapp.a(gone.cpp.o)\n"
        "Linker script and memory map\n\n"
        " .text.f        0x0000000000001000       0x20 app.dir/r/cpp/x/cpp/core/tensor.cpp.o\n"
        " .text.a_name_that_is_too_long_for_its_column\n"
        "                0x0000000000001020       0x10 app.dir/r/cpp/x/cpp/core/tensor.cpp.o\n"
        " .rodata        0x0000000000002000        0x8 app.dir/r/cpp/x/cpp/core/tensor.cpp.o\n"
        " .ARM.exidx     0x0000000000002008        0x8 app.dir/kernels.cpp.o\n"
        " .ARM.attributes\n"
        "                0x0000000000000000       0x36 app.dir/kernels.cpp.o\n"  # is not loaded
        " .bss           0x0000000000003000     0x1000 app.dir/kernels.cpp.o\n"
        " .text          0x0000000000001030        0x6 app.dir/kernels.cpp.o\n"
        " .text          0x0000000000001036        0x4 /usr/lib/libgcc.a(_divdi3.o)\n"
    )
    parts = parts_of(tmp_path / "map", {"core/tensor.cpp", "core/status.cpp"})
    assert [(p.name, p.code, p.constants) for p in parts] == [
        ("core/tensor.cpp", 0x30, 8),
        ("kernels.cpp", 6, 8),
        ("libgcc: _divdi3", 4, 0),
    ]


def test_what_one_operator_alone_brings_is_in_its_row(tmp_path: Path) -> None:
    path = tmp_path / "two.pte"
    both = binary("aten::mul.out", 2, 3)
    other = binary("aten::atan2.out", 2, 3)
    other.name = "other"
    path.write_bytes(program(both, other))
    files = {
        "kernels/portable/elementwise/binary.cpp": 100,
        "kernels/portable/elementwise/special.cpp": 10,
        "core/tensor.cpp": 5,
        "method/method.cpp": 7,
        "kernel/kernel.cpp": 1,
        "kernels.cpp": 2,
    }
    parts = [Part(name, size, 1) for name, size in files.items()]
    rows = rows_of(parts, uses_of([path]), Sources(ROOT), Options("app", module=False))
    assert sum(row.bytes for row in rows) == sum(part.bytes for part in parts)
    named = {row.name: (row.code, row.constants, row.shared) for row in rows}
    assert named["core"] == (6, 2, True)
    assert named["method"] == (7, 1, True)
    assert named["generated, and libraries"] == (2, 1, True)
    alone = rows_of(parts[:1], uses_of([_only(tmp_path)]), Sources(ROOT), Options("app"))
    assert [(row.name, row.shared) for row in alone] == [("aten::mul.out", False)]


def _only(folder: Path) -> Path:
    path = folder / "one.pte"
    path.write_bytes(program(binary("aten::mul.out", 2, 3)))
    return path


def test_needs_are_known_before_a_build(mul: Path) -> None:
    needs = needs_of([mul])
    assert set(needs.uses.operators) == {"aten::mul.out"}
    assert needs.code["kernels"] > 0 and "engine" not in needs.code
    assert needs.file == {"mul.pte": mul.stat().st_size}
    assert needs.memory["mul.pte"]["forward"]["peak"] > 0


def test_every_kernel_and_node_has_its_source() -> None:
    sources = Sources(ROOT)
    assert len(sources.kernels) > 400
    assert {function for function, files in sources.kernel_files.items() if not files} == set()
    parameters = sources.text("engine/types/parameters.h")
    assert all(f"struct {kind}Parameters" in parameters for kind in sources.node_files)
    kinds = parameters.split("std::variant<")[1].partition(">;")[0]
    assert kinds.count("Parameters") == len(sources.node_files)
