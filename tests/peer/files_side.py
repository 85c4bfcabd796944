"""Real ExecuTorch as the oracle for files: runs in its own environment, imports nothing of ours.

Reads requests from standard input, a JSON list [command, arguments ...] a line, and answers each
with one line: ``answer:`` and JSON.

* ``export FOLDER``: exports small models, ``NAME.pte`` (and ``NAME.ptd``) with ``NAME.npz`` that
  holds the input ``x`` and what the runtime answers, ``out0`` ....
* ``dump FILE``: what the deserialisers of program and data files see.
* ``run PTE NPZ [PTD]``: runs ``forward`` on ``x`` of the .npz; "equal" if the answers are.
* ``call PTE VALUES``: runs ``forward`` on one float tensor given as a list; its first output.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.exir import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Mlp(torch.nn.Module):
    """Linear layers and a counter that starts at something else than zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.second = torch.nn.Linear(8, 3)
        self.register_buffer("counter", torch.tensor([3.0, -1.0, 0.5]))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.counter.add_(1)
        y = self.second(torch.relu(self.first(x))) + self.counter
        return y, torch.cat([y, x], dim=1)


class Dynamic(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).reshape(2 * x.shape[0], -1) * x.shape[0]


def _models() -> dict[str, tuple[Any, torch.Tensor]]:
    torch.manual_seed(0)
    mlp, x = Mlp(), torch.randn(2, 6)
    marked = ExecutorchBackendConfig(
        passes=[InitializedMutableBufferPass(["counter"])], emit_mutable_buffer_names=True
    )
    constants = {"version": 5, "ratio": 2.5, "on": True, "label": "grüße"}
    plain = EdgeCompileConfig(_check_ir_validity=False)
    rows = torch.export.Dim("rows", min=2, max=8)
    dynamic = torch.export.export(Dynamic(), (x,), dynamic_shapes=({0: rows},), strict=True)
    linear = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    external = ExecutorchBackendConfig(external_constants=True)

    def export(model: torch.nn.Module) -> Any:
        return torch.export.export(model, (x,), strict=True)

    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    delegated = to_edge_transform_and_lower(export(linear), partitioner=[XnnpackPartitioner()])
    inline = ExecutorchBackendConfig(extract_delegate_segments=False)
    return {
        "mlp": (to_edge(export(mlp), constants, plain).to_executorch(marked), x),
        "dynamic": (to_edge(dynamic).to_executorch(), x),
        "external": (to_edge(export(linear)).to_executorch(external), x),
        "delegated": (delegated.to_executorch(), x),
        "inline": (
            to_edge_transform_and_lower(
                export(linear), partitioner=[XnnpackPartitioner()]
            ).to_executorch(inline),
            x,
        ),
    }


def _run(pte: bytes, x: torch.Tensor, ptd: bytes | None = None) -> dict[str, np.ndarray]:
    module = _load_for_executorch_from_buffer(pte, ptd)
    return {f"out{i}": y.numpy().copy() for i, y in enumerate(module.run_method("forward", [x]))}


def export(folder: str) -> str:
    for name, (program, x) in _models().items():
        path = Path(folder, f"{name}.pte")
        path.write_bytes(program.buffer)
        program.write_tensor_data_to_file(folder)
        data = Path(folder, "_default_external_constant.ptd")
        ptd = None
        if data.exists():
            ptd = data.rename(path.with_suffix(".ptd")).read_bytes()
        np.savez(path.with_suffix(".npz"), x=x.numpy(), **_run(path.read_bytes(), x, ptd))
    return folder


def plain(value: Any) -> Any:
    """Dataclasses as [class name, {field: value}], bytes as {"hex": …}."""
    if is_dataclass(value):
        return [
            type(value).__name__,
            {f.name: plain(getattr(value, f.name)) for f in fields(value)},
        ]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"hex": bytes(value).hex()}
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    return int(value)


def dump(path: str) -> Any:
    data = Path(path).read_bytes()
    if path.endswith(".ptd"):
        payload = FlatTensorSerializer().deserialize(data)
        return {
            key: [plain(payload.buffers[entry.buffer_index]), plain(entry.tensor_layout)]
            for key, entry in payload.named_data.items()
        }
    file = deserialize_pte_binary(data)
    named = {}
    if file.named_data is not None:
        named = {
            key: plain(file.named_data.buffers[entry.buffer_index])
            for key, entry in file.named_data.pte_data.items()
        }
    return {"program": plain(file.program), "mutable": plain(file.mutable_data), "named": named}


def run(pte: str, npz: str, ptd: str | None = None) -> str:
    expected = dict(np.load(npz))
    x = torch.from_numpy(expected.pop("x"))
    got = _run(Path(pte).read_bytes(), x, Path(ptd).read_bytes() if ptd else None)
    same = got.keys() == expected.keys() and all(
        np.array_equal(got[key], expected[key]) for key in got
    )
    return "equal" if same else f"not equal: {got} {expected}"


def call(pte: str, values: Any) -> Any:
    x = torch.tensor(values, dtype=torch.float32)
    return _run(Path(pte).read_bytes(), x)["out0"].tolist()


if __name__ == "__main__":
    commands = {"export": export, "dump": dump, "run": run, "call": call}
    for line in sys.stdin:
        command, *args = json.loads(line)
        print("answer:" + json.dumps(commands[command](*args)), flush=True)
