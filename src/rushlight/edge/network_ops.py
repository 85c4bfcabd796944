"""Rules for operators of neural networks that torch decomposes into far more nodes, or not at all.

Each rule gives exactly eager's result and uses only operators that have kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten


def batch_norm(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """Batch norm that also returns the new running statistics.

    It uses the kernel for given statistics, or in training the one for the batch's own statistics
    and computes a mean and a variance for the update.
    """
    if not training:
        normalized = aten._native_batch_norm_legit_no_training.default(
            input, weight, bias, running_mean, running_var, momentum, eps
        )
        return (*normalized, running_mean, running_var)
    normalized = aten._native_batch_norm_legit.no_stats(input, weight, bias, True, momentum, eps)
    dims = [d for d in range(input.dim()) if d != 1]
    var, mean = torch.var_mean(input.to(running_var.dtype), dims, correction=1)
    new_mean = momentum * mean + (1 - momentum) * running_mean
    new_var = momentum * var + (1 - momentum) * running_var
    return (*normalized, new_mean, new_var)


def batch_norm_with_update(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """Batch norm in training; the tensor reserved for the backward pass is empty on CPU."""
    *normalized, new_mean, new_var = batch_norm(
        input, weight, bias, running_mean, running_var, True, momentum, eps
    )
    reserve = input.new_empty((0,), dtype=torch.uint8)
    return (*normalized, reserve, new_mean, new_var)


def trilinear(
    i1: torch.Tensor,
    i2: torch.Tensor,
    i3: torch.Tensor,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> torch.Tensor:
    """The sum over some dimensions of a product of three tensors that broadcast.

    The call that `torch.nn.functional.bilinear` makes becomes one matrix product.
    """
    if (expand1, expand2, expand3, sumdim) == ([1, 3], [0], [1, 2], [2, 3]):
        pairs = (i1.unsqueeze(2) * i3.unsqueeze(1)).flatten(1)
        return torch.matmul(pairs, i2.flatten(1).t())
    product = torch.ones((), dtype=i1.dtype, device=i1.device)
    for factor, expanded in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for dim in sorted(expanded):
            factor = factor.unsqueeze(dim)
        product = product * factor
    return product.sum(sumdim)


def convolution_backward(
    grad_output: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: list[int] | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> Any:
    """Compute all gradients even where some are masked out: the kernel cannot return None."""
    if all(output_mask):
        return NotImplemented  # stays whole
    channels = weight.size(1) * groups if transposed else weight.size(0)
    lists = (stride, padding, dilation, transposed, output_padding, groups)
    gradients = aten.convolution_backward.default(
        grad_output, input, weight, bias_sizes or [channels], *lists, [True, True, True]
    )
    return tuple(g if wanted else None for g, wanted in zip(gradients, output_mask, strict=True))


NETWORK_DECOMPOSITIONS: dict[OpOverload, Callable[..., Any]] = {
    aten._batch_norm_with_update_functional.default: batch_norm_with_update,
    aten._native_batch_norm_legit_functional.default: batch_norm,
    aten._trilinear.default: trilinear,
    aten.convolution_backward.default: convolution_backward,
}
