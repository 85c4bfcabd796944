"""A program or partition that was compiled for a backend, as a module that can be called."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, Node

from rushlight.edge.config import ExecutorchBackendConfig, MemoryPlanningPass
from rushlight.edge.to_edge import finish
from rushlight.ir.programs import copy_node, copy_program, make_module
from rushlight.ir.source import source_of
from rushlight.partition.debug_map import numbered_calls
from rushlight.partition.flat import flatten
from rushlight.partition.named_data import NamedDataStoreOutput
from rushlight.partition.registry import find_stage
from rushlight.schema import program as fb
from rushlight.schema.program import CompileSpec
from rushlight.schema.source import Source

_TEXTS = ("notes", "schemas")  # of `meta`: texts by names


class LoweredBackendModule(torch.nn.Module):
    """The result of `to_backend` for a program: the payload and the program it was made from.

    In eager it computes the same as the original program, so that a model composed of lowered
    modules can be checked and captured like any other; it has its own copy of the state that it
    owns. Two calls of one module share one delegate at run time.

    Args:
        edge_program: the program that the payload was made from.
        backend_id: the id of the backend that runs it.
        processed_bytes: the payload.
        compile_specs: the options that it was compiled with.
        named_data_store_output: its named data.
        overread: bytes that the backend may read beyond the end of any tensor that it is passed.

    Attributes:
        meta: "debug_handle_map" is {id: debug handles} with the handles of the method, one for each
            node that the backend named; all nodes decomposed from one call share theirs. "notes"
            and other entries come from `preprocess`.
    """

    def __init__(
        self,
        edge_program: ExportedProgram,
        backend_id: str,
        processed_bytes: bytes,
        compile_specs: list[CompileSpec],
        named_data_store_output: NamedDataStoreOutput | None = None,
        overread: int = 0,
    ) -> None:
        super().__init__()
        self._program = edge_program
        self._flat, self._call = flatten(edge_program)
        for name in self._flat.graph_signature.buffers_to_mutate.values():
            for tensors in (self._flat._state_dict, self._flat._constants):
                if isinstance(held := tensors.get(name), torch.Tensor):
                    tensors[name] = held.clone()
        self.backend_id = backend_id
        self.processed_bytes = processed_bytes
        self.compile_specs = list(compile_specs)
        self.named_data_store_output = named_data_store_output
        self.overread = overread
        self.meta: dict[str, Any] = {}
        self._places: dict[str, list[Node]] = {}

    @property
    def original_module(self) -> ExportedProgram:
        """The Edge program that the payload was made from, with flat inputs and outputs."""
        return self._flat

    def __deepcopy__(self, memo: dict[int, Any]) -> LoweredBackendModule:
        """Return the module itself: it never changes, and graphs with it are copied often."""
        memo[id(self)] = self
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the results of the original program."""
        flat = self._call.flatten(args, kwargs)
        computed = executorch_call_delegate(self, *(flat[i] for i in self._call.passed))
        return pytree.tree_unflatten(self._call.assemble(computed, flat), self._call.results)

    def exported_program(self) -> ExportedProgram:
        """A program in the Edge dialect that consists of one call of this module."""
        program = copy_program(self._program)
        signature = program.graph_signature
        names = {s.arg.name for s in signature.input_specs if s.kind == InputKind.USER_INPUT}
        signature.input_specs[:] = [s for s in signature.input_specs if s.arg.name in names]
        signature.output_specs[:] = [
            s for s in signature.output_specs if s.kind == OutputKind.USER_OUTPUT
        ]
        graph = Graph()
        flat = [copy_node(graph, node) for node in program.graph.nodes if node.name in names]
        held = {"lowered_module_0": self}
        arguments = (flat[i] for i in self._call.passed)
        call = graph.call_function(
            executorch_call_delegate, (graph.get_attr("lowered_module_0"), *arguments)
        )
        call.meta["val"] = self._values()
        results = []
        for i, value in enumerate(call.meta["val"]):
            results.append(graph.call_function(operator.getitem, (call, i)))
            results[-1].meta["val"] = value
        graph.output(tuple(self._call.assemble(results, flat)))
        program._graph_module = make_module(held, graph, program.graph_module)
        program._state_dict, program._constants = {}, {}
        finish(program)
        return program

    def _values(self) -> list[Any]:
        """Example values of the delegate's outputs."""
        returned: Any = self._flat.graph.output_node().args[0]
        specs = self._flat.graph_signature.output_specs
        return [
            node.meta["val"]
            for spec, node in zip(specs, returned, strict=True)
            if spec.kind == OutputKind.USER_OUTPUT
        ]

    def buffer(self, config: ExecutorchBackendConfig | None = None) -> bytes:
        """The module as a `.pte` file with one method, `forward`."""
        file: bytes = find_stage("lowered_to_file")(self, config)
        return file

    def program(
        self, emit_stacktrace: bool = False, memory_planning: MemoryPlanningPass | None = None
    ) -> fb.Program:
        """The module as a program of the schema, which holds its payload itself.

        Args:
            emit_stacktrace: store the Python line of the call.
            memory_planning: how memory is planned; None: as always.
        """
        config = ExecutorchBackendConfig(
            memory_planning_pass=memory_planning or MemoryPlanningPass(),
            emit_stacktrace=emit_stacktrace,
            extract_delegate_segments=False,
        )
        program = fb.unpack(self.buffer(config))
        program.segments, program.named_data = [], []  # what only the file needs
        program.constant_segment = fb.SubsegmentOffsets()
        return program

    def set_places(self, numbers: Mapping[int | str, int | Iterable[int]]) -> None:
        """Record which calls the backend's own instructions were made from.

        Args:
            numbers: {the backend's id of an instruction: the numbers of its calls}, as counted by
                `number_calls`; a number that no call has is left out.
        """
        calls = dict(enumerate(numbered_calls(self._flat.graph_module), start=1))
        handles: dict[int | str, tuple[int, ...]] = {}
        for key, call_numbers in numbers.items():
            listed = (call_numbers,) if isinstance(call_numbers, int) else call_numbers
            nodes = [calls[n] for n in listed if n in calls]
            self._places[str(key)] = list(dict.fromkeys(nodes))
            own = (node.meta.get("debug_handle") for node in nodes)
            handles[key] = tuple(h for h in own if h is not None)
        self.meta["debug_handle_map"] = handles

    def sources(self) -> Mapping[str, list[tuple[str, str, Source]]]:
        """The nodes that the backend's own instructions were made from.

        Returns:
            {id: [(node name, operator, Python line)]} for every id in the backend's debug map.
        """
        return {
            key: [(node.name, str(node.target), source_of(node)) for node in nodes]
            for key, nodes in self._places.items()
        }

    def facts(self) -> dict[str, Any]:
        """What `to_backend` knows about the module besides its payload, as values of JSON, for
        files that hold lowered modules."""
        handles = self.meta.get("debug_handle_map", {})
        return {
            "overread": self.overread,
            "places": {key: [node.name for node in nodes] for key, nodes in self._places.items()},
            "debug_handle_map": [[key, list(numbers)] for key, numbers in handles.items()],
            **{key: dict(self.meta[key]) for key in _TEXTS if key in self.meta},
        }

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """Take what `facts` gave for a module of the same program; {} changes nothing."""
        nodes = {node.name: node for node in self._flat.graph.nodes}
        self.overread = facts.get("overread", self.overread)
        for key, names in facts.get("places", {}).items():
            self._places[key] = [nodes[name] for name in names]
        if "debug_handle_map" in facts:
            pairs = facts["debug_handle_map"]
            self.meta["debug_handle_map"] = {key: tuple(handles) for key, handles in pairs}
        self.meta.update({key: dict(facts[key]) for key in _TEXTS if key in facts})
