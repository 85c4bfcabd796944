"""Fold batch norms into the convolutions before them.

`rushlight.edge` folds those of captured models itself; this pass is for graphs that others made.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torch.nn.utils.fusion import fuse_conv_bn_weights

from rushlight.edge import ExportPass
from rushlight.edge.operators import ops
from rushlight.exir.placeholders import (
    create_constant_placeholder,
    get_param_tensor,
    is_param_node,
)
from rushlight.exir.transforms.refresh import refresh

_aten = ops.edge.aten
_CONVOLUTION = _aten.convolution.default
_TRAINING = _aten.native_batch_norm.default
_NORMS = (_TRAINING, _aten._native_batch_norm_legit_no_training.default)


class FuseBatchNormWithConvPass(ExportPass):
    """Multiplies the scales of a batch norm into the weights of the convolution before it.

    Args:
        exported_program: the program of the graph; it gets the new weights and biases.
    """

    def __init__(self, exported_program: ExportedProgram) -> None:
        self.exported_program = exported_program

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph, and the program's signature and state, in place."""
        modified = False
        for conv in graph_module.graph.find_nodes(op="call_function", target=_CONVOLUTION):
            norm = next(iter(conv.users), None)
            if len(conv.users) != 1 or norm is None or norm.target not in _NORMS:
                continue
            if self.can_fuse(conv, norm, self.exported_program):
                self._fuse(graph_module, conv, norm)
                modified = True
        return PassResult(refresh(graph_module) if modified else graph_module, modified)

    @staticmethod
    def can_fuse(conv: Node, bn: Node, program: ExportedProgram) -> bool:
        """Whether a batch norm is one of inference with constants, and only its result is used."""
        if any(user.target is not operator.getitem or user.args[1] != 0 for user in bn.users):
            return False
        if bn.target == _TRAINING and bn.args[5]:
            return False
        if conv.args[6] and conv.args[8] != 1:
            return False  # the weights of groups of a transposed convolution are not apart
        if conv.args[1] is None or bn.args[3] is None or bn.args[4] is None:
            return False
        tensors = [*conv.args[1:3], *bn.args[1:5]]
        return all(is_param_node(program, n) for n in tensors if isinstance(n, Node))

    def _fuse(self, graph_module: GraphModule, conv: Node, norm: Node) -> None:
        program, graph = self.exported_program, graph_module.graph
        names = (f"{conv.name}_fused_with_bn_{{}}_{i}" for i in itertools.count())
        name = next(one for one in names if one.format("weight") not in program.state_dict)
        weight, bias, gamma, beta, mean, variance = (
            get_param_tensor(program, n)  # type: ignore[arg-type]
            for n in (*conv.args[1:3], *norm.args[1:5])
        )
        eps: Any = norm.args[-1]
        transposed: Any = conv.args[6]
        assert weight is not None and mean is not None and variance is not None
        with torch.no_grad():
            made = fuse_conv_bn_weights(
                weight, bias, mean, variance, eps, gamma, beta, transpose=transposed
            )
        for place, (kind, tensor) in enumerate(zip(("weight", "bias"), made, strict=True), 1):
            with graph.inserting_before(next(iter(graph.nodes))):
                node = create_constant_placeholder(
                    program,
                    graph,
                    name.format(kind),
                    InputKind.PARAMETER,
                    tensor.detach(),
                )
            conv.update_arg(place, node)
        for user in list(norm.users):
            user.replace_all_uses_with(conv, propagate_meta=False)
            graph.erase_node(user)
        graph.erase_node(norm)
