"""Ready-made partitioners, which a backend configures instead of writing its own."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.node import _get_qualified_name
from torch.fx.passes.infra.partitioner import Partition
from torch.fx.passes.operator_support import OperatorSupportBase

from rushlight.errors import Code, ExportError
from rushlight.partition.capability import CapabilityBasedPartitioner
from rushlight.partition.extract import data_of
from rushlight.partition.partitioner import TAG, DelegationSpec, Partitioner, PartitionResult
from rushlight.partition.patterns import (
    generate_grouped_partitions_from_list_of_nodes,
    merge_overlapping,
)
from rushlight.partition.support import SupportedByReason, WhyNoPartitionReporter
from rushlight.partition.tags import (
    graphs_of,
    tag_constant_data,
    tag_mutated_buffer,
    tag_partitions,
)
from rushlight.schema.program import CompileSpec


class AllNodePartitioner(Partitioner):
    """Takes every call and all constants of a method in one partition.

    Args:
        backend_id: the id of the backend.
        compile_specs: the options for the backend.
    """

    def __init__(self, backend_id: str, compile_specs: Sequence[CompileSpec] = ()) -> None:
        super().__init__()
        self.delegation_spec = DelegationSpec(backend_id, list(compile_specs))

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what it takes; see the class."""
        assert self.delegation_spec is not None
        tag = self.delegation_spec.backend_id
        data = data_of(exported_program)
        for node in exported_program.graph.nodes:
            if node in data.specs or node.op == "call_function":
                node.meta[TAG] = tag
        return PartitionResult(exported_program, {tag: self.delegation_spec})


