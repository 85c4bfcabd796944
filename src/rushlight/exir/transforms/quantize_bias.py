"""Quantise the biases that folding batch norms gave to convolutions."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.exir.placeholders import (
    create_constant_placeholder,
    get_param_tensor,
    is_param_node,
)
from rushlight.exir.transforms.refresh import call_like, refresh
from rushlight.ir.rewrite import fake_mode_of

_aten, _q = torch.ops.aten, torch.ops.quantized_decomposed
_CONVOLUTIONS = (_aten.convolution.default, _aten.conv2d.default, _aten.conv_transpose2d.input)
_UNSQUEEZES = (_aten.unsqueeze_copy.default, _aten.unsqueeze.default)
_BIAS, _MOST = 2, 2**31 - 1


class QuantizeFusedConvBnBiasAtenPass(PassBase):
    """Gives each bias of a quantised convolution the calls that dequantise it, from int32.

    A quantiser sees no bias where the model has none; folding a batch norm makes one, in float. Its
    scale is that of the input times that of the weight.

    Args:
        exported_program: the program of the graph, whose parameters are inputs; without it, the
            parameters are attributes of the graph's module.
        default_zero_bias: give convolutions without a bias one of zeros.
        symmetric_quant: leave out the least int32.
    """

    def __init__(
        self,
        exported_program: ExportedProgram | None = None,
        default_zero_bias: bool = False,
        symmetric_quant: bool = False,
    ) -> None:
        self.exported_program = exported_program
        self.default_zero_bias = default_zero_bias
        self.symmetric_quantization = symmetric_quant

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph, and its program or module, in place."""
        self._module = graph_module
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.target in _CONVOLUTIONS:
                modified |= self._quantize(node)
        if modified:
            refresh(graph_module)
        return PassResult(graph_module, modified)

    def _quantize(self, node: Node) -> bool:
        source, weight = self._dequantized(node)
        if source is None or weight is None:
            return False
        bias: Any = node.args[_BIAS] if len(node.args) > _BIAS else None
        if bias is None and self.default_zero_bias:
            channels = node.meta["val"].shape[1]
            bias = self._add(f"{node.name}_zero_bias", torch.zeros(channels), node)
            node.args = (*node.args[:_BIAS], bias, *node.args[_BIAS + 1 :])
        value = None if bias is None else self._tensor(bias)
        if value is None or not value.is_floating_point():
            return False
        least = -_MOST if self.symmetric_quantization else -_MOST - 1
        given: Any = source.args[1]
        by: Any = weight.args[1]
        if isinstance(by, Node):
            scales = self._tensor(by)
            if scales is None:
                return False
            scales = given * scales.detach()
            zeros = torch.zeros(scales.shape, dtype=torch.int32)
            rest: tuple[Any, ...] = (0, least, _MOST, torch.int32)
            made = _q.quantize_per_channel.default(value.detach(), scales, zeros, *rest)
            integers = self._add(f"{node.name}_bias_integers", made, node)
            scale = self._add(f"{node.name}_bias_scale", scales, node)
            zero = self._add(f"{node.name}_bias_zero_point", zeros, node)
            target, args = _q.dequantize_per_channel.default, (integers, scale, zero, *rest)
        else:
            rest = (given * by, 0, least, _MOST, torch.int32)
            made = _q.quantize_per_tensor.default(value.detach(), *rest)
            integers = self._add(f"{node.name}_bias_integers", made, node)
            target, args = _q.dequantize_per_tensor.default, (integers, *rest)
        node.update_arg(_BIAS, call_like(node, target, args))
        return True

    def _dequantized(self, node: Node) -> tuple[Node | None, Node | None]:
        """The calls that give a convolution its input and its weight, if both are dequantised."""
        source: Any = node.args[0]
        if source.target in _UNSQUEEZES:
            source = source.args[0]
        weight: Any = node.args[1]
        of_source = source.target == _q.dequantize_per_tensor.default
        of_weight = weight.target in (
            _q.dequantize_per_tensor.default,
            _q.dequantize_per_channel.default,
        )
        return source if of_source else None, weight if of_weight else None

    def _tensor(self, node: Node) -> torch.Tensor | None:
        """The tensor of a parameter or attribute; None for other nodes."""
        if self.exported_program is not None:
            is_held = is_param_node(self.exported_program, node)
            return get_param_tensor(self.exported_program, node) if is_held else None
        if node.op != "get_attr":
            return None
        tensor: torch.Tensor = operator.attrgetter(str(node.target))(self._module)
        return tensor

    def _add(self, name: str, tensor: torch.Tensor, at: Node) -> Node:
        """A new buffer of the program, or of the module."""
        graph = at.graph
        if self.exported_program is not None:
            with graph.inserting_before(next(iter(graph.nodes))):
                return create_constant_placeholder(
                    self.exported_program, graph, name, InputKind.BUFFER, tensor, True
                )
        self._module.register_buffer(name, tensor)
        with graph.inserting_before(at):
            node = graph.get_attr(name)
        node.meta["val"] = fake_mode_of(graph).from_tensor(tensor, static_shapes=True)
        return node
