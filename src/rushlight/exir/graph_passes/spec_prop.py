"""`SpecPropPass`: specs for the values of all nodes."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.utils import _pytree as pytree

from rushlight.errors import Code, ExportError
from rushlight.exir.planning.nodes import is_mutable_buffer
from rushlight.exir.specs import TensorSpec
from rushlight.partition import executorch_call_delegate


def make_spec(value: Any) -> Any:
    """The spec of an example tensor; numbers are their own, and other values have none."""
    if isinstance(value, torch.Tensor):
        return TensorSpec.from_tensor(value)
    return value if isinstance(value, int | bool | float) else None


class SpecPropPass(PassBase):
    """Gives each node the specs of its values, as `meta["spec"]`, in branches and bodies too.

    What a graph returns, and elements that `getitem` takes, have the specs of the nodes that
    compute them. A delegate's specs are kept.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Write the specs."""
        for module in graph_module.modules():
            if isinstance(module, GraphModule):
                for node in module.graph.nodes:
                    _write_spec(node)
        return PassResult(graph_module, True)

    def update_placeholder_tensor_specs(
        self, exported_program: ExportedProgram, graph_module: GraphModule
    ) -> None:
        """Mark the specs of parameters, of constants and of buffers that are not written.

        Raises:
            ExportError: an input has no spec.
        """
        signature = exported_program.graph_signature
        constants = {*signature.inputs_to_parameters, *signature.inputs_to_lifted_tensor_constants}
        constants |= set(signature.inputs_to_buffers)
        for node in graph_module.graph.find_nodes(op="placeholder"):
            if "spec" not in node.meta:
                raise ExportError(
                    f"the input {node.name} has no meta['spec']: run SpecPropPass first",
                    code=Code.INVALID_STATE,
                )
            if node.target in constants and not is_mutable_buffer(node, signature):
                node.meta["spec"].const = True


def _write_spec(node: Node) -> None:
    if node.op == "output":
        node.meta["spec"] = pytree.tree_map(_known, node.args[0])
    elif node.target is operator.getitem and isinstance(
        specs := _known(node.args[0]), list | tuple
    ):
        node.meta["spec"] = specs[node.args[1]]  # type: ignore[index]
    elif node.target is not executorch_call_delegate or "spec" not in node.meta:
        node.meta["spec"] = pytree.tree_map(make_spec, node.meta.get("val"))


def _known(value: Any) -> Any:
    return value.meta.get("spec") if isinstance(value, Node) else None
