"""What a backend's compiler half is: `preprocess`, from a part of a graph to a payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.export import ExportedProgram

from rushlight.errors import Code, ExportError
from rushlight.partition.named_data import NamedDataStoreOutput
from rushlight.schema.program import CompileSpec

Handles = Mapping[int | str, Iterable[int]]
"""{id of the backend's own instruction: debug handles of the nodes that it was made of}."""


@dataclass
class PreprocessResult:
    """What `preprocess` returns.

    Attributes:
        processed_bytes: the payload that the backend's runtime half is given.
        debug_handle_map: where the backend's own instructions come from: the id under which its
            runtime reports an event or an error, to the `meta["debug_handle"]` of the nodes.
        data_store_output: data beside the payload, by key, which delegates may share.
    """

    processed_bytes: bytes = b""
    debug_handle_map: Handles | None = None
    data_store_output: NamedDataStoreOutput | None = None
    _delegate_info_meta: Any | None = field(default=None, repr=False)


class BackendDetails:
    """Base of a backend's compiler half. Its class name is the backend's id in the file.

    Defining a subclass registers it; `to_backend` finds it by its id. A subclass of a subclass is
    refused, since two ids would then share one implementation by accident.
    """

    def __init_subclass__(cls) -> None:
        if cls.__base__ is not BackendDetails:
            raise TypeError(
                f"{cls.__name__} derives from another backend: derive it from BackendDetails "
                f"itself, and share code in functions"
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


def check_results(
    backend_id: str, results: Any, wanted: Mapping[str, Sequence[ExportedProgram]]
) -> dict[str, list[PreprocessResult]]:
    """What `preprocess_multimethod` returned, if it is what it should be.

    Raises:
        ExportError: saying what is wrong with it.
    """
    if not isinstance(results, Mapping):
        raise _nonsense(backend_id, f"preprocess_multimethod returned {_kind(results)}, not a dict")
    checked = {}
    for method, parts in wanted.items():
        mine = results.get(method)
        if not isinstance(mine, Sequence) or len(mine) != len(parts):
            got = f"{len(mine)} results" if isinstance(mine, Sequence) else _kind(mine)
            raise _nonsense(
                backend_id, f"method {method!r} has {len(parts)} parts, preprocess gave {got}"
            )
        for result in mine:
            _check_result(backend_id, method, result)
        checked[method] = list(mine)
    return checked


def _check_result(backend_id: str, method: str, result: Any) -> None:
    where = f"method {method!r}: preprocess returned"
    if not isinstance(result, PreprocessResult):
        raise _nonsense(backend_id, f"{where} {_kind(result)}, not a PreprocessResult")
    if not isinstance(result.processed_bytes, bytes | bytearray | memoryview):
        kind = _kind(result.processed_bytes)
        raise _nonsense(backend_id, f"{where} processed_bytes that are {kind}, not bytes")
    for key, handles in (result.debug_handle_map or {}).items():
        if isinstance(handles, int):  # one handle for one id is common, and clear
            continue
        if not isinstance(key, int | str) or not all(isinstance(h, int) for h in handles):
            raise _nonsense(
                backend_id,
                f"{where} the debug handles {handles!r} for {key!r}: an id, an int or a str, "
                f"stands for a tuple of ints",
            )


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _nonsense(backend_id: str, what: str) -> ExportError:
    return ExportError(
        f"{what}; mend the backend {backend_id}", code=Code.INVALID_ARGUMENT, where=backend_id
    )
