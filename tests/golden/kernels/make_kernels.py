"""Writes programs whose delegates of the cpu backend call a kernel of the user's own.

    python tests/golden/kernels/make_kernels.py

A file that is there is kept: it must load for ever. A new version of the payload gets a new file,
if calls change. expected.json has eager PyTorch's outputs for inputs of ones of some sizes.
"""

from __future__ import annotations

import json
from itertools import cycle, repeat
from pathlib import Path

import numpy as np
import torch
from torch import nn

import rushlight as rl
from rushlight import runtime
from rushlight.backends.cpu import CpuPartitioner
from rushlight.capture import capture
from rushlight.schema import cpu_engine

FOLDER = Path(__file__).parent
NAME, VERSION = "cpu_engine_v10_kernel_call", 10
# Every kind of argument that a call may have.
MIX = (
    "golden::mix(Tensor[] xs, Tensor?[] ys, Tensor? bias, int[] picks, float[]? scales, Scalar by, "
    "bool negate, bool[2] flips, str mode, SymInt n) -> (Tensor, Tensor)"
)
SIZES = [(3, 4), (1, 4), (2, 4)]


@rl.custom_op(MIX)
def mix(  # type: ignore[no-untyped-def]
    xs, ys, bias, picks, scales, by, negate, flips, mode, n
) -> tuple[torch.Tensor, torch.Tensor]:
    """A sum of some of the tensors; and how many these are, with 100 more for the mode "twice"."""
    signs = [-by if negate != flip else by for flip, _ in zip(cycle(flips), picks, strict=False)]
    weights = [sign * scale for sign, scale in zip(signs, scales or repeat(1.0), strict=False)]
    parts = [xs[pick] * weight for pick, weight in zip(picks, weights, strict=True)]
    total = sum([*parts, *(y for y in ys if y is not None)], start=n if bias is None else bias + n)
    count = len(picks) + (100 if mode == "twice" else 0)
    return torch.as_tensor(total), torch.full((), count, dtype=torch.int64)


class Mixed(nn.Module):
    """Calls between operators of the engine."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Of `x` with any number of rows."""
        y = torch.relu(x) * 2
        lists, flips, rows = ([1, 0, 1], [0.5, 1.0, 2.0]), [True, False], x.shape[0]
        first, count = mix([x, y], [None, y], None, *lists, 0.25, False, flips, "twice", rows)
        second, _ = mix([first], [y], x, [0], None, 2, True, flips, "once", 7)
        return torch.sigmoid(first), count, second - y


def main() -> None:
    """Write what is missing."""
    path = FOLDER / f"{NAME}.pte"
    if path.exists():
        return
    runtime.register_kernel(MIX, lambda *_: np.zeros(()), in_delegates=True)  # never called
    rows = torch.export.Dim("rows", max=3)
    exported = capture(Mixed(), (torch.ones(SIZES[0]),), dynamic_shapes=({0: rows},))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    module = edge.exported_program().graph_module
    nodes = list(module.graph.nodes)
    [lowered] = [getattr(module, n.target) for n in nodes if n.op == "get_attr"]
    payload = cpu_engine.unpack(lowered.processed_bytes)
    calls = [n for n in payload.nodes if isinstance(n.operation, cpu_engine.KernelCall)]
    assert payload.version == VERSION
    assert len(calls) == 2
    path.write_bytes(bytes(edge.to_executorch().buffer))
    outputs = {
        ",".join(map(str, size)): [one.tolist() for one in Mixed()(torch.ones(size))]
        for size in SIZES
    }
    (FOLDER / "expected.json").write_text(json.dumps(outputs, indent=1) + "\n")


if __name__ == "__main__":
    main()
