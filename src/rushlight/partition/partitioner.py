"""The interface of partitioners, which tag the nodes that a backend shall take."""

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
"""The key of `Node.meta` under which {backend id: why it does not take the node} is kept."""


@dataclass(frozen=True)
class DelegationSpec:
    """Who takes a partition, with which options.

    Attributes:
        backend_id: the class name of the backend's `BackendDetails`.
        compile_specs: options for `preprocess`, which the file carries to the runtime half too.
    """

    backend_id: str
    compile_specs: list[CompileSpec] = field(default_factory=list)


@dataclass
class PartitionResult:
    """What a partitioner decided.

    Attributes:
        tagged_exported_program: the program that was given, tagged: every node of a partition has
            the partition's tag in `meta["delegation_tag"]`. Nothing else of it may change.
        partition_tags: who takes each tag.
        declined: why nodes were left out: {node: reason}. They stand in the report.
    """

    tagged_exported_program: ExportedProgram
    partition_tags: dict[str, DelegationSpec]
    declined: Mapping[Node, str] = field(default_factory=dict)


class Partitioner:
    """Base of partitioners.

    Args:
        spec: options of the partitioner's own.

    Attributes:
        delegation_spec: set by partitioners that serve one backend; names it in reports.
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
            exported_program: a copy, whose `meta` of nodes may be written.
        """
        raise NotImplementedError

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[Sequence[OpOverload], Callable[[Node], bool] | None]:
        """Operators of the captured program that the backend wants whole.

        Args:
            ep: ATen dialect.

        Returns:
            The operators, and a function that says for a node of one of them whether it is to stay
            whole; None keeps them all. One that no partition takes in the end is decomposed.
        """
        return [], None


def check_partitioner(partitioner: object, method: str) -> Partitioner:
    """The object that a user passed, if it is a partitioner.

    Raises:
        ExportError: if it is not.
    """
    if not isinstance(partitioner, Partitioner):
        raise ExportError(
            f"{partitioner!r} is no Partitioner: pass objects of classes that derive from "
            f"rushlight.partition.Partitioner",
            code=Code.INVALID_ARGUMENT,
            where=method,
        )
    return partitioner


def partitioners_of(partitioners: object, methods: Iterable[str]) -> dict[str, list[Partitioner]]:
    """The partitioners of every method, in order.

    Args:
        partitioners: one, several, None, or a mapping of methods to these.
        methods: all that there are.

    Raises:
        ExportError: if one is no partitioner, or for a method that is not there.
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
            f"there are partitioners for {unknown}, and methods {sorted(by_method)}",
            code=Code.INVALID_ARGUMENT,
        )
    return by_method
