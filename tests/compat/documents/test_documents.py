"""The scenarios of the documents run: scripts for ExecuTorch, and a partner's runtime class."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rushlight.inspect import Inspector
from rushlight.runtime import Runtime, register_backend

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")


def _printed(script: str, *arguments: Path) -> str:
    path = os.pathsep.join([str(ROOT / "compat" / "python"), *sys.path])
    ended = subprocess.run(
        [sys.executable, HERE / script, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


@pytest.mark.parametrize("script", ["concepts.py", "pt2_export.py"])
def test_script(script: str) -> None:
    assert _printed(script).strip().endswith("done")


@pytest.fixture(scope="module")
def partner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partner")
    printed = _printed("partner.py", folder)
    assert printed.startswith("2 subgraphs")
    return folder


class PartnerRuntime:
    """The runtime half, of the payload that the script's preprocess writes."""

    def init(self, context: Any) -> bytes:
        payload = bytes(context.payload)
        if struct.unpack_from("<i", payload)[0] != 1:
            raise ValueError("the payload is of another version")
        return payload

    def execute(self, context: Any, handle: bytes, args: list[Any]) -> None:
        x, y = args
        if struct.unpack_from("<i", handle, 4)[0] == 1:
            outputs, inputs, size = struct.unpack_from("<3i", handle, 8)
            weight, bias = _floats(handle, 20, (outputs, inputs, size, size), (outputs,))
            windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
            y[...] = np.einsum("nihwkl,oikl->nohw", windows, weight) + bias[:, None, None]
            return
        outputs, inputs = struct.unpack_from("<2i", handle, 8)
        scales = [struct.unpack_from("<fi", handle, 16 + 8 * i) for i in range(3)]
        weight, bias = _floats(handle, 40, (outputs, inputs), (outputs,))
        (_, _), (by, _), _ = scales
        made = _rounded(x, *scales[0]) @ (weight * by).T + bias
        y[...] = _rounded(np.maximum(made, 0), *scales[2])


def _floats(data: bytes, at: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    arrays = []
    for shape in shapes:
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(data, np.float32, count, at).reshape(shape))
        at += 4 * count
    return arrays


def _rounded(x: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return (np.clip(np.rint(x / scale) + zero, -128, 127) - zero) * scale


def test_a_partner_delegate_runs_and_its_debug_handles_lead_back(partner: Path) -> None:
    register_backend("PartnerBackend", PartnerRuntime, replace=True)
    program = Runtime.get().load_program(partner / "partner.pte", enable_etdump=True)
    method = program.load_method("forward")
    (got,) = method.execute([np.load(partner / "input.npy")])
    np.testing.assert_allclose(np.asarray(got), np.load(partner / "expected.npy"), atol=1e-5)
    program.write_etdump_result_to_file(partner / "run.etdp", None)
    inspector = Inspector(
        etdump_path=str(partner / "run.etdp"), etrecord=str(partner / "partner.etrecord")
    )
    names = {event.name for block in inspector.event_blocks for event in block.events}
    assert "DELEGATE_CALL" in names


@pytest.mark.full
def test_a_partner_delegate_in_cpp(partner: Path, tmp_path: Path) -> None:
    shutil.copy(partner / "partner.pte", tmp_path)
    np.load(partner / "input.npy").tofile(tmp_path / "input.bin")
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    for command in (
        [CMAKE, "--install", ROOT / "build" / "dev", "--prefix", prefix],
        [
            *(CMAKE, "-S", HERE / "delegate", "-B", build),
            f"-DEXECUTORCH_FOLDER={ROOT / 'compat' / 'executorch'}",
            f"-Drushlight_DIR={prefix}/lib/cmake/rushlight",
        ],
        [CMAKE, "--build", build, "--parallel", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [build / "partner"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    got = np.array([float(word) for word in done.stdout.split()])
    np.testing.assert_allclose(got, np.load(partner / "expected.npy").ravel(), atol=1e-5)
    # What the delegate measured itself leads to the lines of the instructions it names.
    inspector = Inspector(
        etdump_path=str(tmp_path / "run.etdp"), etrecord=str(partner / "partner.etrecord")
    )
    events = {event.name: event for block in inspector.event_blocks for event in block.events}
    assert {"conv", "linear_relu"} <= set(events)
    assert events["conv"].is_delegated_op
    assert "self.linear" in str(events["linear_relu"].stack_traces)
