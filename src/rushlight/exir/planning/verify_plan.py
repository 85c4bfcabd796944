"""The check of a planned graph: `Verifier`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.exir.planning.nodes import (
    collect_specs_from_nodes,
    do_user_inputs_exist,
    get_graph_input_tensors,
    get_graph_output_tensors,
    get_node_tensor_specs,
    is_mutable_buffer,
    mutable_buffer_specs,
)
from rushlight.exir.specs import TensorSpec


class Verifier:
    """Checks that a plan can be used: tensors that live together share no byte.

    Args:
        graph_module: the planned graph.
        alloc_graph_input, alloc_graph_output, alloc_mutable_buffers: what was to be planned.
        graph_signature: tells which inputs are buffers that are written.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        alloc_graph_input: bool,
        alloc_graph_output: bool,
        alloc_mutable_buffers: bool,
        graph_signature: ExportGraphSignature | None = None,
    ) -> None:
        self.graph_module = graph_module
        self.graph_signature = graph_signature
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers

    @classmethod
    def mem_obj_id_match(
        cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec, accept_both_none: bool = True
    ) -> bool:
        """Whether two tensors are in one shared object of one memory; where neither is in an
        object, `accept_both_none`."""
        if lhs_spec.mem_id != rhs_spec.mem_id:
            return False
        if lhs_spec.mem_obj_id is None and rhs_spec.mem_obj_id is None:
            return accept_both_none
        return lhs_spec.mem_obj_id == rhs_spec.mem_obj_id

    @classmethod
    def has_overlap(cls, lhs_ivl: Sequence[int], rhs_ivl: Sequence[int]) -> bool:
        """Whether two intervals, with their ends, have a common point."""
        start, end = max(lhs_ivl[0], rhs_ivl[0]), min(lhs_ivl[1], rhs_ivl[1])
        return start <= end

    @classmethod
    def lifetime_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        """Whether two tensors live at the same time."""
        for spec in (lhs_spec, rhs_spec):
            if None in spec.lifetime:
                raise _wrong(f"{spec.debug()} has no lifetime: call update_all_tensors_lifetime")
        return cls.has_overlap(lhs_spec.lifetime, rhs_spec.lifetime)

    @classmethod
    def storage_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        """Whether two tensors have a common byte."""
        if lhs_spec.mem_id != rhs_spec.mem_id:
            return False
        ranges = []
        for spec in (lhs_spec, rhs_spec):
            if spec.mem_offset is None or spec.mem_offset < 0:
                raise _wrong(f"{spec.debug()} has no place in its memory")
            ranges.append([spec.mem_offset, spec.mem_offset + spec.allocated_memory - 1])
        return cls.has_overlap(*ranges)

    def verify_storage_reuse(self, allow_lifetime_and_storage_overlap: bool = False) -> int:
        """Check that no two tensors that live at the same time share a byte.

        Args:
            allow_lifetime_and_storage_overlap: leave that check out.

        Returns:
            The number of pairs of tensors that share bytes.

        Raises:
            ExportError: they do, or shared objects are not what they should be.
        """
        specs = collect_specs_from_nodes(
            self.graph_module.graph.nodes,
            self.graph_signature,
            ignore_graph_input=not self.alloc_graph_input,
            ignore_graph_output=not self.alloc_graph_output,
            ignore_mutable_buffers=not self.alloc_mutable_buffers,
            ignore_out_var_node=False,
            do_assertion=False,
        )
        pairs = 0
        for one, other in combinations(specs, 2):
            if (one.mem_obj_id is None) != (other.mem_obj_id is None):
                raise _wrong("some tensors are in shared objects (mem_obj_id) and others are not")
            if not self.storage_overlap(one, other):
                continue
            shares = one.inplace_base is other or other.inplace_base is one
            together = not allow_lifetime_and_storage_overlap and self.lifetime_overlap(one, other)
            if together and not shares:
                raise _wrong(f"{one.debug()} and {other.debug()} share bytes while both live")
            if not self.mem_obj_id_match(one, other):
                raise _wrong(f"{one.debug()} and {other.debug()} share bytes of two shared objects")
            pairs += 1
        return pairs

    def verify_graph_input_output(self) -> None:
        """Check that inputs and outputs have places, or have none, as was asked for.

        Raises:
            ExportError: they have not.
        """
        nodes = self.graph_module.graph.nodes
        both = get_graph_input_tensors(nodes, self.graph_signature)
        both &= get_graph_output_tensors(nodes)
        if both and self.alloc_graph_input != self.alloc_graph_output:
            return  # what is input and output at once cannot be as both ask for
        skipped = mutable_buffer_specs(nodes, self.graph_signature)
        inputs = [n for n in nodes if n.op == "placeholder"]
        if do_user_inputs_exist(self.graph_signature):
            self._check("input", inputs, self.alloc_graph_input, skipped)
        outputs = [n for n in nodes if n.op == "output"]
        self._check("output", outputs, self.alloc_graph_output, skipped)

    def _check(
        self, kind: str, nodes: Sequence[Node], wanted: bool, skipped: set[TensorSpec]
    ) -> None:
        for node in nodes:
            if is_mutable_buffer(node, self.graph_signature):
                continue
            for spec in get_node_tensor_specs(node):
                if spec.const or spec in skipped or spec.is_dynamic_unbound_tensor:
                    continue
                if (spec.mem_offset is not None) != wanted:
                    told = "no place" if wanted else "a place"
                    raise _wrong(f"the graph's {kind} {spec.debug()} has {told} in a memory")


def _wrong(told: str) -> ExportError:
    return ExportError(f"invalid memory plan: {told}", code=Code.INVALID_STATE)
