"""`ETRecord`: what an export knew, in the archive that ExecuTorch's Inspector reads."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol, runtime_checkable

import torch
from torch._export.serde.serialize import SerializedArtifact
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.export import ExportedProgram

from rushlight.edge.operators import make_plain, plain
from rushlight.errors import Code, ExportError, LoadError
from rushlight.files import replacing
from rushlight.ir.source import debug_handles
from rushlight.record.exir_json import deserialized, serialized
from rushlight.schema.etrecord import EDGE, MARKER, Entry
from rushlight.serialize.etrecord import RecordArchive, Source, map_in

AnyFile = str | os.PathLike[str] | IO[bytes]


class EdgeManager(Protocol):
    """An `EdgeProgramManager`, which is of a later stage."""

    @property
    def methods(self) -> set[str]:
        """The methods' names."""

    def exported_program(self, method_name: str = ...) -> ExportedProgram:
        """The program of a method."""


@runtime_checkable
class BundledCases(Protocol):
    """A `Bundle`, which is of a later stage."""

    @property
    def methods(self) -> list[str]:
        """The methods that have test cases."""

    def torch_cases(self, method: str) -> list[tuple[list[Any], list[Any]]]:
        """The flat inputs and expected outputs of a method's test cases."""


Programs = ExportedProgram | Mapping[str, ExportedProgram] | EdgeManager
_EXPORTED = Entry.EXPORTED_PROGRAM.value
_COMPANIONS = ("", "_state_dict", "_constants", "_example_inputs")
_MAPS = frozenset({"debug_handle_map", "delegate_map", "instruction_id_to_num_outs_map"})
_GRAPH_ID = Entry.EXPORT_GRAPH_ID.value
_JSON = (*sorted(_MAPS), _GRAPH_ID)
_TENSORS = ("reference_outputs", "representative_inputs")
Map = dict[str, dict[Any, Any]]


def _alias(name: str) -> Any:
    """An attribute that is another one's value."""
    return property(
        lambda record: getattr(record, name), lambda record, value: setattr(record, name, value)
    )


