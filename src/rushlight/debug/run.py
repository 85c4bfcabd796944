"""`debug`: from a model to the first value of its program that departs from eager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from torch.export import ExportedProgram

from rushlight.capture import Model, capture
from rushlight.check.tolerance import tolerance_of
from rushlight.debug.compare import Gap, compare
from rushlight.debug.places import Place, places_of
from rushlight.debug.reference import Reference
from rushlight.debug.report import lines, page, sentence
from rushlight.errors import Code, ExportError, RunError
from rushlight.forms import Backend, forms_of
from rushlight.inspect import Inspector
from rushlight.pipeline import ExecutorchProgramManager, to_edge_transform_and_lower
from rushlight.runtime.forms import PORTABLE
from rushlight.runtime.load import load
from rushlight.runtime.trace import TraceOptions

METHOD = "forward"


@dataclass(frozen=True)
class Departures:
    """The values of a run beside eager's.

    Attributes:
        gaps: every value that was recorded, in the order of the run.
        manager: the program that ran.
        reference: eager's values.
        values: the run's, by node of the Edge graph.
        not_compared: the places of which no value could be compared, such as copies in loops.
        departing: the outputs that are further from eager's than the program's tolerance, with the
            reason.
    """

    gaps: Sequence[Gap]
    manager: ExecutorchProgramManager
    reference: Reference
    values: Mapping[str, Any]
    not_compared: Sequence[Place]
    departing: Mapping[int, str]

    @property
    def first(self) -> Gap | None:
        """The first value whose own place is at fault; None if there is none."""
        return next((gap for gap in self.gaps if gap.reason is not None), None)

    @property
    def verdict(self) -> str:
        """What is wrong, in a sentence; "" if nothing is."""
        if self.first is not None:
            return sentence(self.first)
        if not self.departing or not self.not_compared:  # roundings add up in what follows
            return ""
        places = ", ".join(dict.fromkeys(name for p in self.not_compared for name in p.names))
        outputs = "; ".join(f"output {i}: {reason}" for i, reason in self.departing.items())
        return (
            f"Every value that could be compared is right, but {outputs}. That arises in what was "
            f"not compared: {places}"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from lines(self.gaps, self.first, self.verdict, self.not_compared)

    def __str__(self) -> str:
        console = Console(width=160, color_system=None)
        with console.capture() as got:
            console.print(self)
        return got.get()

    def html(self) -> str:
        """All values as one self-contained HTML page, with a picture of each distribution."""
        return page(self.gaps, self.first, self.verdict)


def debug(
    model: Model,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backend: Backend = PORTABLE,
    quantize: Any = None,
    calibrate: Any = None,
    dynamic_shapes: Any = None,
    trace: tuple[bytes, bytes] | None = None,
) -> Departures:
    """Run a model's program, and compare every value between its operators with eager's.

    Args:
        model, args, kwargs, backend, quantize, calibrate, dynamic_shapes: as `rushlight.export`
            takes them.
        trace: an ETDump and its debug buffer of a run elsewhere on the same inputs, recorded with
            all values; None: the program runs here.

    Raises:
        ExportError: the model cannot be exported.
        RunError: the trace has no run of this program, or no values.
    """
    captured = _captured(model, args, kwargs, quantize, calibrate, dynamic_shapes)
    forms = forms_of(backend)
    if len(forms) > 1:
        raise ExportError(
            f"backend={backend!r} makes a program with several forms: debug each by itself",
            code=Code.INVALID_ARGUMENT,
        )
    [form] = forms
    edge = to_edge_transform_and_lower(captured, None, form.partitioners, generate_etrecord=True)
    manager = edge.to_executorch()
    record = manager.get_etrecord()
    if captured.example_inputs is not None:
        args, kwargs = captured.example_inputs
    reference = Reference(record.edge_programs[METHOD], args, kwargs or {})
    dump, values = trace or _traced(manager, args, kwargs or {})
    blocks = Inspector(etdump_data=dump, debug_buffer=values).event_blocks
    runs = [block for block in blocks if block.name == "Execute"]
    if not any(event.debug_data for block in runs[-1:] for event in block.events):
        raise RunError(
            "the trace has no run with the values of operators: record it with "
            "TraceOptions(values='all'), or rushlight_runner --etdump-values all",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    [plan] = [p for p in manager.executorch_program.execution_plan if p.name == METHOD]
    written = {at: len(values) for at, (_, values) in manager.instruction_nodes[METHOD].items()}
    places = list(places_of(runs[-1], plan, manager.debug_map, written))
    run_values: dict[str, Any] = {}
    tolerance = tolerance_of(captured)
    gaps = list(compare(reference, places, tolerance, run_values))
    departing = reference.departing(runs[-1].run_output, tolerance)
    return Departures(gaps, manager, reference, run_values, _left(places, gaps), departing)


def _left(places: Sequence[Place], gaps: Sequence[Gap]) -> list[Place]:
    """The places that computed something of which nothing was compared."""
    compared = {name for gap in gaps for name in (gap.node, *gap.place.names)}
    return [p for p in places if p.nodes and not compared.issuperset(p.names)]


def _captured(
    model: Model,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    quantize: Any,
    calibrate: Any,
    dynamic_shapes: Any,
) -> ExportedProgram:
    if quantize is None:
        return capture(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    from rushlight.quantization.workflow import quantised_from  # torchao is an extra

    return quantised_from(model, args, kwargs, calibrate, quantize, dynamic_shapes, None).program


def _traced(
    manager: ExecutorchProgramManager, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[bytes, bytes]:
    """The trace of a run here."""
    module = load(manager.buffer, trace=TraceOptions(values="all"))
    module[METHOD].call_flat(args, kwargs)
    return module.trace.to_bytes()
