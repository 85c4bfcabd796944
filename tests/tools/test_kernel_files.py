"""The files of kernels for ExecuTorch's applications have ExecuTorch's names."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "compat" / "executorch" / "kernels"


def _names(path: Path) -> dict[str, list[str]]:
    """The kernels of each operator."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {
        entry.get("op") or entry["func"].partition("(")[0]: [
            kernel["kernel_name"] for kernel in entry["kernels"]
        ]
        for entry in entries
    }


@pytest.mark.interop
@pytest.mark.parametrize(
    "name", ["portable/functions.yaml", "portable/et_copy_ops.yaml", "quantized/quantized.yaml"]
)
def test_kernels_have_executorchs_names(name: str) -> None:
    installed = ROOT / ".venv-executorch" / "lib"
    (theirs,) = installed.glob(f"python3.*/site-packages/executorch/kernels/{name}")
    expected, ours = _names(theirs), _names(FOLDER / name)
    assert set(expected) <= set(ours)
    assert {op: ours[op] for op in expected} == expected