class ETRecord:
    """The programs, maps and test values of an export, under ExecuTorch's names.

    Args:
        exported_program: the captured program; None if it is not recorded.
        export_graph_id: a number that tells its graph from others; None without one.
        edge_dialect_program: the program before delegation, with debug handles, or several by
            method.
        graph_map: further programs, by "NAME/METHOD".

    Attributes:
        exported_program, export_graph_id: as given.
        edge_programs: the programs before delegation, by method.
        debug_handle_map: {method: {instruction: handle, or those of the delegate's nodes}}; of a
            record that was read, instructions are texts, as in the archive.
        delegate_map: {method: {instruction: {"name": backend, "delegate_map": {place: handles}}}}.
        instruction_id_to_num_outs_map: {method: {instruction: outputs of its delegate}}.
        reference_outputs: {method: the expected outputs of each of its test cases}.
        representative_inputs: the inputs of a test case of `forward`.

    ExecuTorch's names of the last five, which it also takes as arguments, begin with underscores.
    """

    def __init__(
        self,
        exported_program: ExportedProgram | None = None,
        export_graph_id: int | None = None,
        edge_dialect_program: ExportedProgram | Mapping[str, ExportedProgram] | None = None,
        graph_map: Mapping[str, ExportedProgram] | None = None,
        _debug_handle_map: Map | None = None,
        _delegate_map: Map | None = None,
        _instruction_id_to_num_outs_map: Map | None = None,
        _reference_outputs: dict[str, list[Any]] | None = None,
        _representative_inputs: list[Any] | None = None,
    ) -> None:
        self.exported_program = exported_program
        self.export_graph_id = export_graph_id
        self.edge_programs = (
            {} if edge_dialect_program is None else _by_method(edge_dialect_program)
        )
        self._further = dict(graph_map or {})
        self.debug_handle_map = _debug_handle_map
        self.delegate_map = _delegate_map
        self.instruction_id_to_num_outs_map = _instruction_id_to_num_outs_map
        self.reference_outputs = _reference_outputs
        self.representative_inputs = _representative_inputs

    @property
    def edge_dialect_program(self) -> ExportedProgram | dict[str, ExportedProgram] | None:
        """The program before delegation; by method if there are several, None if there is none."""
        if len(self.edge_programs) == 1:
            return next(iter(self.edge_programs.values()))
        return self.edge_programs or None

    @property
    def graph_map(self) -> dict[str, ExportedProgram] | None:
        """Further programs, by "NAME/METHOD"; None if there is none."""
        return self._further or None

    _debug_handle_map = _alias("debug_handle_map")
    _delegate_map = _alias("delegate_map")
    _instruction_id_to_num_outs_map = _alias("instruction_id_to_num_outs_map")
    _reference_outputs = _alias("reference_outputs")
    _representative_inputs = _alias("representative_inputs")

    def copy(self) -> ETRecord:
        """The record without what belongs to the finished program."""
        return ETRecord(
            self.exported_program, self.export_graph_id, self.edge_programs, self._further
        )

    def add_exported_program(
        self, program: ExportedProgram | Mapping[str, ExportedProgram] | None
    ) -> None:
        """Record the captured program; of several methods, `forward`.

        Raises:
            ExportError: there is one.
        """
        if self.exported_program is not None or self.export_graph_id is not None:
            raise _exists("an exported program, or the number of its graph")
        if isinstance(program, Mapping):
            program = program.get("forward")
        if program is None:
            return
        self.exported_program = program
        self.export_graph_id = id(program.graph)

    def add_edge_dialect_program(self, programs: Programs) -> None:
        """Record the Edge programs, as they are before delegation.

        Raises:
            ExportError: there are some, or they call delegates.
        """
        if self.edge_programs:
            raise _exists("an edge program")
        self.edge_programs = _by_method(programs)

    def add_extra_export_modules(self, modules: Mapping[str, Programs]) -> None:
        """Record further programs under names of the caller's.

        Raises:
            ExportError: a name has a slash, or one of the record's own, in it.
        """
        for name, programs in modules.items():
            taken = next((entry for entry in ("/", *Entry) if entry in name), None)
            if taken is not None:
                raise ExportError(
                    f"extra_recorded_export_modules has {name!r}: names of further programs are "
                    f"without {str(taken)!r}, which the record uses itself",
                    code=Code.INVALID_ARGUMENT,
                )
            for method, program in _by_method(programs).items():
                self._further[f"{name}/{method}"] = program

    def add_executorch_program(self, program: Any) -> None:
        """Record where the finished program's instructions come from.

        Args:
            program: a `Program`, an `ExecutorchProgramManager`, or a bundled program that was made
                of one, whose test cases are recorded too.

        Raises:
            ExportError: there is one, or the Edge programs are not recorded yet.
        """
        taken = (self.debug_handle_map, self.delegate_map, self.instruction_id_to_num_outs_map)
        if any(one is not None for one in taken):
            raise _exists("a finished program")
        if not self.edge_programs:
            raise ExportError(
                "the record has no edge program, whose nodes the finished program is told by: call "
                "add_edge_dialect_program first",
                code=Code.INVALID_STATE,
            )
        if isinstance(program, BundledCases):
            self.update_representative_inputs(program)
            self.update_reference_outputs(program)
            program = getattr(program, "executorch_program", None)
        manager = getattr(program, "manager", program)
        if manager is None:
            raise ExportError(
                "the bundled program has the file of its program alone, which does not tell where "
                "instructions come from: give what to_executorch returned",
                code=Code.INVALID_ARGUMENT,
            )
        self.debug_handle_map = manager.debug_handle_map
        self.delegate_map = manager.delegate_map
        self.instruction_id_to_num_outs_map = manager.instruction_id_to_num_outs_map

    def update_representative_inputs(self, inputs: Sequence[Any] | BundledCases) -> None:
        """Record the inputs of a test case of `forward`.

        Args:
            inputs: flat, as tensors; or a bundled program, whose first test case of `forward`
                counts. Without one, none are recorded.
        """
        if isinstance(inputs, BundledCases):
            self.representative_inputs = inputs_of(inputs)
        else:
            self.representative_inputs = list(inputs)

    def update_reference_outputs(
        self, outputs: Mapping[str, Sequence[Any]] | Sequence[Any] | BundledCases
    ) -> None:
        """Record expected outputs, which the Inspector shows beside those of a traced test case.

        Args:
            outputs: flat, of each test case of `forward`; or of those of each method; or a bundled
                program, all of whose test cases count.

        Raises:
            ExportError: a test case of the bundled program expects nothing.
        """
        if isinstance(outputs, BundledCases):
            self.reference_outputs = outputs_of(outputs)
        elif isinstance(outputs, Mapping):
            self.reference_outputs = {name: list(cases) for name, cases in outputs.items()}
        else:
            self.reference_outputs = {"forward": list(outputs)}

    def save(self, path: AnyFile) -> None:
        """Write the record.

        Args:
            path: a path, usually NAME.etrecord, or an open binary file.

        Raises:
            ExportError: it has no edge program or no finished program, or a program has something
                that the format cannot say.
            OSError: the file cannot be written.
        """
        if not self.edge_programs or self.debug_handle_map is None:
            raise ExportError(
                "a record needs the edge program and the finished program: call "
                "add_edge_dialect_program and add_executorch_program first",
                code=Code.INVALID_STATE,
            )
        if isinstance(path, str | os.PathLike):
            with replacing(path) as file:
                self._write(file)
        else:
            self._write(path)

    def _write(self, file: Any) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(MARKER, "")
            if self.exported_program is not None:
                _write_program(archive, _EXPORTED, _of_captured(self.exported_program))
            for method, program in self.edge_programs.items():
                _write_program(archive, f"{EDGE}/{method}", serialized(plain(program), edge=True))
            for name, program in self._further.items():
                _write_program(archive, name, serialized(plain(program), edge=True))
            for name in _JSON:
                if getattr(self, name) is not None:
                    archive.writestr(name, json.dumps(getattr(self, name)))
            for name in _TENSORS:
                if getattr(self, name) is not None:
                    saved = io.BytesIO()
                    torch.save(getattr(self, name), saved)
                    archive.writestr(name, saved.getvalue())


