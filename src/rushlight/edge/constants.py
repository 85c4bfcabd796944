"""The constants of an exported program: parameters, buffers that nothing writes, lifted tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, TensorArgument
from torch.fx import Graph, Node

from rushlight.ir.rewrite import KEPT_META, fake_mode_of

_CONSTANT = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class Constants:
    """Reads and adds the constants of one program, which it changes in place.

    The program must be the caller's own: its graph, signature and table of constants are written.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.graph: Graph = program.graph
        self._mode = fake_mode_of(self.graph)
        self._added: dict[Any, Node] = {}
        mutated = {
            s.target
            for s in program.graph_signature.output_specs
            if s.kind == OutputKind.BUFFER_MUTATION
        }
        specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        self._targets: dict[Node, str] = {
            node: spec.target
            for node in self.graph.nodes
            if node.op == "placeholder"
            and (spec := specs[node.name]).kind in _CONSTANT
            and spec.target is not None
            and spec.target not in mutated
        }

    def nodes(self) -> set[Node]:
        """The placeholders that stand for constants."""
        return set(self._targets)

    def value(self, node: Node) -> torch.Tensor:
        """The tensor that the placeholder `node` stands for."""
        return tensor_named(self.program, self._targets[node])

    def add(self, tensor: torch.Tensor, *, like: Node) -> Node:
        """A placeholder for a new constant; one scalar of one value and dtype exists once."""
        key = (tensor.dtype, repr(tensor.item())) if tensor.dim() == 0 else None
        if key is not None and key in self._added:
            return self._added[key]
        name = self._fresh_name()
        tensor = tensor.detach().clone()
        first = next(iter(self.graph.nodes))
        with self.graph.inserting_before(first):
            node = self.graph.placeholder(name)
        node.meta = {k: like.meta[k] for k in KEPT_META if k in like.meta}
        node.meta["val"] = self._mode.from_tensor(tensor)
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target=name)
        self.program.graph_signature.input_specs.insert(0, spec)
        self.program.constants[name] = tensor
        self._targets[node] = name
        if key is not None:
            self._added[key] = node
        return node

    def _fresh_name(self) -> str:
        i = len(self.program.constants)
        while f"_constant_{i}" in self.program.constants:
            i += 1
        return f"_constant_{i}"

    def drop_unused(self) -> None:
        """Erase the placeholders of constants that no node uses any more."""
        unused = {n for n in self._targets if not n.users}
        specs = self.program.graph_signature.input_specs
        names = {n.name for n in unused}
        specs[:] = [s for s in specs if s.arg.name not in names]
        for node in unused:
            del self._targets[node]
            self.graph.erase_node(node)


def tensor_named(program: ExportedProgram, target: str) -> torch.Tensor:
    """A parameter, buffer or lifted constant by its qualified name."""
    if target in program.state_dict:
        return program.state_dict[target]  # type: ignore[no-any-return]
    return program.constants[target]  # type: ignore[no-any-return]
