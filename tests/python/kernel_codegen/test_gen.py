"""C++ from files of kernels: which files there are, and what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from rushlight.kernel_codegen import gen
from rushlight.kernel_codegen.model import ETKernelKey
from rushlight.kernel_codegen.parse import parse_from_yaml
from rushlight.kernel_codegen.tools import gen_oplist

FUNCTIONS = """
- op: add.out
  kernels: [{arg_meta: null, kernel_name: "own::add_out"}]
- op: mul.out
  dispatch: {CPU: "own::mul_out"}
"""
CUSTOM = """
- func: own::scaled.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "own::scaled_out"}]
"""


def _written(folder: Path, *options: str, functions: str = "", custom: str = "") -> dict[str, str]:
    """What `gen` writes, by the names of the files."""
    arguments = [*options, f"--install-dir={folder / 'out'}"]
    for option, text in (("functions-yaml-path", functions), ("custom-ops-yaml-path", custom)):
        if text:
            (folder / option).write_text(text)
            arguments.append(f"--{option}={folder / option}")
    gen.main(arguments)
    return {path.name: path.read_text() for path in (folder / "out").iterdir()}


def test_registers_kernels_of_both_files(tmp_path: Path) -> None:
    files = _written(tmp_path, functions=FUNCTIONS, custom=CUSTOM)
    assert set(files) == {
        *("RegisterCodegenUnboxedKernelsEverything.cpp", "RegisterCodegenUnboxedKernels_0.cpp"),
        *("Functions.h", "NativeFunctions.h", "CustomOpsNativeFunctions.h", "RegisterKernels.h"),
        *("RegisterCPUCustomOps.cpp", "RegisterCPUStub.cpp", "RegisterSchema.cpp"),
        "RegisterCPUWrappedOps.cpp",
    }
    registered = files["RegisterCodegenUnboxedKernelsEverything.cpp"]
    assert '"aten::add.out"' in registered and '"own::scaled.out"' in registered
    assert "own::native::scaled_out(context, x_base, factor_base, out_base);" in registered
    assert 'm.def("scaled.out(Tensor x, float factor, *, ' in files["RegisterSchema.cpp"]
    declared = files["NativeFunctions.h"]
    assert (
        "torch::executor::Tensor & scaled_out(torch::executor::KernelRuntimeContext & context, "
        "const torch::executor::Tensor & x, double factor, torch::executor::Tensor & out);"
    ) in declared


def test_leaves_out_what_is_not_selected(tmp_path: Path) -> None:
    selected = tmp_path / "selected_operators.yaml"
    gen_oplist.main([f"--output_path={tmp_path}", "--root_ops=aten::mul.out"])
    files = _written(tmp_path, f"--op-selection-yaml-path={selected}", functions=FUNCTIONS)
    registered = files["RegisterCodegenUnboxedKernelsEverything.cpp"]
    assert '"aten::mul.out"' in registered and "add" not in registered


def test_registers_by_a_call(tmp_path: Path) -> None:
    files = _written(tmp_path, "--manual-registration", functions=FUNCTIONS)
    assert "Error register_all_kernels();" in files["RegisterKernels.h"]
    assert "Error register_all_kernels() {" in files["RegisterKernelsEverything.cpp"]
    assert "RegisterCodegenUnboxedKernelsEverything.cpp" not in files


def test_registers_a_kernel_for_each_choice_of_dtypes(tmp_path: Path) -> None:
    typed = """
- func: own::f.out(Tensor x, Tensor y, *, Tensor(a!) out) -> Tensor(a!)
  type_alias: {T: [Float, Int], U: [Bool]}
  dim_order_alias: {D: [0, 1]}
  kernels:
    - {arg_meta: null, kernel_name: "own::all"}
    - {arg_meta: {x: [T, D], y: [U, D], out: [T, D]}, kernel_name: "own::some"}
"""
    files = _written(tmp_path, custom=typed)
    registered = files["RegisterCodegenUnboxedKernelsEverything.cpp"]
    for key, count in (("6;0,1|11;0,1|6;0,1", 1), ("3;0,1|11;0,1|3;0,1", 1)):
        assert registered.count(f'"v1/{key}"') == count
    assert registered.count("own::native::some(") == 2
    assert registered.count("own::native::all(") == 1
    assert "some(" in files["NativeFunctions.h"] and "all(" in files["Functions.h"]


TYPED = """
- func: own::f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  type_alias: {T: [Float, Int]}
  dim_order_alias: {D: [0, 1]}
  kernels:
    - {arg_meta: {x: [T, D], out: [T, D]}, kernel_name: "own::some"}
"""
ALL = '    - {arg_meta: null, kernel_name: "own::all"}\n'


def _selecting(folder: Path, *keys: str, default: bool = True) -> list[str]:
    """The keys of the kernels that are written for calls with some keys."""
    selected = folder / "selected_operators.yaml"
    gen_oplist.main(
        [f"--output_path={folder}", f"--ops_dict={json.dumps({'own::f.out': list(keys)})}"]
    )
    custom = TYPED + (ALL if default else "")
    files = _written(folder, f"--op-selection-yaml-path={selected}", custom=custom)
    registered = files["RegisterCodegenUnboxedKernelsEverything.cpp"]
    entries = re.findall(r'"own::f\.out",\s*(?:"(.*)",)?', registered)
    return sorted(key or "default" for key in entries)


def test_selects_kernels_by_the_keys_of_calls(tmp_path: Path) -> None:
    floats = "v1/6;0,1|6;0,1"
    # A program's call names its result once more.
    assert _selecting(tmp_path, f"{floats}|6;0,1") == [floats]
    assert _selecting(tmp_path, floats, "v1/4;0|4;0|4;0") == ["default", floats]
    everything = ["default", "v1/3;0,1|3;0,1", floats]
    assert _selecting(tmp_path) == _selecting(tmp_path, "Float") == everything
    with pytest.raises(ValueError, match=r"no kernel of own::f\.out is for the call v1/4;0"):
        _selecting(tmp_path, "v1/4;0|4;0", default=False)


def test_boundary_turns_exceptions_into_errors(tmp_path: Path) -> None:
    files = _written(tmp_path, "--add-exception-boundary", custom=CUSTOM)
    registered = files["RegisterCodegenUnboxedKernelsEverything.cpp"]
    assert "catch (const std::exception& ex)" in registered
    assert "context.fail(torch::executor::Error::Internal);" in registered


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- op: no_such.out\n  dispatch: {CPU: f}\n", "no_such.out is no operator of PyTorch"),
        ("- dispatch: {CPU: f}\n", "neither func: nor op:"),
    ],
)
def test_says_what_is_wrong_with_an_entry(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        _written(tmp_path, functions=text)


def test_says_which_name_of_dtypes_is_unknown() -> None:
    entry = yaml.safe_load("""
func: own::f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
type_alias: {T: [Float]}
dim_order_alias: {D: [0]}
kernels:
  - {arg_meta: {x: [U, D], out: [T, D]}, kernel_name: "f"}
""")
    with pytest.raises(AssertionError, match="Undefined type alias: x has U; type_alias has: T"):
        parse_from_yaml(entry)
    entry["kernels"][0]["arg_meta"]["x"] = ["T", "D"]
    entry["kernels"] *= 2
    with pytest.raises(AssertionError, match=r"Duplicate kernel key: v1/6;0\|6;0"):
        parse_from_yaml(entry)
    assert ETKernelKey(default=True).to_native_string() == "default"


def test_refuses_a_folder_without_templates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        gen.main([f"--source-path={tmp_path}"])
    assert "has no folder templates/" in capsys.readouterr().err
