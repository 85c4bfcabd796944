"""How far a run's values are from those of the recorded program: needs torch and an ETRecord."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.errors import Code, RunError
from rushlight.inspect.trace.events import Event, EventBlock

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node

    from rushlight.record.etrecord import ETRecord

Array = np.ndarray[Any, np.dtype[Any]]
Distance = Callable[[Array, Array], float]
"""From eager's value and the run's, of float64 and equal sizes, to a number."""


def _mse(wanted: Array, value: Array) -> float:
    return float(np.square(wanted - value).mean())


def _l1(wanted: Array, value: Array) -> float:
    return float(np.abs(wanted - value).sum())


def _snr(wanted: Array, value: Array) -> float:
    noise = float(np.square(wanted - value).mean())
    signal = float(np.square(wanted).mean())
    return math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf


def _cosine(wanted: Array, value: Array) -> float:
    norm = float(np.linalg.norm(wanted) * np.linalg.norm(value))
    return float(wanted @ value) / norm if norm else math.nan


DISTANCES: dict[str, Distance] = {"MSE": _mse, "L1": _l1, "SNR": _snr, "COSINE": _cosine}


@dataclass(frozen=True)
class NumericGap:
    """One value of a run beside that of the recorded program.

    Attributes:
        aot_ops: the nodes that it was made from, in order.
        aot_intermediate_output: the last one's value.
        runtime_ops: the event's name.
        runtime_intermediate_output: the run's value.
        gap: the distance, in a list as ExecuTorch gives it.
        stacktraces: by node, the lines of Python.
    """

    aot_ops: list[str]
    aot_intermediate_output: Any
    runtime_ops: list[str]
    runtime_intermediate_output: Any
    gap: list[float]
    stacktraces: dict[str, str | None]


def distance_of(name: str | Distance) -> Distance:
    """The distance of a name of `DISTANCES`, to which NaN is 0 as in ExecuTorch, or the function
    itself.

    Raises:
        RunError: there is none of that name.
    """
    if callable(name):
        return name
    if name.strip().upper() not in DISTANCES:
        raise RunError(
            f"distance={name!r}: choose one of {', '.join(DISTANCES)}, or give a function",
            code=Code.INVALID_ARGUMENT,
        )
    distance = DISTANCES[name.strip().upper()]
    return lambda wanted, value: distance(_without_nan(wanted), _without_nan(value))


def _without_nan(array: Array) -> Array:
    """The array with numbers for NaN and, where there is one, for infinities."""
    return np.nan_to_num(array) if np.isnan(array).any() else array


_METRICS: dict[str, Distance] = {"snr": _snr, "mse": _mse, "cosine_similarity": _cosine}


def compare_results(
    reference_output: Sequence[Any], run_output: Sequence[Any], metrics: Sequence[str] | None = None
) -> dict[str, list[float | None]]:
    """Print and return how far the outputs of a run are from those that are expected.

    Args:
        reference_output, run_output: of `EventBlock`, or other arrays or tensors; what is neither
            is not compared and gives None.
        metrics: some of "snr" (in dB), "mse" and "cosine_similarity"; all by default.

    Raises:
        RunError: there is no such metric, or the outputs have other numbers or sizes.
    """
    for name in metrics or ():
        if name not in _METRICS:
            raise RunError(
                f"metrics has {name!r}: choose some of {', '.join(_METRICS)}",
                code=Code.INVALID_ARGUMENT,
            )
    pairs = _pairs(reference_output, run_output)
    if len(reference_output) != len(run_output) or any(
        a is not None and b is not None and a.shape != b.shape for a, b in pairs
    ):
        raise RunError(
            f"the outputs have the sizes {_sizes(run_output)}, and {_sizes(reference_output)} are "
            "expected: give outputs of the same method on the same inputs",
            code=Code.INVALID_ARGUMENT,
        )
    results = {n: distances(n, reference_output, run_output) for n in metrics or _METRICS}
    for name, values in results.items():
        print(f"{name}: {', '.join('-' if v is None else f'{v:.5g}' for v in values)}")
    return results


def distances(
    metric: str, reference_output: Sequence[Any], run_output: Sequence[Any]
) -> list[float | None]:
    """How far each output is from the one that is expected, as in `compare_results`."""
    pairs = _pairs(reference_output, run_output)
    return [_distance(_METRICS[metric], *pair) for pair in pairs]


def _pairs(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Array | None, Array | None]]:
    return [(_array(a), _array(b)) for a, b in zip(one, other, strict=False)]


def _distance(metric: Distance, wanted: Array | None, value: Array | None) -> float | None:
    if wanted is None or value is None:
        return None
    return metric(*(array.astype(np.float64).reshape(-1) for array in (wanted, value)))


def _sizes(outputs: Sequence[Any]) -> str:
    arrays = map(_array, outputs)
    return ", ".join("none" if a is None else str(list(a.shape)) for a in arrays) or "none"


def reference_of(record: ETRecord, graph: str | None) -> ExportedProgram:
    """The program whose values are compared.

    Args:
        record: with representative inputs.
        graph: "exported_program", "edge_dialect_exported_program", or the name of a further one;
            None: the edge program.

    Raises:
        RunError: the record does not have it.
    """
    programs = {f"{name}/{method}": p for name, method, p in _edge(record)}
    programs |= record.graph_map or {}
    if record.exported_program is not None:
        programs["exported_program"] = record.exported_program
        if graph == "exported_program":
            _give_handles(record.exported_program, record)
    wanted = graph or "edge_dialect_exported_program"
    for name in (wanted, f"{wanted}/forward", wanted.removesuffix("/forward")):
        if name in programs:
            return programs[name]
    raise RunError(
        f"the record has no graph {wanted!r}; it has {', '.join(sorted(programs))}",
        code=Code.INVALID_ARGUMENT,
    )


def _give_handles(captured: ExportedProgram, record: ETRecord) -> None:
    from rushlight.record.handles import propagate_back_debug_handle

    if "forward" in record.edge_programs:
        graph_id = record.export_graph_id or 0
        propagate_back_debug_handle(captured, graph_id, record.edge_programs["forward"], True)


def _edge(record: ETRecord) -> Iterable[tuple[str, str, ExportedProgram]]:
    for method, program in record.edge_programs.items():
        yield "edge_dialect_exported_program", method, program


def gaps_of(
    blocks: Iterable[EventBlock], program: ExportedProgram, inputs: Any, distance: Distance
) -> list[NumericGap]:
    """The values of all runs that can be compared, in their order.

    Args:
        blocks: events with debug handles and values.
        program: the recorded program, whose nodes have debug handles.
        inputs: the inputs of the run, flat.
        distance: see `Distance`.

    Raises:
        RunError: no event has a value.
    """
    blocks = list(blocks)
    recorded = (value for block in blocks for event in block.events for value in event.debug_data)
    if all(_array(value) is None for value in recorded):
        raise RunError(
            "the trace has no values of operators to compare: record them with "
            "TraceOptions(values='all'), and give their file, NAME.etdp.values, as "
            "debug_buffer_path",
            code=Code.INVALID_STATE,
        )
    values = _values(program, inputs)
    # A call with several results is compared by its first one, not by those that are taken of it.
    computed = [
        node
        for node in program.graph.nodes
        if node.name in values and node.target is not operator.getitem
    ]
    gaps = []
    for event, nodes in (pair for block in blocks for pair in _paired(block, computed)):
        wanted = _array(values[nodes[-1].name])
        value = next((v for v in map(_array, event.debug_data) if _fits(v, wanted)), None)
        if wanted is None or value is None:
            continue
        gaps.append(
            NumericGap(
                [node.name for node in nodes],
                values[nodes[-1].name],
                [event.name],
                value.reshape(wanted.shape),
                [distance(*(a.astype(np.float64).reshape(-1) for a in (wanted, value)))],
                {node.name: node.meta.get("stack_trace") for node in nodes},
            )
        )
    return gaps


def _paired(block: EventBlock, nodes: Iterable[Node]) -> Iterator[tuple[Event, list[Node]]]:
    """The events of a run whose values are those of nodes, each with its nodes in their order.

    A value is its last node's. Of events with that node's handle, as all parts of a decomposed call
    have, only the last one gives it: the values of the others have no counterpart.
    """
    by_handle: dict[int, list[tuple[int, Node]]] = {}
    for at, node in enumerate(nodes):
        if "debug_handle" in node.meta:
            by_handle.setdefault(int(node.meta["debug_handle"]), []).append((at, node))
    events = [event for event in block.events if not event.name.endswith("_CALL")]
    last = {handle: event for event in events for handle in _handles(event)}
    for event in events:
        own = {handle: by_handle[handle] for handle in _handles(event) if handle in by_handle}
        if own and last[max(own, key=lambda handle: own[handle][-1][0])] is event:
            nodes_of_it = sorted(pair for some in own.values() for pair in some)
            yield event, [node for _, node in nodes_of_it]


def _handles(event: Event) -> list[int]:
    handles = event.debug_handles
    if event.instruction is None or handles is None:
        return []
    return [handles] if isinstance(handles, int) else list(handles)


def _fits(value: Array | None, wanted: Array | None) -> bool:
    return value is not None and wanted is not None and value.size == wanted.size


def _array(value: Any) -> Array | None:
    """A tensor's elements as an array; of several results, the first's. None for anything else."""
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if hasattr(value, "detach"):
        detached = value.detach()
        value = (detached.float() if detached.is_floating_point() else detached).numpy()
    return value if isinstance(value, np.ndarray) else None


def _values(program: ExportedProgram, inputs: Any) -> dict[str, Any]:
    """The values of a program's nodes."""
    import torch
    from torch.export.graph_signature import InputKind

    from rushlight.ir.recorder import Recorder

    remaining = iter(inputs)
    held = {**program.constants, **program.state_dict}
    flat = [
        next(remaining) if spec.kind == InputKind.USER_INPUT else held[str(spec.target)].clone()
        for spec in program.graph_signature.input_specs
    ]
    recorder = Recorder(program.graph_module)
    with torch.no_grad():
        recorder.run(*flat)
    return recorder.values