class SupportedOperatorPartitioner(Partitioner):
    """Takes the calls that an operator support accepts, in as few partitions as possible.

    Branches of control flow are partitioned too. Partitions own the constants that they use, and
    the buffers that nothing else uses.

    Args:
        delegation_spec: the backend and its options.
        operator_support: decides about every call: a function that returns the reason why a call
            is not taken, or None if it is; or an operator support of torch.fx, which gives reasons
            if it is wrapped by a reporter's `wrap_check`.
        reporter: that reporter.
        allows_single_node_partition: keep partitions with a single computing node.
        keep_whole: operators that the backend takes whole, not decomposed.
        own_state: let partitions own the buffers that only they use and write; else the program
            keeps these buffers and passes them at every call.
        non_compute_ops: operators that are not worth a partition without others.
        groups: from a graph, the groups of calls to keep together; all of them are supported.
        one_each: a partition for each group, and for each call that is in none.
    """

    def __init__(
        self,
        delegation_spec: DelegationSpec,
        operator_support: OperatorSupportBase | Callable[[Node], str | None],
        *,
        reporter: WhyNoPartitionReporter | None = None,
        allows_single_node_partition: bool = True,
        keep_whole: Sequence[OpOverload] = (),
        own_state: bool = True,
        non_compute_ops: Sequence[Callable[..., object]] = (),
        groups: Callable[[GraphModule], Iterable[list[Node]]] = lambda module: (),
        one_each: bool = False,
    ) -> None:
        super().__init__()
        self.delegation_spec = delegation_spec
        self._one_each = one_each
        self._groups = groups
        self._idle = [_get_qualified_name(op) for op in non_compute_ops]
        self._own_state = own_state
        if not isinstance(operator_support, OperatorSupportBase):
            reporter = reporter or WhyNoPartitionReporter()
            operator_support = SupportedByReason(operator_support, reporter)
        self._support = operator_support
        self._reporter = reporter
        self._single = allows_single_node_partition
        self._whole = list(keep_whole)

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[Sequence[OpOverload], Callable[[Node], bool] | None]:
        """The operators of `keep_whole`."""
        return self._whole, None

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what it takes; see the class."""
        assert self.delegation_spec is not None
        if self._reporter is not None:
            self._reporter.declined.clear()
        declined: dict[Node, str] = {}

        def propose(graph_module: GraphModule) -> list[Partition]:
            support = _OfCalls(self._support)
            partitioner = CapabilityBasedPartitioner(
                *(graph_module, support, self._single, self._idle),
                node_groups=merge_overlapping(self._groups(graph_module)),
            )
            partitions = partitioner.propose_partitions()
            declined.update(partitioner.declined)
            if self._one_each:
                return parted(partitions, merge_overlapping(self._groups(graph_module)))
            return partitions

        tags = tag_graphs(
            exported_program, self.delegation_spec, propose, own_state=self._own_state
        )
        reasons = {**(self._reporter.declined if self._reporter is not None else {}), **declined}
        return PartitionResult(
            exported_program,
            tags,
            _reasons(exported_program, reasons, "its partitioner does not support it"),
        )


def parted(partitions: Iterable[Partition], groups: Iterable[Iterable[Node]]) -> list[Partition]:
    """A partition for each group, and one for each other call of the partitions.

    A call that selects one of several results stays with the call that returns them.
    """
    together = {node: i for i, group in enumerate(groups) for node in group}
    by_call: dict[Any, list[Node]] = {}
    for partition in partitions:
        for node in sorted(partition.nodes):
            source = node.all_input_nodes[0] if node.target is operator.getitem else node
            by_call.setdefault(together.get(source, together.get(node, source)), []).append(node)
    return [Partition(i, nodes) for i, nodes in enumerate(by_call.values())]


class _OfCalls(OperatorSupportBase):
    """An operator support that accepts only calls: constants are tagged later, inputs never."""

    def __init__(self, support: OperatorSupportBase) -> None:
        self._support = support

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return node.op == "call_function" and self._support.is_node_supported(submodules, node)


class PartitionerConfig(ABC):
    """The calls of one operator that a backend takes, and the nodes that go with each.

    Attributes:
        target_name: the operator without its namespace: `"linear.default"`.
    """

    target_name: str

    @abstractmethod
    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        """Whether the backend takes this call of the operator."""

    @abstractmethod
    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        """The call and all nodes that must go with it, such as parameters or dequantising nodes."""

    def get_original_aten(self) -> OpOverload | None:
        """The operator, if the backend takes it whole and torch would decompose it; else None."""
        return None


class ConfigerationBasedPartitioner(Partitioner):
    """Takes the calls that a list of configurations describes (the name is ExecuTorch's).

    The nodes that a configuration returns for a call stay together; groups with common nodes are
    merged.

    Args:
        delegation_spec: the backend and its options.
        partitioner_configs: one for each operator.

    Raises:
        ExportError: if two are for the same operator.
    """

    def __init__(
        self, delegation_spec: DelegationSpec, partitioner_configs: Iterable[PartitionerConfig]
    ) -> None:
        super().__init__()
        self.delegation_spec = delegation_spec
        self.target_partitioner_configs: dict[str, PartitionerConfig] = {}
        for config in partitioner_configs:
            other = self.target_partitioner_configs.setdefault(config.target_name, config)
            if other is not config:
                raise ExportError(
                    f"{type(config).__name__} and {type(other).__name__} are both for the operator "
                    f"{config.target_name}: keep one",
                    code=Code.INVALID_ARGUMENT,
                )

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[Sequence[OpOverload], Callable[[Node], bool] | None]:
        """The operators that the configurations take whole, where their constraints hold."""
        whole = [c.get_original_aten() for c in self.target_partitioner_configs.values()]

        def accepts(node: Node) -> bool:
            config = self._config(node)
            return (
                config is not None
                and config.get_original_aten() is not None
                and config.check_constraints(node, ep)
            )

        return [target for target in whole if target is not None], accepts

    def _config(self, node: Node) -> PartitionerConfig | None:
        if node.op != "call_function":
            return None
        return self.target_partitioner_configs.get(format_target_name(_name(node)))

    def get_matched_nodes_from_configs(self, ep: ExportedProgram) -> list[list[Node]]:
        """The groups of nodes that the configurations take in the program's own graph."""
        return self._matched(ep.graph_module, ep, {})

    def generate_partitions(self, ep: ExportedProgram) -> list[Partition]:
        """The partitions of the program's own graph."""
        return self._partitions(ep.graph_module, ep, {})

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what it takes; see the class."""
        assert self.delegation_spec is not None
        declined: dict[Node, str] = {}
        tags = tag_graphs(
            exported_program,
            self.delegation_spec,
            lambda module: self._partitions(module, exported_program, declined),
            own_data=False,
        )
        reasons = _reasons(
            exported_program, declined, "no configuration of the partitioner takes it"
        )
        return PartitionResult(exported_program, tags, reasons)

    def _partitions(
        self, module: GraphModule, ep: ExportedProgram, declined: dict[Node, str]
    ) -> list[Partition]:
        groups = self._matched(module, ep, declined)
        return generate_grouped_partitions_from_list_of_nodes(module, groups)

    def _matched(
        self, module: GraphModule, ep: ExportedProgram, declined: dict[Node, str]
    ) -> list[list[Node]]:
        groups = []
        data: dict[Node, None] = {}
        for node in module.graph.nodes:
            config = self._config(node)
            if config is None:
                continue
            group = config.get_partition(node, ep) if config.check_constraints(node, ep) else []
            if not group:
                declined[node] = f"{type(config).__name__} does not take this call"
            # A constant that several groups use is copied, so it does not merge the groups.
            groups.append([n for n in group if n.op not in ("placeholder", "get_attr")])
            data.update(dict.fromkeys(n for n in group if n.op in ("placeholder", "get_attr")))
        return [*merge_overlapping(groups), *([n] for n in data)]


def tag_graphs(
    program: ExportedProgram,
    spec: DelegationSpec,
    propose: Callable[[GraphModule], list[Partition]],
    *,
    own_data: bool = True,
    own_state: bool = True,
) -> dict[str, DelegationSpec]:
    """Partition the program's graph, then those of control flow that is not in a partition.

    Args:
        program: the program whose nodes are tagged.
        spec: the backend that takes the partitions, and its options.
        propose: a function from a graph to its partitions.
        own_data: let the partitions own their constants.
        own_state: let them own their buffers as well.

    Returns:
        {tag: spec}, for `PartitionResult`.
    """
    tags: list[str] = []
    for i, module in enumerate(graphs_of(program)):
        tags += tag_partitions(propose(module), f"branch{i}_tag" if i else "tag")
    if own_data:
        tag_constant_data(program)
    if own_data and own_state:
        tag_mutated_buffer(program)
    return dict.fromkeys(tags, spec)


def format_target_name(target_name: str) -> str:
    """An operator's name without its namespace: `aten.linear.default` is `linear.default`."""
    parts = target_name.split(".")
    return ".".join(parts[1:] if len(parts) > 2 else parts)


def _name(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _reasons(program: ExportedProgram, known: dict[Node, str], other: str) -> dict[Node, str]:
    """A reason for every call that has no tag."""
    return {
        node: known.get(node, other)
        for module in graphs_of(program)
        for node in module.graph.nodes
        if node.op == "call_function"
        and TAG not in node.meta
        and node.target is not operator.getitem
    }
