"""The interface of partitioners, which tag the nodes that a backend is to take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.errors import Code, ExportError
from rushlight.schema.program import CompileSpec

TAG = "delegation_tag"
"""The key of `Node.meta` under which a partitioner writes the name of the node's partition."""
DECLINED = "declined"
"""The key of `Node.meta` under which {backend id: the reason against the node} is stored."""


@dataclass(frozen=True)
class DelegationSpec:
    """The backend that takes a partition, and its options.

    Attributes:
        backend_id: the class name of the backend's `BackendDetails`.
        compile_specs: options for `preprocess`; they are stored in the file for the runtime too.
    """

    backend_id: str
    compile_specs: list[CompileSpec] = field(default_factory=list)


@dataclass
class PartitionResult:
    """The result of a partitioner.

    Attributes:
        tagged_exported_program: the program that was passed, with tags: every node of a partition
            has the partition's tag in `meta["delegation_tag"]`. Nothing else may be changed.
        partition_tags: the backend and its options for each tag.
        declined: the reasons why nodes were left out, for the report: {node: reason}.
    """

    tagged_exported_program: ExportedProgram
    partition_tags: dict[str, DelegationSpec]
    declined: Mapping[Node, str] = field(default_factory=dict)


class Partitioner:
    """The base class of partitioners.

    Args:
        spec: the partitioner's own options.

    Attributes:
        delegation_spec: set by partitioners for a single backend; reports take its id from here.
    """

    delegation_spec: DelegationSpec | None = None

    def __init__(self, spec: Mapping[str, object] | None = None) -> None:
        self._spec = MappingProxyType(dict(spec or {}))

    @property
    def spec(self) -> Mapping[str, object]:
        """The options; they cannot be changed."""
        return self._spec

    def __call__(self, exported_program: ExportedProgram) -> PartitionResult:
        """The same as `partition`."""
        return self.partition(exported_program)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes of an Edge program, branches of control flow included.

        Constants and buffers are nodes too: a tagged one moves into the delegate, an untagged one
        is passed to it at every call (`tag_constant_data` and `tag_mutated_buffer` tag them).

        Args:
            exported_program: a copy; the `meta` of its nodes may be changed.
        """
        raise NotImplementedError

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[Sequence[OpOverload], Callable[[Node], bool] | None]:
        """The operators of the captured program that the backend takes whole, not decomposed.

        Args:
            ep: the program, of the ATen dialect.

        Returns:
            The operators, and a function that says for a call of one of them whether it stays
            whole; None keeps all. Calls that are in no partition in the end are decomposed.
        """
        return [], None


def check_partitioner(partitioner: object, method: str) -> Partitioner:
    """The object that a user passed, if it is a partitioner.

    Raises:
        ExportError: if it is not.
    """
    if not isinstance(partitioner, Partitioner):
        raise ExportError(
            f"{partitioner!r} is not a Partitioner: pass objects of classes that derive from "
            f"rushlight.partition.Partitioner",
            code=Code.INVALID_ARGUMENT,
            where=method,
        )
    return partitioner


def partitioners_of(partitioners: object, methods: Iterable[str]) -> dict[str, list[Partitioner]]:
    """The partitioners of every method, in order.

    Args:
        partitioners: one, several, None, or a mapping from methods to these.
        methods: the names of all methods.

    Raises:
        ExportError: if an object is not a partitioner, or a method does not exist.
    """
    by_method: dict[str, list[Partitioner]] = {}
    for name in methods:
        mine = partitioners.get(name) if isinstance(partitioners, Mapping) else partitioners
        listed = list(mine) if isinstance(mine, Sequence) else [] if mine is None else [mine]
        by_method[name] = [check_partitioner(one, name) for one in listed]
    unknown = (
        sorted(set(partitioners) - set(by_method)) if isinstance(partitioners, Mapping) else []
    )
    if unknown:
        raise ExportError(
            f"there are partitioners for methods that do not exist: {unknown}; there are "
            f"{sorted(by_method)}",
            code=Code.INVALID_ARGUMENT,
        )
    return by_method
