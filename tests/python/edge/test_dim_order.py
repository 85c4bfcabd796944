"""memory_format_to_dim_order: copies have a dim order instead of a memory format."""

import torch
from expecttest import assert_expected_inline
from pass_text import text, traced

from rushlight.edge.passes.dim_order import memory_format_to_dim_order

LAST = torch.channels_last


def test_memory_formats_become_dim_orders() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        last = x.contiguous(memory_format=LAST)
        return last, last.to(torch.float64), last.to(torch.float64, memory_format=LAST), x.clone()

    program = traced(model, torch.ones(1, 2, 3, 4))
    memory_format_to_dim_order(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[1, 2, 3, 4]
%1: float32[1, 2, 3, 4] = _clone_dim_order(x, dim_order=[0, 2, 3, 1])
%2: float64[1, 2, 3, 4] = _to_dim_order_copy(%1, dtype=float64, dim_order=[0, 2, 3, 1])
%3: float64[1, 2, 3, 4] = _to_dim_order_copy(%1, dtype=float64, dim_order=[0, 2, 3, 1])
%4: float32[1, 2, 3, 4] = _clone_dim_order(x, dim_order=[0, 1, 2, 3])
return [%1, %2, %3, %4]
""",
    )


def test_a_copy_keeps_the_order_of_what_it_copies() -> None:
    image = torch.ones(1, 2, 3, 4, 5).to(memory_format=torch.channels_last_3d)
    program = traced(lambda x: (x.clone(), x.half()), image)
    memory_format_to_dim_order(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[1, 2, 3, 4, 5]
%1: float32[1, 2, 3, 4, 5] = _clone_dim_order(x, dim_order=[0, 2, 3, 4, 1])
%2: float16[1, 2, 3, 4, 5] = _to_dim_order_copy(x, dtype=float16, dim_order=[0, 2, 3, 4, 1])
return [%1, %2]
""",
    )
