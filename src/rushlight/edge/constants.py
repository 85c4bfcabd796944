"""The constants of an exported program: parameters, buffers that nothing writes, lifted tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, TensorArgument
from torch.fx import Graph, GraphModule, Node

from rushlight.ir.branches import branch
from rushlight.ir.rewrite import KEPT_META, fake_mode_of

_CONSTANT = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class Constants:
    """Reads and adds the constants of one program, which it changes in place.

    The program must be the caller's own: its graph, signature and table of constants are written.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self._begin(program.graph)
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

    def _begin(self, graph: Graph) -> None:
        self.graph = graph
        self._mode = fake_mode_of(graph)
        self._added: dict[Any, Node] = {}

    def nodes(self) -> set[Node]:
        """The nodes that stand for constants."""
        return set(self._targets)

    def value(self, node: Node) -> torch.Tensor:
        """The tensor that `node` stands for."""
        return tensor_named(self.program, self._targets[node])

    def add(self, tensor: torch.Tensor, *, like: Node) -> Node:
        """A node for a new constant; scalars of equal value and dtype share one node."""
        key = (tensor.dtype, repr(tensor.item())) if tensor.dim() == 0 else None
        if key is not None and key in self._added:
            return self._added[key]
        tensor = tensor.detach().clone()
        with self.graph.inserting_before(next(iter(self.graph.nodes))):
            node, name = self._new(tensor)
        node.meta = {k: like.meta[k] for k in KEPT_META if k in like.meta}
        node.meta["val"] = self._mode.from_tensor(tensor, static_shapes=True)
        self._targets[node] = name
        if key is not None:
            self._added[key] = node
        return node

    def _new(self, tensor: torch.Tensor) -> tuple[Node, str]:
        name = _fresh_name(self.program.constants)
        node = self.graph.placeholder(name)
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target=name)
        self.program.graph_signature.input_specs.insert(0, spec)
        self.program.constants[name] = tensor
        return node, name

    def drop_unused(self) -> None:
        """Erase the nodes of constants that no node uses any more."""
        unused = {n for n in self._targets if not n.users}
        for node in unused:
            del self._targets[node]
            self.graph.erase_node(node)
        self._forget({n.name for n in unused})

    def _forget(self, names: set[str]) -> None:
        specs = self.program.graph_signature.input_specs
        specs[:] = [s for s in specs if s.arg.name not in names]


class BranchConstants(Constants):
    """The constants of a branch of control flow: tensors that its module holds.

    Weights are operands of the branch, so they do not count as constants here.
    """

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self._begin(module.graph)
        self._targets = {n: str(n.target) for n in self.graph.nodes if names_tensor(n)}

    def value(self, node: Node) -> torch.Tensor:
        """The tensor that `node` stands for."""
        return self.module.get_buffer(self._targets[node])

    def _new(self, tensor: torch.Tensor) -> tuple[Node, str]:
        name = _fresh_name(dict(self.module.named_buffers()))
        self.module.register_buffer(name, tensor)
        return self.graph.get_attr(name), name

    def _forget(self, names: set[str]) -> None:
        """Do nothing: tensors that no node names stay in the module and out of the file."""


def names_tensor(node: Node) -> bool:
    """Whether a node stands for a tensor that its module holds."""
    return node.op == "get_attr" and branch(node) is None


def _fresh_name(taken: Mapping[str, Any]) -> str:
    i = len(taken)
    while f"_constant_{i}" in taken:
        i += 1
    return f"_constant_{i}"


def tensor_named(program: ExportedProgram, target: str) -> torch.Tensor:
    """A parameter, buffer or lifted constant by its qualified name."""
    if target in program.state_dict:
        return program.state_dict[target]  # type: ignore[no-any-return]
    return program.constants[target]  # type: ignore[no-any-return]
