"""The work of kernels, and an estimate of what any work costs, computed from sizes in the file."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.inspect.model import Actual, Instruction, Value, Work

# Products: the positions of the left and of the right matrix [..., depth, columns].
_PRODUCTS = {
    "aten::mm": (0, 1),
    "aten::bmm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::baddbmm": (1, 2),
}
_TRANSPOSED = 6  # the index of a convolution's argument


def actual_of(value: Value) -> Actual | None:
    """The sizes or number of a value in a run; None if not known."""
    if value.kind == "int":
        return int(value.text)
    return None if value.kind != "tensor" or value.dynamic else tuple(value.shape)


def kernel_work(instruction: Instruction, values: Sequence[Value]) -> Work:
    """The work of a kernel call: the bytes of all its tensors, unknown if a size is dynamic."""
    source = instruction.source
    work = Work(instruction.op, sources=[] if source is None else [source])
    if instruction.kind != "kernel":
        return work
    tensors = [values[i] for i in dict.fromkeys((*instruction.reads, *instruction.writes))]
    if any(value.dynamic for value in tensors):
        return work
    work.bytes = sum(value.bytes for value in tensors)
    try:
        work.flops = _kernel_flops(instruction, values)
    except (IndexError, ValueError):  # its arguments do not fit the operator
        work.flops = None
    return work


def _kernel_flops(instruction: Instruction, values: Sequence[Value]) -> int | None:
    name = instruction.op.partition(".")[0]
    args = [values[i] for i in instruction.args]
    if name in _PRODUCTS:
        left, right = (args[i].shape for i in _PRODUCTS[name])
        return 2 * math.prod(left) * right[-1]
    if name == "aten::linear":
        return 2 * math.prod(args[0].shape) * args[1].shape[0]
    if name == "aten::convolution":
        transposed = args[_TRANSPOSED].text == "True"
        many = args[0 if transposed else instruction.args.index(instruction.writes[0])].shape
        weight = args[1].shape
        return 2 * math.prod(many) * math.prod(weight[1:])
    return None


def cost_of(work: Work) -> float:
    """Estimated microseconds on one core; 0 if the work is not known."""
    from rushlight.ir.rates import estimated_cost

    return round(estimated_cost(work.flops or 0, work.bytes or 0), 3)
