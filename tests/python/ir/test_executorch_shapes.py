"""Operators of ExecuTorch's that read quantised weights are captured with dynamic sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rushlight as rl
from rushlight.ir.custom_ops import executorch

executorch.define()
q = torch.ops.quantized_decomposed

INT8 = torch.randint(-128, 127, (10, 8), dtype=torch.int8)
PACKED = torch.randint(0, 255, (10, 4), dtype=torch.uint8)
SCALES = torch.rand(10)
IDS = torch.arange(4).reshape(1, 4)
X = torch.rand(4, 8)


@pytest.mark.parametrize(
    ("operator", "args", "kwargs"),
    [
        (q.embedding_byte.default, (INT8, SCALES, None, -128, 127, IDS), {}),
        (q.embedding_byte.dtype, (INT8, SCALES, None, -128, 127, IDS), {"dtype": torch.half}),
        (q.embedding_4bit.default, (PACKED, SCALES, None, -8, 7, IDS), {}),
        (q.embedding_2bit.default, (PACKED, SCALES, None, -2, 1, IDS), {}),
        (q.mixed_linear.default, (X, INT8, SCALES, None), {}),
        (q.mixed_mm.default, (X.new_ones(4, 10), INT8, SCALES, None), {}),
    ],
)
def test_dynamic_sizes(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    at = 0 if args[0].is_floating_point() else 5
    weights = [a for a in args if isinstance(a, torch.Tensor) and a is not args[at]]

    class Call(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for i, weight in enumerate(weights):
                self.register_buffer(f"w{i}", weight)

        def forward(self, x: torch.Tensor) -> Any:
            held = iter((self.w0, self.w1))
            first = [next(held) if isinstance(a, torch.Tensor) else a for a in args[:at]]
            rest = [next(held) if isinstance(a, torch.Tensor) else a for a in args[at + 1 :]]
            return operator(*first, x, *rest, **kwargs)

    x = args[at]
    size = {x.dim() - 1 if at else 0: torch.export.Dim("size", max=16)}
    program = torch.export.export(Call(), (x,), dynamic_shapes=(size,))
    [returned] = program.graph.output_node().args[0]
    eager = operator(*args, **kwargs)
    value = returned.meta["val"]
    assert (value.dtype, value.dim()) == (eager.dtype, eager.dim())
    module = rl.load(rl.export(program, verify=False).buffer)
    for one in (x, x[..., :2] if at else x[:2]):
        expected = Call()(one)
        torch.testing.assert_close(torch.as_tensor(module(one)), expected, rtol=1e-3, atol=1e-3)
