"""A part of a model that was compiled for a backend, as a module and as a program of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx import Graph

from rushlight.edge.config import ExecutorchBackendConfig
from rushlight.ir.programs import copy_node, copy_program, make_module
from rushlight.ir.source import Source, source_of
from rushlight.partition.named_data import NamedDataStoreOutput
from rushlight.schema.program import CompileSpec

Saver = Callable[["LoweredBackendModule", "ExecutorchBackendConfig | None"], bytes]
_saver: Saver | None = None


def set_saver(saver: Saver) -> None:
    """Set who turns a lowered module into a file: the stages that do so come after this one."""
    global _saver
    _saver = saver


class LoweredBackendModule(torch.nn.Module):
    """What `to_backend` makes of a program: the payload, and what it was made of.

    Called in eager it computes what the original program computes, so that a model that is
    composed of lowered modules can be checked and captured like any other. Two calls of one module
    share one delegate on the device.

    Attributes:
        backend_id: who runs it.
        processed_bytes: the payload.
        compile_specs: the options it was compiled with.
        original_module: the Edge program it was made of.
        named_data_store_output: its data beside the payload.
        meta: {"debug_handle_map": {id: handles}, and what `preprocess` adds}.
    """

    def __init__(
        self,
        edge_program: ExportedProgram,
        backend_id: str,
        processed_bytes: bytes,
        compile_specs: list[CompileSpec],
        named_data_store_output: NamedDataStoreOutput | None = None,
    ) -> None:
        super().__init__()
        self._program = edge_program
        self.backend_id = backend_id
        self.processed_bytes = processed_bytes
        self.compile_specs = list(compile_specs)
        self.named_data_store_output = named_data_store_output
        self.meta: dict[str, Any] = {}

    @property
    def original_module(self) -> ExportedProgram:
        """The Edge program that the payload was made of."""
        return self._program

    def __deepcopy__(self, memo: dict[int, Any]) -> LoweredBackendModule:
        """Itself: it never changes, and graphs that hold it are copied often."""
        memo[id(self)] = self
        return self

    def forward(self, *args: Any) -> Any:
        """What the original program computes."""
        return executorch_call_delegate(self, *args)

    def program(self) -> ExportedProgram:
        """A program in the Edge dialect that is one call of this module and nothing else."""
        program = copy_program(self._program)
        signature = program.graph_signature
        inputs = {s.arg.name for s in signature.input_specs if s.kind == InputKind.USER_INPUT}
        old = list(program.graph.nodes)
        returned: Any = old[-1].args[0]
        outputs = [
            value
            for spec, value in zip(signature.output_specs, returned, strict=True)
            if spec.kind == OutputKind.USER_OUTPUT
        ]
        signature.input_specs[:] = [
            s for s in signature.input_specs if s.kind == InputKind.USER_INPUT
        ]
        signature.output_specs[:] = [
            s for s in signature.output_specs if s.kind == OutputKind.USER_OUTPUT
        ]
        graph = Graph()
        given = [copy_node(graph, node, {}) for node in old if node.name in inputs]
        held = {"lowered_module_0": self}
        call = graph.call_function(
            executorch_call_delegate, (graph.get_attr("lowered_module_0"), *given)
        )
        call.meta["val"] = [node.meta["val"] for node in outputs]
        results = [graph.call_function(operator.getitem, (call, i)) for i in range(len(outputs))]
        for result, node, spec in zip(results, outputs, signature.output_specs, strict=True):
            result.meta["val"] = node.meta["val"]
            spec.arg = TensorArgument(result.name)
        graph.output(tuple(results))
        program._graph_module = make_module(held, graph, program.graph_module)
        return program

    def buffer(self, config: ExecutorchBackendConfig | None = None) -> bytes:
        """The module as a `.pte` file with one method, `forward`."""
        assert _saver is not None, "rushlight.pipeline sets it"
        return _saver(self, config)

    def sources(self) -> Mapping[str, list[tuple[str, str, Source]]]:
        """Where the backend's own instructions come from.

        Returns:
            {id: [(node name, operator, Python line)]} for every id of the debug handle map.
        """
        by_handle: dict[int, list[tuple[str, str, Source]]] = {}
        for node in self._program.graph.nodes:
            if node.op == "call_function" and "debug_handle" in node.meta:
                row = (node.name, str(node.target), source_of(node))
                by_handle.setdefault(node.meta["debug_handle"], []).append(row)
        found = {}
        for key, handles in (self.meta.get("debug_handle_map") or {}).items():
            listed = (handles,) if isinstance(handles, int) else handles
            found[str(key)] = [row for h in listed for row in by_handle.get(h, ())]
        return found
