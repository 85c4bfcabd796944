"""Our side of the benchmarks, in its own process; see ``tests/peer/executorch_side.py``.

Runs torch-free except for ``export`` and ``eager``, which PyTorch's own figures come from.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rushlight
from rushlight.peers import side

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for models.py


def export(program: str, pte: str, whole: bool = False) -> dict[str, float]:
    """Lower a traced program; the seconds that this takes without reading and writing.

    `whole` keeps attention and root-mean-square norm as one operator each.
    """
    import torch

    from rushlight.edge import EdgeCompileConfig

    exported = torch.export.load(program)
    aten = torch.ops.aten
    kept = [aten.scaled_dot_product_attention.default, aten.rms_norm.default]
    config = EdgeCompileConfig(preserve_ops=kept if whole else [])

    def lower() -> bytes:
        edge = rushlight.to_edge_transform_and_lower(exported, compile_config=config)
        return edge.to_executorch().buffer

    buffer, seconds = side.measure_once(lower)
    Path(pte).write_bytes(buffer)
    return seconds


def delegate(program: str, pte: str, leave: str) -> dict[str, float]:
    """Lower a traced program with a backend that stores nothing, which takes all operators but
    those whose names contain `leave`; the seconds that this takes, and the delegates' number."""
    import torch

    from rushlight import partition

    class Nothing(partition.BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> partition.PreprocessResult:
            return partition.PreprocessResult(b"nothing")

    exported = torch.export.load(program)
    spec = partition.DelegationSpec("Nothing", [])
    support = partition.DontPartition(leave, exact=False)
    partitioner = partition.SupportedOperatorPartitioner(spec, support)

    def lower() -> tuple[bytes, int]:
        edge = rushlight.to_edge_transform_and_lower(exported, partitioner=[partitioner])
        graph = edge.exported_program().graph
        return edge.to_executorch().buffer, len(partition.get_delegates(graph))

    (buffer, count), seconds = side.measure_once(lower)
    Path(pte).write_bytes(buffer)
    return {**seconds, "delegates": count}


def verify(program: str) -> dict[str, float]:
    """The seconds of a whole ``rushlight.export`` with its check against eager."""
    import torch

    exported = torch.export.load(program)
    return side.measure_once(lambda: rushlight.export(exported))[1]


def plan(program: str) -> dict[str, Any]:
    """Arena bytes and their lower bound, by memory id, and the strategies that won."""
    import torch

    lowered = rushlight.to_edge_transform_and_lower(torch.export.load(program)).to_executorch()
    method = lowered.lowered_method("forward")
    stats = method.plan_stats
    return {
        "arenas": dict(enumerate(method.arenas, start=1)),
        "lower_bound": {memory_id: bound for memory_id, (_, bound) in stats.items()},
        "strategy": ", ".join(name for name, _ in stats.values()),
    }


_CALLS: dict[tuple[str, str, str], side.Call] = {}


def run(pte: str, data: str, outputs: str) -> None:
    """Run a program and write its outputs ``out0`` ..."""
    import numpy as np

    results = rushlight.load(pte)(*side.read_inputs(data))
    listed = results if isinstance(results, list | tuple) else [results]
    np.savez(outputs, **{f"out{i}": x for i, x in enumerate(listed)})


def _call(pte: str, data: str, kind: str = "numpy") -> side.Call:
    """A call of the program's ``forward`` on its inputs, loaded once and kept."""
    if (pte, data, kind) not in _CALLS:
        module, inputs = rushlight.load(pte), side.read_inputs(data)
        if kind == "torch":
            import torch

            inputs = [torch.from_numpy(array) for array in inputs]
        _CALLS[pte, data, kind] = lambda: module(*inputs)
    return _CALLS[pte, data, kind]


def latency(pte: str, data: str, calls: int = 5, warmup: int = 1) -> list[float]:
    return side.measure_calls(_call(pte, data), int(calls), int(warmup))


def eager(model: str, calls: int = 5, warmup: int = 1) -> list[float]:
    """The same of the model in eager PyTorch."""
    if (model, "", "eager") not in _CALLS:
        import models
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        case = models.build(model)

        def call() -> None:
            with torch.inference_mode():
                case.module(*case.args, **case.kwargs)

        _CALLS[model, "", "eager"] = call
    return side.measure_calls(_CALLS[model, "", "eager"], int(calls), int(warmup))


def overhead(pte: str, data: str, calls: int, kind: str = "numpy") -> float:
    return side.measure_loop(_call(pte, data, kind), int(calls))


def load(pte: str, data: str) -> dict[str, float]:
    open_program = rushlight.load  # imports the runtime, which is not part of a load
    inputs = side.read_inputs(data)

    def load_all() -> side.Call:
        module = open_program(pte)
        return lambda: module(*inputs)

    return side.measure_load(load_all)


def sizes(pte: str, sizes: list[int]) -> dict[str, list[int]]:
    """Memory after calls with square images; for a fresh process. `resident` is what the module
    says that it has touched."""
    import numpy as np

    open_program = rushlight.load
    np.ones((1, 3, 8, 8), np.float32)
    resident = []

    def load_program() -> Callable[[int], None]:
        module = open_program(pte)

        def call(size: int) -> None:
            module(np.ones((1, 3, size, size), np.float32))
            resident.append(module.memory.resident)

        return call

    return {"anonymous": side.measure_sizes(load_program, sizes), "resident": resident}


COMMANDS: dict[str, side.Command] = {
    "export": export,
    "delegate": delegate,
    "verify": verify,
    "plan": plan,
    "run": run,
    "latency": latency,
    "eager": eager,
    "overhead": overhead,
    "load": load,
    "sizes": sizes,
}

if __name__ == "__main__":
    side.main(COMMANDS, __doc__)
