"""ExecuTorch's own tests of `executorch.devtools`, run on ours; what differs is listed here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.full]

SUITE = Path(__file__).resolve().parents[2] / "peer" / "devtools_suite.py"
FOLDERS = (
    *("backend_debug", "bundled_program", "etdump", "etrecord", "inspector"),
    "intermediate_output_tap",
)
LEFT_OUT = {
    "test_coreml_e2e": "runs on a Mac",
    "vgf_neural_statistics_test": "metadata of one vendor's backend",
}

# Why a test fails on ours, and which.
DIFFERS = {
    "ours raises ExportError, which says what is allowed, in place of AssertionError or KeyError": {
        *("test_bundle_wrong_input_type", "test_bundle_wrong_output_type"),
        "test_bundled_wrong_method_name",
    },
    "the text of the error is ours": {
        "test_add_edge_dialect_program_already_exists_exception",
        "test_add_executorch_program_already_exists_exception",
        "test_add_executorch_program_partial_data_exists_exception",
        "test_add_exported_program_already_exists_exception",
        "test_add_exported_program_partial_data_exists_exception",
        "test_get_etrecord_from_executorch_program_manager_without_generation",
        "test_save_missing_essential_info",
    },
    "the edge program of a record is the one after the caller's passes, whose nodes run": {
        "test_edge_after_transform_graph_capture"
    },
    "the caller's program is not changed": {"test_mutates_original_and_returns_same_ep"},
    "runs with other inputs have other values: the last run's are shown": {
        "test_gen_from_etdump_inconsistent_debug_data"
    },
    "it replaces private functions": {
        "test_calculate_numeric_gap_with_custom_comparator_and_preprocessing",
        "test_etrecord_populates_correct_edge_dialect_aot_intermediate_outputs",
        "test_etrecord_populates_correct_export_program_aot_intermediate_outputs",
        "test_inspector_delegate_time_scale_converter",
    },
}
# The beginnings of names that ours has no counterpart of, and why.
ABSENT = {
    "_inspector.": "private functions, which tests replace",
    "gen_etdump_object": "private, and tests replace it",
    "ProfileEventSignature": "private",
    "flatcc": "private, by that name",
    "OperatorNode": "the graphs of ETRecords are ExportedPrograms",
    "ValueNode": "the graphs of ETRecords are ExportedPrograms",
    "NodeFilter": "private",
    "calculate_": "private; compare_results and numeric gaps are tested otherwise",
    "convert_to_float_tensor": "private",
    "find_": "private",
    "gen_graphs_from_etrecord": "private",
    "get_aot_debug_handle": "private",
    "is_inference_output_equal": "private",
    "map_runtime_aot": "private",
    "merge_runtime": "private",
    "propagate_back_debug_handle": "captured programs are numbered as they are recorded",
    "ExportRecipe": "recipes of stages: rushlight.export(etrecord=)",
    "StageType": "recipes of stages: rushlight.export(etrecord=)",
    "ExecutorchBackendConfig": "its options for passes in place",
    "XNNPACKQuantizer": "quantizers are torchao's: rushlight.export(quantize=)",
    "_PTEFile": "private",
    "_load_": "bindings of the runtime: rushlight.load",
    "get_xnnpack_edge_compile_config": "the partitioner chooses what it keeps whole",
    "serialize_to_etdump_flatcc": "rushlight.schema.etdump.pack",
    "StatReducer": "Reducer, with one function",
    "strip_taps_": "the pipeline lowers taps, so that none are left",
    "tap_compare with several rules": "tap_compare takes one",
}


def suites(folder: Path) -> Iterator[str]:
    """The modules of tests."""
    for name in FOLDERS:
        for path in sorted((folder / name).rglob("*test*.py")):
            is_tests = path.stem.endswith("_test") or path.stem.startswith("test_")
            if is_tests and path.stem not in {*LEFT_OUT, "test_util"}:
                yield ".".join(path.relative_to(folder).with_suffix("").parts)


@pytest.mark.parametrize("peer", ["executorch", "tracing_executorch"])
def test_the_suite_of_executorch(peer: str, request: pytest.FixtureRequest) -> None:
    python = request.getfixturevalue(peer).python
    code = "import executorch; print(*executorch.__path__, sep=chr(10))"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    root = Path(told.stdout.splitlines()[0])
    command = [sys.executable, str(SUITE), str(root), *suites(root / "devtools")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    outcomes: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    failed = {
        test.rpartition(".")[2]: why for test, (outcome, why) in outcomes.items()
        if outcome == "fails"
    }  # fmt: skip
    listed = set().union(*DIFFERS.values())
    assert {name: why for name, why in failed.items() if name not in listed} == {}
    assert listed <= set(failed), "they pass: take them off the list"
    absent = {test: why for test, (outcome, why) in outcomes.items() if outcome == "absent"}
    assert [test for test, why in absent.items() if not why.startswith(tuple(ABSENT))] == []
    passed = sum(outcome == "passes" for outcome, _ in outcomes.values())
    assert passed >= 84, passed
