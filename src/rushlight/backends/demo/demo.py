"""The compiler of the backend: from a partition to the lines that its runtime interprets."""

from __future__ import annotations

import hashlib
import math
import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq

from rushlight.errors import Code, ExportError
from rushlight.ir.bounds import Bounds
from rushlight.ir.source import source_of
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    DelegateMappingBuilder,
    NamedDataStore,
    PreprocessResult,
)

aten = torch.ops.aten
INSTRUCTIONS = {
    aten.sin.default: "sin",
    aten.add.Tensor: "add",
    aten.mul.Tensor: "mul",
    aten.mm.default: "mm",
    aten.linear.default: "linear",
}
_MAX_DIMS = 4


def refusal(node: Node) -> str | None:
    """The reason why the backend does not take a call; None if it does."""
    if node.target not in INSTRUCTIONS:
        return f"it has no instruction for {node.target}"
    if node.kwargs.get("alpha", 1) != 1:
        return "its alpha is not 1"
    if set(node.kwargs) - {"alpha"}:
        return f"it has the keywords {', '.join(node.kwargs)}, which the backend does not read"
    for arg in node.args:
        if arg is not None and not isinstance(arg, Node):
            return f"its argument {arg!r} is not a tensor"
    for one in (*node.all_input_nodes, node):
        value = one.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return f"{one.name} is not a float32 tensor"
        if value.dim() > _MAX_DIMS:
            return f"{one.name} has more than {_MAX_DIMS} dimensions"
        if not value.is_contiguous():
            return f"{one.name} is not row-major"
    if node.target is aten.linear.default and node.all_input_nodes[1].meta["val"].dim() != 2:
        return "its weight does not have 2 dimensions"
    if node.target not in (aten.add.Tensor, aten.mul.Tensor):
        return None
    left, right = (n.meta["val"].shape for n in _operands(node))
    if _is_known(sym_eq(left, right)) or any(
        _is_known(sym_eq(math.prod(sizes), 1)) for sizes in (left, right)
    ):
        return None
    return f"it does not broadcast {list(left)} and {list(right)}"


def _is_known(claim: Any) -> bool:
    """Whether a claim about sizes holds for all of them; the question adds no guard."""
    return bool(statically_known_true(claim))


class BackendWithCompilerDemo(BackendDetails):
    """Writes sin, add, mul, mm and linear of float32 tensors as text."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Compile a partition; weights become named data, with a hash of their bytes as key.

        Raises:
            ExportError: if there is no instruction for a call; it names the call and its line.
        """
        writer = _Writer(edge_program)
        for node in edge_program.graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                writer.call(node)
        return writer.result()


class _Writer:
    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._bounds = Bounds.of(program)
        self._store = NamedDataStore()
        self._handles = DelegateMappingBuilder(generated_identifiers=True)
        self._numbers: dict[Node, int] = {}
        self._lines: list[str] = []
        specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        inputs = [n for n in placeholders if specs[n.name].kind == InputKind.USER_INPUT]
        for node in inputs:
            self._number(node)
        self._head = ["demo 1", f"in {len(inputs)}"]
        data = {**program.constants, **program.state_dict}
        for node in placeholders:
            if specs[node.name].kind != InputKind.USER_INPUT:
                self._data(node, data[specs[node.name].target])

    def _number(self, node: Node) -> int:
        return self._numbers.setdefault(node, len(self._numbers))

    def _data(self, node: Node, tensor: torch.Tensor) -> None:
        tensor = tensor.detach().contiguous()
        content = tensor.numpy().tobytes()
        key = f"demo/{hashlib.sha256(content).hexdigest()[:16]}"
        self._store.add_named_data(key, content, alignment=16)
        sizes = "".join(f" {size}" for size in tensor.shape)
        self._lines.append(f"data %{self._number(node)} {key}{sizes}")

    def call(self, node: Node) -> None:
        """Add an instruction."""
        reason = refusal(node)
        if reason is not None:
            raise ExportError(
                f"{node.name} ({node.target}): {reason}; it comes from {source_of(node)}. Leave it "
                f"out of the partition",
                code=Code.NOT_SUPPORTED,
                sources=[source_of(node)],
            )
        self._handles.insert_delegate_mapping_entry(node)
        operands = "".join(f" %{self._numbers[n]}" for n in _operands(node))
        sizes = node.meta["val"].shape
        most = math.prod(
            self._bounds.upper(size, f"{node.name}: size {d}") for d, size in enumerate(sizes)
        )
        name = INSTRUCTIONS[node.target]  # type: ignore[index]
        self._lines.append(f"%{self._number(node)} = {name}{operands} : {most}")

    def result(self) -> PreprocessResult:
        """The payload with its named data and debug map."""
        signature = self._program.graph_signature
        returned: Any = self._program.graph.output_node().args[0]
        for spec, node in zip(signature.output_specs, returned, strict=True):
            if spec.kind != OutputKind.USER_OUTPUT:
                raise ExportError(
                    f"it keeps no state, and the partition writes {spec.target!r}: leave the "
                    f"buffer untagged",
                    code=Code.NOT_SUPPORTED,
                )
            self._lines.append(f"out %{self._numbers[node]}")
        text = "".join(f"{line}\n" for line in [*self._head, *self._lines])
        return PreprocessResult(
            text.encode(),
            self._handles.get_delegate_mapping(),
            self._store.get_named_data_store_output(),
        )


def _operands(node: Node) -> list[Node]:
    """The tensors of a call, in order."""
    return [arg for arg in node.args if isinstance(arg, Node)]
