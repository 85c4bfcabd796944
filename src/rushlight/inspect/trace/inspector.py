"""`Inspector`: what took the time in a trace, and which values were recorded."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rushlight.errors import Code, LoadError, RunError
from rushlight.inspect.trace.etdump import read_etdump
from rushlight.inspect.trace.events import (
    FRAMEWORK_EVENTS,
    Converter,
    Event,
    EventBlock,
    Parser,
    TimeScale,
    blocks_of,
    time_factor,
)
from rushlight.inspect.trace.events import pandas as _pandas
from rushlight.inspect.trace.expected import add_expected, add_reference_outputs
from rushlight.inspect.trace.identity import fit_of
from rushlight.inspect.trace.numeric_gap import (
    Distance,
    NumericGap,
    distance_of,
    gaps_of,
    reference_of,
)
from rushlight.inspect.trace.origins import Origin, Origins, ProgramOrigins, RecordOrigins
from rushlight.inspect.trace.statistics import (
    Group,
    Key,
    OperatorChange,
    Outlier,
    changes_between,
    groups_of,
    operators_of,
    outliers_of,
)
from rushlight.runtime.source import map_file
from rushlight.serialize.bundle import is_bundle, program_in, read_bundle
from rushlight.serialize.etrecord import Source

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from rushlight.record.etrecord import ETRecord

AnyPath = str | os.PathLike[str]
_NOT_PRINTED = (
    *("raw", "delegate_debug_identifier", "stack_traces", "module_hierarchy", "debug_data"),
)


class Inspector:
    """The events of a trace, with the lines of Python that they come from.

    The arguments are those of ExecuTorch's Inspector; `program` and
    `debug_buffer` are ours.

    Args:
        etdump_path: the path of an ETDump.
        etdump_data: or its bytes.
        etrecord: an ETRecord, its path or an open binary file: gives operators, modules and stack
            traces.
        source_time_scale: the unit of the trace; nanoseconds unless the platform's clock has
            another.
        target_time_scale: the unit of all times that are shown.
        debug_buffer_path: the path of the debug buffer, for values.
        delegate_metadata_parser: makes what is shown from a backend's metadata of all runs.
        delegate_time_scale_converter: makes a time of the target's unit from the name of a
            delegate's event and a time; None: as for all events.
        enable_module_hierarchy: accepted as ExecuTorch does; modules are always known.
        reference_graph_name: the ETRecord's graph whose nodes are shown.
        program: the path of the program (.pte), whose own map gives lines and modules without an
            ETRecord; or of the bundled program (.bpte) whose test cases were traced, whose expected
            outputs become each block's `reference_output`.
        debug_buffer: the bytes of the debug buffer, instead of its path.

    Attributes:
        event_blocks: what the trace has, runs with the same events put together.
        mismatches: why runs are not of the program or record that was given, in words; empty if
            all are. Such runs are shown without operators, modules and lines, with a
            RuntimeWarning.

    Raises:
        LoadError: a file cannot be read, or does not belong to the trace.
        RunError: the arguments contradict each other.
    """

    def __init__(
        self,
        etdump_path: AnyPath | None = None,
        etdump_data: bytes | None = None,
        etrecord: Source | ETRecord | None = None,
        source_time_scale: TimeScale = TimeScale.NS,
        target_time_scale: TimeScale = TimeScale.MS,
        debug_buffer_path: AnyPath | None = None,
        delegate_metadata_parser: Parser | None = None,
        delegate_time_scale_converter: Converter | None = None,
        enable_module_hierarchy: bool = False,
        reference_graph_name: str = "edge_dialect_exported_program",
        *,
        program: AnyPath | None = None,
        debug_buffer: bytes | None = None,
    ) -> None:
        if (etdump_path is None) == (etdump_data is None):
            raise RunError(
                "give etdump_path or etdump_data, one of them", code=Code.INVALID_ARGUMENT
            )
        if etrecord is not None and program is not None:
            raise RunError(
                "give etrecord or program: each says where events come from",
                code=Code.INVALID_ARGUMENT,
            )
        time_factor(source_time_scale, target_time_scale)
        dump = read_etdump(etdump_path if etdump_path is not None else etdump_data or b"")
        buffer = debug_buffer
        if debug_buffer_path is not None:
            buffer = _read(debug_buffer_path, "debug buffer")
        self.event_blocks: list[EventBlock] = blocks_of(
            *(dump, buffer, source_time_scale, target_time_scale),
            *(delegate_time_scale_converter, delegate_metadata_parser),
        )
        self._etrecord = etrecord
        self._origins: Origins | None = None
        self.mismatches: list[str] = []
        if etrecord is not None:
            source = _source_of(etrecord)
            self._origins = RecordOrigins(source, _graph_name(reference_graph_name))
            add_reference_outputs(self.event_blocks, source)
        elif program is not None:
            content = map_file(program)
            self._origins = ProgramOrigins(program_in(content))
            if is_bundle(content):
                add_expected(self.event_blocks, read_bundle(content))
        for block in self.event_blocks:
            self._find_origins(block)
        if self.mismatches:
            warnings.warn(
                f"the trace is of another program: {'; '.join(self.mismatches)}. Its events are "
                f"shown without lines; give the {'program' if etrecord is None else 'ETRecord'} of "
                "the same export",
                RuntimeWarning,
                stacklevel=2,
            )

    def _find_origins(self, block: EventBlock) -> None:
        """Where the events of a block come from, unless it is of another program."""
        if self._origins is None:
            return
        method = block.method
        if block.name == "Execute":
            fit = fit_of(block, self._origins)
            method = fit.method
            if fit.mismatch:
                self.mismatches.append(fit.mismatch)
                return
        for event in block.events:
            if event.instruction is not None:
                origin = self._origins.origin(
                    method, event.instruction, event.delegate_debug_identifier
                )
                self._set_origin(event, origin)

    def _set_origin(self, event: Event, origin: Origin | None) -> None:
        if origin is None:
            return
        event.debug_handles = origin.handles
        event.num_outputs = origin.num_outputs
        if event.is_delegated_op or event.name == "DELEGATE_CALL":
            event.delegate_backend_name = origin.backend
        for node in origin.nodes:
            event.stack_traces.setdefault(node.name, node.stack_trace)
            event.module_hierarchy.setdefault(node.name, dict(node.modules))
            event.op_types.append(node.op)

    @property
    def origins(self) -> Origins | None:
        """Where events come from: the program or the record; None without one."""
        return self._origins

    @property
    def dropped(self) -> tuple[int, int]:
        """How many events and values found no room in the recorder; (0, 0) if all did, or the
        trace is ExecuTorch's, which does not tell."""
        counts = dict.fromkeys(FRAMEWORK_EVENTS[-2:], 0)
        for block in self.event_blocks:
            for event in block.events if block.name == "Dropped" else ():
                if event.name in counts and event.perf_data is not None:
                    factor = time_factor(block.source_time_scale, block.target_time_scale)
                    counts[event.name] = round(event.perf_data.raw[0] * factor)
        events, values = counts.values()
        return events, values

    def to_dataframe(
        self, include_units: bool = True, include_delegate_debug_data: bool = False
    ) -> Any:
        """The events of all blocks as a pandas DataFrame, a row for each.

        Raises:
            RunError: pandas is not installed.
        """
        frames = [
            block.to_dataframe(include_units, include_delegate_debug_data)
            for block in self.event_blocks
        ]
        if not any(block.events for block in self.event_blocks):  # the columns, without rows
            return EventBlock("", [Event("")]).to_dataframe(include_units)[:0]
        return _pandas().concat(frames, ignore_index=True)

    def print_data_tabular(
        self,
        file: IO[str] | None = None,
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """Print a table of the operators of all blocks to a file, or else to standard output."""
        frame = self._shown(include_units, include_delegate_debug_data)
        print(frame.to_string(), file=file)

    def save_data_to_tsv(
        self,
        file: IO[str] | AnyPath,
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """Write the table that `print_data_tabular` prints, with tabs between its columns."""
        self._shown(include_units, include_delegate_debug_data).to_csv(file, sep="\t")

    def _shown(self, include_units: bool, include_delegate_debug_data: bool) -> Any:
        frame = self.to_dataframe(include_units, include_delegate_debug_data)
        frame = frame.drop(columns=list(_NOT_PRINTED))
        kept = frame[~frame["event_name"].str.contains("OPERATOR_CALL")]
        return kept.reset_index(drop=True)

    def find_total_for_module(self, module_name: str) -> float:
        """The mean time of all operators in the modules whose paths contain a name, in the
        target's unit."""
        total = 0.0
        for block in self.event_blocks:
            for event in operators_of(block):
                paths = [path for modules in event.module_hierarchy.values() for path in modules]
                if event.perf_data is not None and any(module_name in path for path in paths):
                    total += event.perf_data.avg
        return total

    def group_by(self, by: Key) -> list[Group]:
        """The operators of all runs put together, the longest first.

        Args:
            by: "module", "line", "kind" (the backend, or kernels) or "operator".

        Raises:
            RunError: `by` is none of these.
        """
        return groups_of(self._runs(), by)

    def outliers(self) -> list[Outlier]:
        """Times that are far above the others of the same event, the farthest first."""
        return outliers_of(self._runs())

    def compare(self, after: Inspector) -> list[OperatorChange]:
        """The operators of this trace and another of the same model, the greatest change of time
        first, each with the confidence interval of its ratio, its module and its line."""
        return changes_between(self._runs(), after._runs())

    def _runs(self) -> list[EventBlock]:
        return [block for block in self.event_blocks if block.name == "Execute"]

    def calculate_numeric_gap(
        self,
        distance: str | Distance,
        disable_debug_handle_valdiation: bool = False,
        reference_graph: str | None = None,
    ) -> Any:
        """How far each recorded value is from that of the recorded program, as a DataFrame.

        `rushlight debug` says more: it compares each operator on the run's own inputs.

        Args:
            distance: "MSE", "L1", "SNR" (in dB) or "cosine", or a function from two arrays to a
                number.
            disable_debug_handle_valdiation: accepted as ExecuTorch does; nodes without handles are
                left out.
            reference_graph: the record's graph that is compared with, "NAME" for `forward` or
                "NAME/METHOD", which the representative inputs must be of; the edge program by
                default.

        Raises:
            RunError: there is no ETRecord, it has no representative inputs, or an argument is
                wrong.
        """
        return _pandas().DataFrame(
            [vars(gap) for gap in self.numeric_gaps(distance, reference_graph)]
        )

    def numeric_gaps(
        self, distance: str | Distance, reference_graph: str | None = None
    ) -> list[NumericGap]:
        """The rows of `calculate_numeric_gap`, which needs pandas."""
        wanted = distance_of(distance)
        if hasattr(wanted, "inspector"):
            wanted.inspector = self
        record = self._record()
        if record.representative_inputs is None:
            raise RunError(
                "the ETRecord has no representative inputs: call "
                "ETRecord.update_representative_inputs with the inputs of the run, and save it",
                code=Code.INVALID_STATE,
            )
        program = reference_of(record, reference_graph)
        method = (reference_graph or "").partition("/")[2] or "forward"
        blocks = [
            block
            for block in self.event_blocks
            if not block.method or block.method.partition("@")[0] == method
        ]
        return gaps_of(blocks, program, record.representative_inputs, wanted)

    def get_exported_program(self, graph: str | None = None) -> ExportedProgram:
        """A program of the ETRecord.

        Args:
            graph: as `calculate_numeric_gap` takes it.

        Raises:
            RunError: there is no ETRecord, or it has no such program.
        """
        return reference_of(self._record(), None if graph is None else _graph_name(graph))

    def _record(self) -> ETRecord:
        if self._etrecord is None:
            raise RunError(
                "numeric gaps and programs need an ETRecord: give etrecord=, of what ran",
                code=Code.INVALID_STATE,
            )
        from rushlight.record.etrecord import parse_etrecord

        record = self._etrecord
        if hasattr(record, "save"):
            return cast("ETRecord", record)
        return parse_etrecord(record)

    def get_op_list(
        self, event_block: str, show_delegated_ops: bool = True
    ) -> dict[str, list[Event]]:
        """By operator of the model, the events of a block that come from it.

        Args:
            event_block: the block's name.
            show_delegated_ops: whether events inside delegates are among them.
        """
        by_op: dict[str, list[Event]] = {}
        for block in self.event_blocks:
            if block.name != event_block:
                continue
            for event in operators_of(block):
                if event.is_delegated_op and not show_delegated_ops:
                    continue
                for op in dict.fromkeys(event.op_types):
                    by_op.setdefault(op, []).append(event)
        return by_op


def _source_of(etrecord: Source | ETRecord) -> Source:
    """Where a record is read from: its path, or a file with its content."""
    if not hasattr(etrecord, "save"):
        return etrecord
    file = io.BytesIO()
    etrecord.save(file)
    return file


def _graph_name(name: str) -> str:
    # ExecuTorch's own name for the edge program among the graphs of an Inspector.
    return "edge_dialect_exported_program" if name == "edge_dialect_graph_module" else name


def _read(path: AnyPath, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise LoadError(
            f"the {what} cannot be read: {error.strerror}", code=Code.ACCESS_FAILED,
            where=os.fspath(path),
        ) from error  # fmt: skip
