"""The tools that say which operators and dtypes a build has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import rushlight as rl
from rushlight.errors import LoadError
from rushlight.kernel_codegen.tools import (
    combine_prim_ops_headers,
    gen_all_oplist,
    gen_oplist,
    gen_ops_def,
    gen_selected_op_variants,
    gen_selected_prim_ops,
    merge_yaml,
    selective_build,
)


class AddMul(torch.nn.Module):
    """Two operators on float32, and one of them on int64."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x + x) * x, n + n


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("oplist") / "model.pte"
    inputs = (torch.ones(2, 2), torch.ones(3, dtype=torch.int64))
    rl.export(AddMul(), inputs, backend="portable").save(path, quiet=True)
    return path


def _selected(folder: Path, *options: str) -> dict[str, Any]:
    gen_oplist.main([f"--output_path={folder}", *options])
    content: dict[str, Any] = yaml.safe_load((folder / "selected_operators.yaml").read_text())
    return content


def test_lists_operators_and_dtypes_of_a_program(program: Path, tmp_path: Path) -> None:
    selected = _selected(tmp_path, f"--model_file_path={program}")
    assert selected["et_kernel_metadata"] == {
        "aten::add.out": ["v1/4;0|4;0|4;0|4;0", "v1/6;0,1|6;0,1|6;0,1|6;0,1"],
        "aten::mul.out": ["v1/6;0,1|6;0,1|6;0,1|6;0,1"],
    }
    assert selected["operators"]["aten::add.out"] == {
        "is_root_operator": True,
        "is_used_for_training": True,
        "include_all_overloads": False,
        "debug_info": [str(program)],
    }


def test_header_has_the_dtypes_of_a_program(program: Path, tmp_path: Path) -> None:
    _selected(tmp_path, f"--model_file_path={program}")
    gen_selected_op_variants.main(
        [f"--yaml_file_path={tmp_path}/selected_operators.yaml", f"--output_dir={tmp_path}"]
    )
    header = (tmp_path / "selected_op_variants.h").read_text()
    dtypes = {
        op: re.findall(r"ScalarType::(\w+)", checks)
        for op, checks in re.findall(r'compare\("([\w.]+)"\) == 0\)\s+&& \(([^)]*)\)', header)
    }
    assert dtypes == {"add.out": ["Float", "Long"], "mul.out": ["Float"]}


def test_merges_all_sources(tmp_path: Path) -> None:
    (tmp_path / "ops.yaml").write_text(
        "- op: relu.out\n  kernels: []\n- func: own::f(Tensor x) -> Tensor\n"
    )
    listed = json.dumps({"aten::add.out": ["v1/6;0", "Int"], "aten::mul.out": []})
    selected = _selected(
        tmp_path,
        "--root_ops=aten::add.out aten::sub.out",
        f"--ops_dict={listed}",
        f"--ops_schema_yaml_path={tmp_path}/ops.yaml",
        "--include_all_operators",
    )
    assert sorted(selected["operators"]) == sorted(selected["et_kernel_metadata"])
    assert set(selected["et_kernel_metadata"]["aten::add.out"]) >= {"v1/6;0", "v1/3;"}
    assert {"aten::sub.out", "aten::relu.out", "own::f"} < set(selected["operators"])
    assert selected["include_all_operators"] is True


def test_without_sources_selects_nothing(tmp_path: Path) -> None:
    assert _selected(tmp_path)["operators"] == {}


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--model_file_path=none.pte", "there is none at none.pte"),
        ('--ops_dict={"aten::add.out": ["Complex"]}', "Unknown dtype: Complex"),
        ("--model_file_path=" + __file__, "not a .pte file"),
    ],
)
def test_says_why_nothing_is_listed(tmp_path: Path, option: str, reason: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(reason)) as error:
        _selected(tmp_path, option)
    assert option in str(error.value)


def test_refuses_a_damaged_program(program: Path) -> None:
    data = program.read_bytes()
    with pytest.raises(LoadError):
        selective_build._get_program_from_buffer(data[: len(data) // 2])


def test_merges_lists(tmp_path: Path) -> None:
    for name, ops in (("a", "aten::add.out"), ("b", "aten::add.out,aten::mul.out")):
        (tmp_path / name).mkdir()
        _selected(tmp_path / name, f"--root_ops={ops}")
    listed = tmp_path / "list"
    listed.write_text(f"{tmp_path}/a\n{tmp_path}/b/selected_operators.yaml\n")
    arguments = [f"--output_dir={tmp_path}", f"--model_file_list_path=@{listed}"]
    gen_all_oplist.main(arguments)
    merged = yaml.safe_load((tmp_path / "selected_operators.yaml").read_text())
    assert set(merged["operators"]) == {"aten::add.out", "aten::mul.out"}
    assert len(merged["operators"]["aten::add.out"]["debug_info"]) == 2
    with pytest.raises(ValueError, match=r"Operator aten::add\.out is used in 2 models"):
        gen_all_oplist.main([*arguments, "--check_ops_not_overlapping"])


def test_merges_files_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("- op: add.out\n  kernels: [{kernel_name: own}]\n")
    (tmp_path / "all.yaml").write_text("- op: add.out\n- op: mul.out\n")
    merge_yaml.main(
        [
            f"--functions_yaml_path={tmp_path}/own.yaml",
            f"--fallback_yaml_path={tmp_path}/all.yaml",
            f"--output_dir={tmp_path}",
        ]
    )
    merged = yaml.safe_load((tmp_path / "merged.yaml").read_text())
    assert merged == [{"op": "add.out", "kernels": [{"kernel_name": "own"}]}, {"op": "mul.out"}]


def test_starts_a_file_of_kernels(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "functions.yaml"
    gen_ops_def.main([f"--model_file_path={program}", f"--output_path={path}"])
    entries = yaml.safe_load(path.read_text())
    assert [e["dispatch"]["CPU"] for e in entries] == [
        "torch::executor::add_out",
        "torch::executor::mul_out",
    ]
    assert entries[0]["func"].startswith("aten::add.out(Tensor self, Tensor other")


def test_lists_operators_of_the_runtime_itself(tmp_path: Path) -> None:
    for name, ops in (("a", "aten::sym_size.int"), ("b", "executorch_prim::et_view.default")):
        (tmp_path / name).mkdir()
        gen_selected_prim_ops.main([f"--prim_op_names={ops}", f"--output_dir={tmp_path}/{name}"])
    (tmp_path / "list").write_text(f"{tmp_path}/a {tmp_path}/b")
    combine_prim_ops_headers.main(
        [f"--header_files=@{tmp_path}/list", f"--output_dir={tmp_path}/all"]
    )
    header = (tmp_path / "all" / "selected_prim_ops.h").read_text()
    assert re.findall(r"#define (\w+)", header) == [
        "EXECUTORCH_ENABLE_PRIM_OPS_SELECTIVE_BUILD",
        "INCLUDE_ATEN_SYM_SIZE_INT",
        "INCLUDE_EXECUTORCH_PRIM_ET_VIEW_DEFAULT",
    ]
