"""Rushlight and ExecuTorch in one process: `together.py FIRST`, in `.venv-together`.

FIRST, "rushlight" or "executorch", is imported and used first; then both export, each for itself
and in turn, and both runtimes run what the other one made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


class Images(torch.nn.Module):
    """Convolution, layouts and a change of type: operators that both packages define."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.convolution(x).relu().to(memory_format=torch.channels_last)
        return y.double(), y.clone(memory_format=torch.contiguous_format)


torch.manual_seed(0)
INPUTS = (torch.randn(2, 3, 8, 8),)
SIZES = ({0: torch.export.Dim("batch", min=1, max=4)},)
MODEL = Images().eval()
QUANTIZED = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
).eval()


def rushlight_exports(backend: str, quantize: str | None = None) -> bytes:
    import rushlight

    if quantize is None:
        return rushlight.export(MODEL, INPUTS, dynamic_shapes=SIZES, backend=backend).buffer
    return rushlight.export(
        QUANTIZED, INPUTS, backend=backend, quantize=quantize, calibrate=[INPUTS]
    ).buffer


def executorch_exports(xnnpack: bool, quantize: bool = False) -> bytes:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    if quantize:
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
        prepared = prepare_pt2e(torch.export.export(QUANTIZED, INPUTS).module(), quantizer)
        prepared(*INPUTS)
        program = torch.export.export(convert_pt2e(prepared), INPUTS)
    else:
        program = torch.export.export(MODEL, INPUTS, dynamic_shapes=SIZES)
    partitioners = [XnnpackPartitioner()] if xnnpack else []
    return to_edge_transform_and_lower(program, partitioner=partitioners).to_executorch().buffer


def rushlight_runs(program: bytes) -> list[np.ndarray]:
    import rushlight

    results = rushlight.load(program)(*INPUTS)
    return [np.asarray(y) for y in (results if isinstance(results, tuple) else (results,))]


def executorch_runs(program: bytes) -> list[np.ndarray]:
    import executorch.kernels.quantized  # noqa: F401  (registers them)
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(program).load_method("forward")
    return [y.numpy() for y in method.execute(list(INPUTS))]


def check(program: bytes, runs: Callable[[bytes], list[np.ndarray]]) -> None:
    """Hold what a program gives to eager."""
    got = runs(program)
    want, tolerance = (MODEL(*INPUTS), 1e-4) if len(got) == 2 else ([QUANTIZED(*INPUTS)], 0.1)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), atol=tolerance)


def rushlights_turn() -> list[bytes]:
    programs = [rushlight_exports(backend) for backend in ("portable", "xnnpack", "cpu")]
    programs += [rushlight_exports(backend, "int8") for backend in ("xnnpack", "portable")]
    for program in programs:
        check(program, rushlight_runs)
    return [programs[i] for i in (0, 1, 3)]  # which ExecuTorch runs as well


def executorchs_turn() -> list[bytes]:
    programs = [executorch_exports(xnnpack) for xnnpack in (False, True)]
    programs.append(executorch_exports(True, quantize=True))
    for program in programs:
        check(program, executorch_runs)
    return programs


TURNS = {
    "rushlight": (rushlights_turn, executorch_runs),
    "executorch": (executorchs_turn, rushlight_runs),
}


def old_graphs() -> Callable[[], None]:
    """A graph that Rushlight made before; what it must still do later."""
    import rushlight
    from rushlight.ir.custom_ops.dim_order import to_dim_order_copy

    edge = rushlight.to_edge(torch.export.export(MODEL, INPUTS, dynamic_shapes=SIZES))

    def still_work() -> None:
        assert torch.ops.dim_order_ops._to_dim_order_copy.default is to_dim_order_copy
        for got, want in zip(
            edge.exported_program().module()(*INPUTS), MODEL(*INPUTS), strict=True
        ):
            assert torch.equal(got, want)
        check(edge.to_executorch().buffer, rushlight_runs)

    return still_work


if __name__ == "__main__":
    first = sys.argv[1]
    [second] = set(TURNS) - {first}
    still_work = old_graphs() if first == "rushlight" else None
    made = {first: TURNS[first][0]()}
    assert second not in sys.modules, f"{first} imports {second}"
    made[second] = TURNS[second][0]()
    for name, programs in made.items():
        for program in programs:
            check(program, TURNS[name][1])
    if still_work is not None:
        still_work()
    TURNS[first][0]()
    print("both work")
