"""What a backend's compiler half is: `preprocess`, from a part of a graph to a payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch.export import ExportedProgram

from rushlight.partition.named_data import NamedDataStoreOutput, fault_of_store
from rushlight.schema.program import CompileSpec

_BYTES = bytes | bytearray | memoryview
_MAX_ID = 63  # bytes, the runtime's limit

Handles = Mapping[int | str, Iterable[int]]
"""{id of the backend's own instruction: debug handles of the nodes that it was made of}."""


@dataclass
class PreprocessResult:
    """What `preprocess` returns.

    Attributes:
        processed_bytes: the payload that the backend's runtime half is given.
        debug_handle_map: where the backend's own instructions come from: the id under which its
            runtime reports an event or an error, to the `meta["debug_handle"]` of the nodes, of
            which every call of the part that it was given has its own.
        data_store_output: data beside the payload, by key, which delegates may share.
        notes: what the report shall say of calls that the backend took: {name of the node: text}.
    """

    processed_bytes: bytes = b""
    debug_handle_map: Handles | None = None
    data_store_output: NamedDataStoreOutput | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    _delegate_info_meta: Any | None = field(default=None, repr=False)


class BackendDetails:
    """Base of a backend's compiler half. Its class name is the backend's id in the file.

    Defining a subclass registers it; `to_backend` finds it by its id. A subclass of a subclass is
    refused, since two ids would then share one implementation by accident.

    Attributes:
        overread: bytes that the runtime half may read behind the end of any tensor that it is
            given. The planner leaves them in every arena.
    """

    overread: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        if cls.__base__ is not BackendDetails:
            raise TypeError(
                f"{cls.__name__} derives from another backend: derive it from BackendDetails "
                f"itself, and share code in functions"
            )
        size = len(cls.__name__.encode())
        if size > _MAX_ID:
            raise TypeError(
                f"{cls.__name__} has {size} bytes, and is the backend's id in the file, which has "
                f"at most {_MAX_ID}"
            )
        _CLASSES[cls.__name__] = cls

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Compile one part of a graph.

        Args:
            edge_program: Edge dialect; the inputs of the part are its user inputs, and constants
                and buffers that the part owns are its parameters, buffers and constants. It is the
                backend's own to change.
            compile_specs: the options of the partition.

        Raises:
            Any exception refuses the part: it reaches the user with backend, method and nodes.
        """
        raise NotImplementedError

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Compile all parts of all methods at once; by default, one after the other.

        Args:
            edge_programs: {method: its parts}.
            compile_specs: {method: the options of each part}.

        Returns:
            {method: one result for each part, in the same order}.
        """
        return {
            method: [
                cls.preprocess(part, specs)
                for part, specs in zip(parts, compile_specs[method], strict=True)
            ]
            for method, parts in edge_programs.items()
        }


_CLASSES: dict[str, type[BackendDetails]] = {}


def backend_class(backend_id: str) -> type[BackendDetails] | None:
    """The class of that name that was defined last; None if there is none."""
    return _CLASSES.get(backend_id)


def known_backends() -> list[str]:
    """The ids of all backends whose classes are defined."""
    return sorted(_CLASSES)


def fault_of(results: Any, wanted: Mapping[str, Sequence[ExportedProgram]]) -> str | None:
    """What is wrong with what `preprocess_multimethod` returned for these parts, if anything is."""
    if not isinstance(results, Mapping):
        return f"preprocess_multimethod returned {_kind(results)}, not a dict"
    for method, parts in wanted.items():
        mine = results.get(method)
        if not isinstance(mine, Sequence) or len(mine) != len(parts):
            got = f"{len(mine)} results" if isinstance(mine, Sequence) else _kind(mine)
            return f"method {method!r} has {len(parts)} parts, preprocess gave {got}"
        for result in mine:
            fault = _fault_of_one(result)
            if fault is not None:
                return f"method {method!r}: preprocess returned {fault}"
    return None


def fault_of_specs(specs: Any) -> str | None:
    """What is wrong with the compile specs that a user or a partitioner gave, if anything is."""
    if isinstance(specs, str | bytes) or not isinstance(specs, Sequence):
        return f"the compile specs are {_kind(specs)}, not a list of CompileSpec"
    for spec in specs:
        if not isinstance(spec, CompileSpec):
            return f"the compile spec {spec!r} is {_kind(spec)}, not a CompileSpec"
        if not isinstance(spec.key, str) or not isinstance(spec.value, _BYTES):
            return (
                f"the compile spec {spec.key!r} has the value {spec.value!r}: keys are str, values "
                f"bytes"
            )
    return None


def _fault_of_one(result: Any) -> str | None:
    if not isinstance(result, PreprocessResult):
        return f"{_kind(result)}, not a PreprocessResult"
    data, handles, beside = (
        result.processed_bytes,
        result.debug_handle_map,
        result.data_store_output,
    )
    if not isinstance(data, _BYTES):
        return f"processed_bytes that are {_kind(data)}, not bytes"
    if beside is not None and not isinstance(beside, NamedDataStoreOutput):
        return f"a data_store_output that is {_kind(beside)}, not a NamedDataStoreOutput"
    if beside is not None and (fault := fault_of_store(beside)) is not None:
        return f"a data_store_output in which {fault}"
    if not isinstance(handles, Mapping | None):
        return f"a debug_handle_map that is {_kind(handles)}, not a dict"
    for key, value in (handles or {}).items():
        listed = (value,) if isinstance(value, int) else value  # one handle is common, and clear
        is_list = isinstance(listed, Iterable) and all(isinstance(h, int) for h in listed)
        if not isinstance(key, int | str) or not is_list:
            return (
                f"the debug handles {value!r} for {key!r}: an id, an int or a str, stands for a "
                f"tuple of ints"
            )
    notes = result.notes.items() if isinstance(result.notes, Mapping) else [(result.notes, None)]
    for name, note in notes:
        if not isinstance(name, str) or not isinstance(note, str):
            return f"the note {note!r} for {name!r}: notes are a dict of names of nodes to texts"
    return None


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
