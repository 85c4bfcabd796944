"""`MemoryPlanningPass`: plans a graph of out-variants; a base for passes of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight import edge
from rushlight.errors import Code, ExportError
from rushlight.exir.operators import out_names
from rushlight.exir.planning.algorithms import (
    MemoryPlanningAlgorithmSuite,
    algorithm_name,
    greedy,
)
from rushlight.exir.planning.apply import apply_algo
from rushlight.exir.planning.nodes import (
    buffer_of,
    get_node_tensor_specs,
    is_mutable_buffer,
    is_out_var_node,
)
from rushlight.exir.planning.verify_plan import Verifier
from rushlight.exir.specs import ALIGNMENT, TensorSpec

_SHARED = 2  # the memory of buffers that methods share


class MemoryPlanningPass(PassBase):
    """Places the tensors of a graph of out-variants.

    A subclass may override `run`, to give tensors memory ids (`node.meta["spec"].mem_id = 2`)
    before it calls this one. In `to_executorch`, a pass as it is here stands for our own planner.

    Args:
        memory_planning_algo: writes places into specs, and returns the sizes of memories:
            `(alignment, specs, graph_module, graph_signature, extra_padding) -> list[int]`.
            Default: `MemoryPlanningAlgorithmSuite()`.
        allow_lifetime_and_storage_overlap: do not check that tensors that live together are apart.
        alloc_graph_input, alloc_graph_output, alloc_mutable_buffers: what is placed; the caller of
            a program has memory for the rest.
        share_mutable_buffers: give buffers of one name in several methods the same memory (id 2).
        alignment: of all offsets.
    """

    def __init__(
        self,
        memory_planning_algo: Callable[..., list[int]] | None = None,
        allow_lifetime_and_storage_overlap: bool = False,
        alloc_graph_input: bool = True,
        alloc_graph_output: bool = True,
        alloc_mutable_buffers: bool = True,
        share_mutable_buffers: bool = False,
        alignment: int = ALIGNMENT,
    ) -> None:
        if share_mutable_buffers and not alloc_mutable_buffers:
            raise PlanningOptionError(
                "share_mutable_buffers gives buffers memory, and alloc_mutable_buffers=False "
                "gives them none: leave one of them out",
                code=Code.INVALID_ARGUMENT,
            )
        self.memory_planning_algo = memory_planning_algo or MemoryPlanningAlgorithmSuite()
        self.allow_lifetime_and_storage_overlap = allow_lifetime_and_storage_overlap
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers
        self.share_mutable_buffers = share_mutable_buffers
        self.alignment = alignment
        self.enable_non_cpu_memory_planning = False
        self._graphs: list[tuple[GraphModule, ExportGraphSignature]] = []

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the options is the user's: no algorithm, and no method."""
        algorithm: Any = self.memory_planning_algo
        is_suite = isinstance(algorithm, MemoryPlanningAlgorithmSuite)
        methods = ("run", "call", "run_multimethod")
        own = all(getattr(type(self), m) is getattr(MemoryPlanningPass, m) for m in methods)
        return own and is_suite and algorithm.algo_list == [greedy] and self.alloc_mutable_buffers

    def options(self) -> edge.MemoryPlanningPass:
        """The options of our own planner that say the same."""
        return edge.MemoryPlanningPass(
            alloc_graph_input=self.alloc_graph_input,
            alloc_graph_output=self.alloc_graph_output,
            share_mutable_buffers=self.share_mutable_buffers,
            alignment=self.alignment,
        )

    def call(self, graph_module: GraphModule) -> PassResult:
        """The same as `run` without a signature: buffers that are written are not known then."""
        return self.run(graph_module)

    def run(
        self, graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None
    ) -> PassResult:
        """Place the tensors of one method; the graph's specs and `meta` are changed.

        Raises:
            ExportError: the plan cannot be used.
        """
        for module in graph_module.modules():
            if isinstance(module, GraphModule):
                _give_allocations_specs(module)
        places_buffers = self.alloc_mutable_buffers and not self.share_mutable_buffers
        apply_algo(
            self.memory_planning_algo,
            graph_module,
            self.alignment,
            graph_signature,
            self.alloc_graph_input,
            self.alloc_graph_output,
            places_buffers,
            self.enable_non_cpu_memory_planning,
        )
        if self.share_mutable_buffers and graph_signature is not None:
            self._graphs.append((graph_module, graph_signature))
        verifier = Verifier(
            graph_module,
            self.alloc_graph_input,
            self.alloc_graph_output,
            places_buffers,
            graph_signature,
        )
        verifier.verify_graph_input_output()
        if algorithm_name(self.memory_planning_algo) == "greedy":
            verifier.verify_storage_reuse()
        return PassResult(graph_module, True)

    def forget_methods(self) -> None:
        """Forget the methods of a planning that failed before `run_multimethod`."""
        self._graphs = []

    def run_multimethod(self) -> None:
        """Give buffers that methods share their memory, after `run` for each method.

        Raises:
            ExportError: other tensors are not all in memory 1, or a buffer's sizes differ.
        """
        graphs, self._graphs = self._graphs, []
        written = {
            buffer_of(node, signature)
            for module, signature in graphs
            for node in module.graph.nodes
            if is_mutable_buffer(node, signature)
        }
        places: dict[str, tuple[int, int]] = {}
        end = 0
        for module, signature in graphs:
            for node in module.graph.nodes:
                name = buffer_of(node, signature)
                if name is None or name not in written:
                    continue
                for spec in get_node_tensor_specs(node):
                    size = spec.realign(self.alignment)
                    spec.mem_id = _SHARED
                    spec.mem_offset, known = places.setdefault(name, (end, size))
                    if size != known:
                        raise ExportError(
                            f"buffer {name!r} has {known} bytes in one method and {size} in "
                            f"another: methods share only buffers of one shape",
                            code=Code.INVALID_ARGUMENT,
                        )
                    end = max(end, spec.mem_offset + size)
        for module, _ in graphs:
            sizes = module.meta["non_const_buffer_sizes"]
            if len(sizes) != _SHARED:
                raise PlanningOptionError(
                    f"share_mutable_buffers has memory {_SHARED} for buffers, and this plan has "
                    f"{len(sizes) - 1} memories for other tensors: leave all of them in memory 1",
                    code=Code.INVALID_ARGUMENT,
                )
            sizes.append(end)


class PlanningOptionError(ExportError, ValueError):
    """Options of a planning pass contradict each other."""


def _give_allocations_specs(graph_module: GraphModule) -> None:
    """Give each `alloc` node the spec of the out-variant that writes it."""
    for node in graph_module.graph.nodes:
        if not is_out_var_node(node) or "spec" not in node.meta:  # with jumps, `alloc` has its own
            continue
        names = out_names(node.target)
        specs = iter(get_node_tensor_specs(node))
        for name in names:
            allocated = node.kwargs.get(name)
            if isinstance(allocated, Node) and len(names) == 1:
                allocated.meta["spec"] = node.meta["spec"]
                _take_over(node)
            elif isinstance(allocated, Node):
                allocated.meta["spec"] = next(specs)


def _take_over(node: Node) -> None:
    """Note the argument whose memory a result takes over, where a pass has chosen one."""
    position = node.meta.get("_share_alloc_with_arg_idx")
    base = node.args[position] if position is not None and position < len(node.args) else None
    spec = base.meta.get("spec") if isinstance(base, Node) else None
    if isinstance(spec, TensorSpec):
        node.meta["spec"].inplace_base = spec