def parse_etrecord(path: AnyFile) -> ETRecord:
    """Read a record of Rushlight or ExecuTorch, with its programs.

    `Inspector` reads records without torch; this is for what needs the programs.

    Raises:
        LoadError: it cannot be read, or is damaged.
    """
    with RecordArchive(path) as archive:
        record = ETRecord()
        for name in sorted(archive.names):
            if f"{name}_state_dict" in archive.names:
                _take_program(record, name, _read_program(archive, name))
        for name in _MAPS & archive.names:
            setattr(record, name, map_in(archive, name))
        if _GRAPH_ID in archive.names:
            record.export_graph_id = archive.json(_GRAPH_ID)
        for name in archive.names.intersection(_TENSORS):
            setattr(record, name, _read_tensors(archive, name))
        return record


def read_reference_outputs(source: Source) -> dict[str, list[Any]]:
    """The reference outputs of a record by method, without its programs; empty if it has none.

    Raises:
        LoadError: as `parse_etrecord`.
    """
    with RecordArchive(source) as archive:
        if "reference_outputs" not in archive.names:
            return {}
        outputs = _read_tensors(archive, "reference_outputs")
        if not isinstance(outputs, dict) or not all(isinstance(o, list) for o in outputs.values()):
            raise archive.damaged("its entry 'reference_outputs' has no list for each method")
        return outputs


def generate_etrecord(
    et_record: AnyFile,
    edge_dialect_program: Programs,
    executorch_program: Any,
    exported_program: ExportedProgram | Mapping[str, ExportedProgram] | None = None,
    extra_recorded_export_modules: Mapping[str, Programs] | None = None,
) -> None:
    """Write the record of an export that was made in stages; `export(etrecord=)` does it in one.

    Args:
        et_record: a path, or an open binary file.
        edge_dialect_program: the manager, or program, before `to_backend`.
        executorch_program: what `to_executorch` made.
        exported_program: the captured program, if it is to be recorded.
        extra_recorded_export_modules: further programs by name.

    Raises:
        ExportError, OSError: as `ETRecord` and `ETRecord.save`.
    """
    record = ETRecord()
    record.add_exported_program(exported_program)
    record.add_edge_dialect_program(edge_dialect_program)
    record.add_extra_export_modules(extra_recorded_export_modules or {})
    record.add_executorch_program(executorch_program)
    record.save(et_record)


