"""Files both ways with real ExecuTorch: it reads and runs ours, we read and write its."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import serialize_cases as cases

from rushlight.schema import program as fb
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.serialize.file import PTEFile
from rushlight.serialize.ptd import NamedTensor, read_ptd, write_ptd
from rushlight.serialize.pte import read_pte, write_pte
from rushlight.serialize.segments import as_bytes

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[3]
MODELS = ("mlp", "dynamic", "external", "delegated", "inline")


@pytest.fixture(scope="session")
def executorch_python() -> Path:
    """The Python of an environment that has real ExecuTorch."""
    own = os.environ.get("RUSHLIGHT_EXECUTORCH_PYTHON")
    python = Path(own) if own else ROOT / ".venv-executorch/bin/python"
    assert python.exists(), f"{python} is missing: `make peer` makes it"
    return python


@pytest.fixture(scope="session")
def peer(
    executorch_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Any]]:
    """Runs a command of tests/peer/files_side.py and gives its answer; one process serves all."""
    command = [str(executorch_python), str(ROOT / "tests/peer/files_side.py")]
    log = tmp_path_factory.mktemp("peer") / "stderr"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None

        def call(*request: Any) -> Any:
            print(json.dumps(request, default=str), file=process.stdin, flush=True)
            for line in process.stdout or ():
                if line.startswith("answer:"):
                    return json.loads(line.removeprefix("answer:"))
            raise AssertionError(f"{request}: {log.read_text()[-4000:]}")

        yield call
        process.stdin.close()


@pytest.fixture(scope="session")
def exported(peer: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models that the peer exports, in a folder."""
    folder = tmp_path_factory.mktemp("executorch")
    peer("export", folder)
    return folder


def plain(value: Any) -> Any:
    """A value as plain data, in the format of the same function in the peer's script."""
    if is_dataclass(value):
        named = {f.name: plain(getattr(value, f.name)) for f in fields(value)}
        return [type(value).__name__, named]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return {"hex": bytes(value).hex()}
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    return int(value)


def plans_of_the_peer(program: Any) -> Any:
    """The peer's plans, each delegate's reference replaced by its payload."""
    blobs = [blob[1]["data"]["hex"] for blob in program[1]["backend_delegate_data"]]
    for plan in program[1]["execution_plan"]:
        for delegate in plan[1]["delegates"]:
            delegate[1]["processed"] = blobs[delegate[1]["processed"][1]["index"]]
    return program[1]["execution_plan"]


def our_plans(pte: PTEFile) -> Any:
    plans = plain(pte.program.execution_plan)
    for plan in plans:
        for delegate in plan[1]["delegates"]:
            blob = pte.delegate_blobs[delegate[1]["processed"][1]["index"]]
            delegate[1]["processed"] = bytes(as_bytes(blob)).hex()
    return plans


def starts_with(theirs: list[Any], ours: list[Any], field: str) -> bool:
    """Their parts reach up to the next one, so they may end with padding."""
    return len(theirs) == len(ours) and all(
        bytes.fromhex(a[1][field]["hex"]).startswith(bytes(as_bytes(b)))
        for a, b in zip(theirs, ours, strict=True)
    )


def agree(dump: Any, pte: PTEFile) -> None:
    assert plans_of_the_peer(dump["program"]) == our_plans(pte)
    constants = dump["program"][1]["constant_buffer"]
    assert starts_with(
        constants or [["Buffer", {"storage": {"hex": ""}}]], pte.constants, "storage"
    )
    assert starts_with(
        dump["mutable"] or [], pte.mutable_data[: len(dump["mutable"] or [])], "storage"
    )
    named = {key: bytes(as_bytes(data)).hex() for key, data in pte.named_data.items()}
    assert {key: value["hex"] for key, value in dump["named"].items()} == named


@pytest.mark.parametrize(
    "make", [cases.add_program, cases.plain_program, cases.full_program], ids=lambda f: f.__name__
)
def test_the_peer_reads_ours(
    peer: Callable[..., Any], tmp_path: Path, make: Callable[[], PTEFile]
) -> None:
    path = tmp_path / "ours.pte"
    path.write_bytes(write_pte(make()))
    agree(peer("dump", path), make())


def test_the_peer_runs_ours(peer: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "add.pte"
    path.write_bytes(write_pte(cases.add_program()))
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    answer = peer("call", path, x.tolist())
    np.testing.assert_array_equal(answer, x + np.arange(6).reshape(2, 3) + 10)


@pytest.mark.parametrize("model", MODELS)
def test_the_peers_files_come_back_and_run(
    peer: Callable[..., Any], exported: Path, tmp_path: Path, model: str
) -> None:
    path = exported / f"{model}.pte"
    theirs = read_pte(path.read_bytes())
    agree(peer("dump", path), theirs)

    ours = tmp_path / "ours.pte"
    ours.write_bytes(write_pte(theirs))
    again = read_pte(ours.read_bytes())
    assert again.program == theirs.program
    agree(peer("dump", ours), theirs)

    data = exported / f"{model}.ptd"
    more = []
    if data.exists():
        more = [tmp_path / "ours.ptd"]
        more[0].write_bytes(write_ptd(read_ptd(data.read_bytes())))
    assert peer("run", ours, exported / f"{model}.npz", *more) == "equal"


def test_what_the_peers_files_hold(exported: Path) -> None:
    """The peer's files contain the kinds of data that the tests above are meant to cover."""
    files = {model: read_pte((exported / f"{model}.pte").read_bytes()) for model in MODELS}
    assert bytes(as_bytes(files["mlp"].mutable_data[1])) == np.float32([3, -1, 0.5]).tobytes()
    names = [plan.name for plan in files["mlp"].program.execution_plan]
    assert names == ["forward", "version", "ratio", "on", "label"]
    assert len(files["mlp"].constants) > 4
    kinds = {
        v.val.shape_dynamism
        for v in files["dynamic"].program.execution_plan[0].values
        if isinstance(v.val, fb.Tensor)
    }
    assert fb.TensorShapeDynamism.DYNAMIC_BOUND in kinds
    for model, location in (
        ("delegated", fb.DataLocation.SEGMENT),
        ("inline", fb.DataLocation.INLINE),
    ):
        delegates = files[model].program.execution_plan[0].delegates
        assert [d.processed.location for d in delegates] == [location]
        assert files[model].named_data
    assert set(read_ptd((exported / "external.ptd").read_bytes())) == {
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    }


def test_data_files_both_ways(peer: Callable[..., Any], exported: Path, tmp_path: Path) -> None:
    def ours(tensors: dict[str, NamedTensor]) -> Any:
        return {
            key: [{"hex": bytes(as_bytes(t.data)).hex()}, plain(t.layout)]
            for key, t in tensors.items()
        }

    theirs = read_ptd((exported / "external.ptd").read_bytes())
    assert peer("dump", exported / "external.ptd") == ours(theirs)

    layout = TensorLayout(fb.ScalarType.HALF, [2, 3], [1, 0])
    tensors = {
        "a": NamedTensor(np.arange(6, dtype=np.float16), layout),
        "b": NamedTensor(b"opaque", None, alignment=1024),
        "c": NamedTensor(np.arange(6, dtype=np.float16), layout),
    }
    path = tmp_path / "ours.ptd"
    path.write_bytes(write_ptd(tensors))
    assert peer("dump", path) == ours(tensors)
