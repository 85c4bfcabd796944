"""Batch norms that were not folded into a convolution: a product and a sum for each channel.

As elementwise calls they become part of a convolution's epilogue, or of the chain around them.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter, traced_shape
from rushlight.ir.operators import arguments

aten = torch.ops.aten


def split_batch_norms(r: Rewriter) -> None:
    """Replace batch norms by elementwise calls."""
    target = aten._native_batch_norm_legit_no_training.default
    for node in list(r.graph.find_nodes(op="call_function", target=target)):
        new = _elementwise(r, node)
        for first in list(node.users):
            r.replace(first, new)
    r.clean()


def _elementwise(r: Rewriter, node: Node) -> Node:
    args = arguments(node)
    names = ("running_mean", "running_var", "weight", "bias")
    data = (r.data(args[name]) for name in names)
    mean, variance, weight, bias = (None if one is None else one.float() for one in data)
    assert mean is not None and variance is not None
    scale = torch.rsqrt(variance + args["eps"]) * (1 if weight is None else weight)
    shift = (0 if bias is None else bias) - mean * scale
    channels = [len(mean), *([1] * (len(traced_shape(args["input"])) - 2))]
    factor, term = (
        r.constant((node, name), data.view(channels))
        for name, data in (("scale", scale), ("shift", shift))
    )
    product = r.elementwise(node, aten.mul.Tensor, args["input"], factor)
    return r.elementwise(node, aten.add.Tensor, product, term)