def inputs_of(bundle: BundledCases) -> list[Any] | None:
    """The inputs of the first test case of `forward`; None if it has none."""
    cases = bundle.torch_cases("forward") if "forward" in bundle.methods else []
    return cases[0][0] if cases else None


def outputs_of(bundle: BundledCases) -> dict[str, list[Any]]:
    """The expected outputs of all test cases, by method.

    Raises:
        ExportError: a test case expects nothing.
    """
    expected = {m: [case[1] for case in bundle.torch_cases(m)] for m in bundle.methods}
    for method, cases in expected.items():
        if not all(cases):
            raise ExportError(
                f"test case {cases.index([])} of {method!r} has no expected outputs: bundle it "
                "with some",
                code=Code.INVALID_ARGUMENT,
            )
    return expected


def calls_delegates(program: ExportedProgram) -> bool:
    """Whether parts of a program are lowered to a backend."""
    return any(node.target is executorch_call_delegate for node in program.graph.nodes)


def _by_method(programs: Programs) -> dict[str, ExportedProgram]:
    if isinstance(programs, ExportedProgram):
        programs = {"forward": programs}
    elif not isinstance(programs, Mapping):
        if not hasattr(programs, "to_backend"):
            raise ExportError(
                f"a record's programs are an ExportedProgram, some by method, or an "
                f"EdgeProgramManager, not {type(programs).__name__}",
                code=Code.INVALID_TYPE,
            )
        programs = {name: programs.exported_program(name) for name in sorted(programs.methods)}
    for name, program in programs.items():
        if calls_delegates(program):
            raise ExportError(
                f"the edge program of {name!r} calls delegates: record the one before to_backend, "
                "or export with generate_etrecord=True",
                code=Code.INVALID_ARGUMENT,
            )
    return dict(programs)


def _write_program(archive: zipfile.ZipFile, name: str, parts: SerializedArtifact) -> None:
    contents = (parts.exported_program, parts.state_dict, parts.constants, parts.example_inputs)
    for companion, content in zip(_COMPANIONS, contents, strict=True):
        archive.writestr(f"{name}{companion}", content)


def _of_captured(program: ExportedProgram) -> SerializedArtifact:
    """A captured program, with the handles that the Edge program's nodes get from its."""
    return serialized(program, handles=debug_handles(program.graph))


def _read_program(archive: RecordArchive, name: str) -> ExportedProgram:
    parts = SerializedArtifact(*(archive.read(f"{name}{part}") for part in _COMPANIONS))
    try:
        program = deserialized(parts)
    except LoadError as error:
        raise archive.damaged(f"its program {name!r} cannot be read ({error})") from error
    make_plain(program)
    if name == _EXPORTED:  # captured nodes have none
        for node in program.graph.nodes:
            node.meta.pop("debug_handle", None)
    return program


def _read_tensors(archive: RecordArchive, name: str) -> Any:
    """What torch.save wrote, without running code of the file."""
    try:
        return torch.load(io.BytesIO(archive.read(name)), weights_only=True)
    except LoadError:
        raise
    except Exception as error:  # of damaged archives torch raises many types
        reason = str(error).partition("\n")[0]
        raise archive.damaged(f"its entry {name!r} cannot be read ({reason})") from error


def _take_program(record: ETRecord, name: str, program: ExportedProgram) -> None:
    graph, _, method = name.partition("/")
    if name == _EXPORTED:
        record.exported_program = program
    elif graph == EDGE:
        record.edge_programs[method or "forward"] = program
    else:
        record._further[name] = program


def _exists(what: str) -> ExportError:
    return ExportError(
        f"the record has {what} already: make another record", code=Code.INVALID_STATE
    )
