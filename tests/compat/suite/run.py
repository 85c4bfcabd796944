"""Runs ExecuTorch's own Python tests twice: over real ExecuTorch, and over our names for it.

    python -m tests.compat.suite.run --real PYTHON --here PYTHON [--only SUITE…] [--side real|here]

PYTHON is the interpreter of an environment that has real ExecuTorch, or ours. The tests are read
where real ExecuTorch is installed. Each file runs in a process of its own; what a test did is kept
in `build/compat/SIDE/MODULE.jsonl`. `python -m tests.compat.suite.table` makes the table of it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "build" / "compat"
ONE_FILE = Path(__file__).resolve().parent / "one_file.py"
# Folders of tests, below the package.
SUITES = (
    *("exir/tests", "exir/backend/test", "exir/emit/test", "exir/_serialize/test"),
    *("exir/dialects", "exir/program/test", "exir/operator/test", "exir/verification/test"),
    *("export/tests", "devtools"),
    *("backends/xnnpack/test/ops", "backends/xnnpack/test/quantizer"),
    *("backends/xnnpack/test/recipes", "backends/transforms/test", "runtime/test"),
    *("extension/pybindings/test", "extension/flat_tensor/test", "extension/llm/export/test"),
    *("extension/llm/runner/test", "codegen"),
)
SECONDS = 600  # of processor time, for one file
WAIT = 3600  # however busy the machine is


def folder_of(python: str) -> Path:
    """Where the environment of `python` has the package `executorch`."""
    code = "import importlib.util as u; print(list(u.find_spec('executorch')"
    code += ".submodule_search_locations)[0])"
    out = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return Path(out.stdout.strip())


def files_of(folder: Path, suite: str) -> list[Path]:
    """The files of tests of one suite."""
    found = [p for p in (folder / suite).rglob("*.py") if _is_test(p)]
    return sorted(found)


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") or path.stem.endswith("_test")


def module_of(folder: Path, file: Path) -> str:
    """The name under which a file of tests is imported."""
    return ".".join(("executorch", *file.relative_to(folder).with_suffix("").parts))


def run_file(python: str, side: str, folder: Path, module: str) -> None:
    """Run one file until each of its tests has an outcome."""
    results = RESULTS / side / f"{module}.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    environment = dict(os.environ, RUSHLIGHT_TEST_SEED="0", OMP_NUM_THREADS="1")
    if side == "here":
        paths = [str(ROOT / "compat" / "python"), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
        environment["EXECUTORCH_TORCH_SHIMS"] = "1"
    with tempfile.TemporaryDirectory() as scratch:
        left_out = Path(scratch) / "left_out.json"
        while True:
            done = outcomes(results)
            left_out.write_text(json.dumps(sorted(done)), encoding="utf-8")
            command = [python, str(ONE_FILE), str(folder), module, str(results), str(left_out)]
            ended = _run(command, scratch, environment)
            broken = [
                test for test, (outcome, _) in outcomes(results).items() if outcome == "begins"
            ]
            for test in broken:
                why = {"test": test, "outcome": "fails", "why": ended}
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(why) + "\n")
            if not broken:
                break
    if not outcomes(results):
        line = {"test": "", "outcome": "fails", "why": f"the file has no outcome: {ended}"}
        results.write_text(json.dumps(line) + "\n", encoding="utf-8")


def _run(command: list[str], folder: str, environment: dict[str, str]) -> str:
    """Run a process in `folder`; returns how it ended, in words."""
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=WAIT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
        )
    except subprocess.TimeoutExpired:
        return f"it did not end in {WAIT} s"
    if -ended.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return f"the process was ended: {SECONDS} s of processor time, or memory, were spent"
    return f"the process ended with status {ended.returncode}"


def outcomes(results: Path) -> dict[str, tuple[str, str]]:
    """{test: (outcome, why)} of a file of results; a file that cannot be read is the test ""."""
    told: dict[str, tuple[str, str]] = {}
    if results.exists():
        for line in results.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            known = told.get(one["test"])
            if known is None or known[0] in ("begins", "passes"):  # a test may fail at its end
                told[one["test"]] = (one["outcome"], one["why"])
    return told


def main() -> None:
    """Run the sides and suites that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", required=True, help="the interpreter that has real ExecuTorch")
    parser.add_argument("--here", required=True, help="the interpreter that has ours")
    parser.add_argument("--only", nargs="*", default=None, help="suites, or parts of a file's name")
    parser.add_argument("--side", choices=("real", "here"), help="one side alone")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time")
    given = parser.parse_args()
    folder = folder_of(given.real)
    modules = [
        module_of(folder, file)
        for suite in SUITES
        for file in files_of(folder, suite)
        if not given.only or any(o in (suite, file.stem) or o in suite for o in given.only)
    ]
    sides = [given.side] if given.side else ["real", "here"]
    with ThreadPoolExecutor(given.jobs) as pool:
        for side in sides:
            python = given.real if side == "real" else given.here
            for module in modules:
                pool.submit(_told, python, side, folder, module)


def _told(python: str, side: str, folder: Path, module: str) -> None:
    run_file(python, side, folder, module)
    ends = [outcome for outcome, _ in outcomes(RESULTS / side / f"{module}.jsonl").values()]
    print(f"{side}: {module}: {ends.count('passes')} of {len(ends)} pass", flush=True)


if __name__ == "__main__":
    sys.exit(main())
