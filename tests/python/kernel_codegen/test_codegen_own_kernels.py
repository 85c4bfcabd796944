"""Kernels that the runtime has itself: files of ExecuTorch's names for them register nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rushlight.kernel_codegen import gen
from rushlight.kernel_codegen.tools import gen_oplist, merge_yaml

KERNELS = Path(__file__).resolve().parents[3] / "compat" / "executorch" / "kernels"
NAMES = [
    *("portable/functions.yaml", "portable/et_copy_ops.yaml"),
    *("optimized/optimized.yaml", "quantized/quantized.yaml"),
]


def _registered(folder: Path, functions: Path) -> list[str]:
    gen.main([f"--functions-yaml-path={functions}", f"--install-dir={folder}"])
    text = (folder / "RegisterCodegenUnboxedKernelsEverything.cpp").read_text()
    return re.findall(r'Kernel\(\s*"(.*?)"', text)


@pytest.mark.parametrize("name", NAMES)
def test_registers_none_of_the_runtimes_own(name: str, tmp_path: Path) -> None:
    assert _registered(tmp_path, KERNELS / name) == []
    (tmp_path / "selected").mkdir()
    gen_oplist.main(
        [f"--output_path={tmp_path / 'selected'}", f"--ops_schema_yaml_path={KERNELS / name}"]
    )
    selected = yaml.safe_load((tmp_path / "selected" / "selected_operators.yaml").read_text())
    entries = yaml.safe_load((KERNELS / name).read_text())
    assert len(selected["operators"]) == len(entries) > 0


def test_registers_own_kernels_among_them(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "- op: add.out\n  kernels: [{arg_meta: null, kernel_name: 'own::add_out'}]\n"
        "- op: mul.out\n  kernels: [{arg_meta: null, kernel_name: 'torch::executor::my_mul'}]\n"
        "- op: bmm.out\n  kernels: [{arg_meta: null, kernel_name: 'torch::executor::opt_bmm_out'}]"
        "\n"
        # The runtime has no kernel of it, whatever the name.
        "- op: lcm.out\n  kernels: [{arg_meta: null, kernel_name: 'torch::executor::lcm_out'}]\n"
    )
    merge_yaml.main(
        [
            f"--functions_yaml_path={own}",
            f"--fallback_yaml_path={KERNELS / 'portable' / 'functions.yaml'}",
            f"--output_dir={tmp_path}",
        ]
    )
    registered = set(_registered(tmp_path / "out", tmp_path / "merged.yaml"))
    assert registered == {"aten::add.out", "aten::mul.out", "aten::lcm.out"}
