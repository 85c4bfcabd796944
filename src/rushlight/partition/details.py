"""The interface of a backend's compiler: `preprocess`, from a partition to a payload."""

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
"""{id of the backend's own instruction: debug handles of the nodes that it was made from}."""


@dataclass
class PreprocessResult:
    """The result of `preprocess`.

    Attributes:
        processed_bytes: the payload for the backend's runtime.
        debug_handle_map: maps the id under which the backend's runtime reports an event or an
            error to the `meta["debug_handle"]` of the nodes that the instruction was made from.
            Every call of the partition has its own handle.
        data_store_output: named data, by key, which delegates may share.
        notes: texts for the report about calls that the backend took: {name of the node: text}.
        schemas: those of operators of the user's own whose kernels the backend's runtime calls, by
            the kernels' names ("acme::snake.out").
    """

    processed_bytes: bytes = b""
    debug_handle_map: Handles | None = None
    data_store_output: NamedDataStoreOutput | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    _delegate_info_meta: Any | None = field(default=None, repr=False)


class BackendDetails:
    """The base class of a backend's compiler. The class name is the backend's id in the file.

    Defining a subclass registers it; `to_backend` finds it by its id. A subclass of a subclass is
    refused, because two ids could then share one implementation by accident.

    Attributes:
        overread: how many bytes the backend's runtime may read beyond the end of any tensor that it
            is passed. The planner adds them to every arena.
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
        """Compile one partition.

        Args:
            edge_program: the partition as a program in the Edge dialect. The partition's inputs are
                its user inputs; the constants and buffers that it owns are its parameters, buffers
                and constants. The backend may change it.
            compile_specs: the options of the partition.

        Raises:
            Any exception means that the partition cannot be compiled; the user gets an error with
            the exception's text, the backend, the method and the nodes.
        """
        raise NotImplementedError

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Compile all partitions of all methods at once; by default, one after the other.

        Args:
            edge_programs: {method: its partitions}.
            compile_specs: {method: the options of each partition}.

        Returns:
            {method: one result for each partition, in the same order}.
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
    """The last defined class with that name; None if there is none."""
    return _CLASSES.get(backend_id)


def known_backends() -> list[str]:
    """The ids of all backends whose classes are defined."""
    return sorted(_CLASSES)


def fault_of(results: Any, wanted: Mapping[str, Sequence[ExportedProgram]]) -> str | None:
    """The fault in the results of `preprocess_multimethod` for these partitions; None if none."""
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
    """The fault in compile specs from a user or a partitioner; None if there is none."""
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
        listed = (value,) if isinstance(value, int) else value  # a single handle is accepted too
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
