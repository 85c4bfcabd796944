"""Cases of the operators that follow index tensors or masks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import REAL, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
TYPES = (*REAL, torch.bool)
INDEX_TYPES = (torch.int64, torch.int32)


def mask(make: Maker, *shape: int) -> torch.Tensor:
    """True at about half of the places."""
    return make.tensor(*shape, dtype=torch.bool)


def index_select(make: Maker) -> Iterator[Sample]:
    for dim in (0, 1, -1):
        for dtype in INDEX_TYPES:
            index = make.integers(7, low=0, high=4, dtype=dtype)
            yield Sample(make.tensor(4, 5, 6), dim, index)
            yield Sample(make.tensor(4, 5, 6, order=(2, 0, 1)), dim, index)
    yield Sample(make.tensor(4, 5), 0, torch.tensor(2))
    yield Sample(make.tensor(), 0, torch.tensor([0]))
    yield Sample(make.tensor(4, 5), 1, torch.zeros(0, dtype=torch.int64))
    yield Sample(make.tensor(4, 0), 0, torch.tensor([1, 3]))
    for dtype in (*TYPES, torch.complex128):
        yield Sample(torch.ones(4, 5, dtype=dtype), 1, torch.tensor([4, 0]))
    for dim in (0, 1, 2):  # enough for several threads
        index = make.integers(90, low=0, high=40)
        yield Sample(make.tensor(40, 45, 50), dim, index)
        yield Sample(make.tensor(40, 45, 50), dim, index, out_dim_order=(2, 0, 1))


def embedding(make: Maker) -> Iterator[Sample]:
    for dtype in INDEX_TYPES:
        yield Sample(make.tensor(10, 33), make.integers(3, 4, low=0, high=10, dtype=dtype))
    yield Sample(make.tensor(10, 33), torch.tensor(7))
    yield Sample(make.tensor(10, 33, order=(1, 0)), make.integers(5, low=0, high=10))
    yield Sample(make.tensor(10, 3), torch.zeros(0, 2, dtype=torch.int64))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        yield Sample(make.tensor(10, 5, dtype=dtype), make.integers(4, low=0, high=10), 2)
    many = make.integers(3, 40, 5, low=0, high=10, dtype=torch.int32)
    yield Sample(make.tensor(10, 90), many)  # enough for several threads
    yield Sample(make.tensor(10, 90), many.permute(1, 2, 0))


def gather(make: Maker) -> Iterator[Sample]:
    for dim in (0, 1, -1):
        index = make.integers(3, 4, 5, low=0, high=3)
        yield Sample(make.tensor(3, 5, 6), dim, index)
        yield Sample(make.tensor(3, 5, 6, order=(2, 0, 1)), dim, index)
    yield Sample(make.tensor(3, 5), 1, make.integers(2, 40, low=0, high=5))
    yield Sample(make.tensor(), 0, torch.tensor(0))
    yield Sample(make.tensor(3), 0, torch.zeros(0, dtype=torch.int64))
    for dtype in TYPES:
        yield Sample(make.tensor(3, 4, dtype=dtype, low=0), 0, make.integers(2, 4, low=0, high=3))


def unique_index(make: Maker, *shape: int, high: int) -> torch.Tensor:
    """Along dimension 0 no value twice: what a scatter of two to one place gives is undefined."""
    columns = [torch.randperm(high, generator=make.generator) for _ in range(shape[1])]
    return torch.stack(columns, 1)[: shape[0]]


def scatter_src(make: Maker) -> Iterator[Sample]:
    index = unique_index(make, 3, 4, high=6)
    yield Sample(make.tensor(6, 4), 0, index, make.tensor(3, 4))
    yield Sample(make.tensor(6, 7), 0, index, make.tensor(5, 9))
    yield Sample(make.tensor(7, 6), 1, index.t().contiguous(), make.tensor(4, 3, order=(1, 0)))
    yield Sample(make.tensor(6, 7), 0, torch.zeros(0, 4, dtype=torch.int64), make.tensor(2, 4))
    yield Sample(make.tensor(), 0, torch.tensor(0), make.tensor())
    for dtype in TYPES:
        self, src = make.tensor(6, 4, dtype=dtype, low=0), make.tensor(3, 4, dtype=dtype, low=0)
        yield Sample(self, 0, index, src)


def scatter_value(make: Maker) -> Iterator[Sample]:
    for value in (0, 2.5, float("nan")):
        yield Sample(make.tensor(6, 4), 0, make.integers(3, 4, low=0, high=6), value)
    for dtype in TYPES:
        index = make.integers(6, 2, low=0, high=4)
        yield Sample(make.tensor(6, 4, dtype=dtype, low=0), -1, index, 1)


def scatter_add(make: Maker) -> Iterator[Sample]:
    index = make.integers(5, 4, low=0, high=3)
    yield Sample(make.tensor(3, 4), 0, index, make.tensor(5, 4))
    yield Sample(make.tensor(6, 3), 1, index, make.tensor(7, 4, order=(1, 0)))
    for dtype in REAL:
        low = 0 if dtype == torch.uint8 else -100
        yield Sample(
            make.tensor(3, 4, dtype=dtype, low=low, high=100),
            0,
            unique_index(make, 2, 4, high=3),
            make.tensor(2, 4, dtype=dtype, low=low, high=100),
        )


def index_lists(make: Maker) -> Iterator[list[Any]]:
    """Ways to index a tensor of shape [4, 5, 6]."""
    i4, i5 = make.integers(7, low=-4, high=4), make.integers(7, low=-5, high=5)
    yield [i4]
    yield [None, i5]
    yield [i4, i5]
    yield [i4.int(), i5.int()]
    yield [i4, None, i5]
    yield [None, i4, i5]
    yield [make.integers(3, 1, low=0, high=4), None, make.integers(2, low=0, high=6)]
    yield [make.integers(3, 1, low=0, high=4), make.integers(2, low=0, high=5)]
    yield [torch.tensor(2), torch.tensor(-1)]
    yield [torch.zeros(0, dtype=torch.int64)]
    yield [mask(make, 4)]
    yield [None, mask(make, 5, 6)]
    yield [mask(make, 4, 5, 6)]
    yield [mask(make, 4, 5), torch.tensor([3])]
    yield [torch.zeros(4, dtype=torch.bool)]
    yield [mask(make, 4, 5), None]


def index(make: Maker) -> Iterator[Sample]:
    for indices in index_lists(make):
        yield Sample(make.tensor(4, 5, 6), indices)
        yield Sample(make.tensor(4, 5, 6, order=(1, 2, 0)), indices, out_dim_order=None)
    yield Sample(make.tensor(4, 0), [torch.tensor([1, 2])])
    for dtype in (*TYPES, torch.complex128):
        yield Sample(torch.ones(4, 5, dtype=dtype), [torch.tensor([1, 3, 0])])


def values_for(make: Maker, indices: list[Any]) -> Iterator[torch.Tensor]:
    """Values of the indexed shape, and ones that broadcast to it."""
    shape = torch.ops.aten.index(torch.zeros(4, 5, 6), indices).shape
    yield make.tensor(*shape)
    yield make.tensor()
    yield make.tensor(*([1] * (len(shape) - 1)), *shape[-1:])


def index_put(make: Maker) -> Iterator[Sample]:
    for indices in index_lists(make):
        for values in values_for(make, indices):
            yield Sample(make.tensor(4, 5, 6), indices, values, True)
            if values.numel() == 1:  # with others the winner of two to one place is undefined
                yield Sample(make.tensor(4, 5, 6), indices, values)
    place = [torch.tensor([2, 0]), torch.tensor([1, 1])]
    yield Sample(make.tensor(4, 5, 6, order=(2, 1, 0)), place, make.tensor(2, 6, order=(1, 0)))
    for dtype in TYPES:
        self, new = make.tensor(4, 5, dtype=dtype, low=0), make.tensor(2, 5, dtype=dtype, low=0)
        yield Sample(self, [torch.tensor([1, 3])], new)
        yield Sample(self, [torch.tensor([1, 3])], new, True)


def nonzero(make: Maker) -> Iterator[Sample]:
    for shape in [(30, 40), (5,), (), (0, 3), (2, 3, 4, 5)]:
        yield Sample(mask(make, *shape))
    yield Sample(mask(make, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last))
    yield Sample(torch.tensor([0.0, -0.0, float("nan"), 1e-40, 2.0]))
    for dtype in TYPES:
        yield Sample(make.tensor(20, 30, low=0, high=2, dtype=dtype))


def masked_select(make: Maker) -> Iterator[Sample]:
    yield Sample(make.tensor(4, 5), mask(make, 4, 5))
    yield Sample(make.tensor(4, 5), mask(make, 5))
    yield Sample(make.tensor(5), mask(make, 4, 1))
    yield Sample(make.tensor(), mask(make, 3))
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), mask(make, 2, 3, 4, 5))
    yield Sample(make.tensor(0, 5), mask(make, 5))
    for dtype in (*TYPES, torch.complex128):
        yield Sample(torch.ones(9, dtype=dtype), mask(make, 9))


def repeat_interleave(make: Maker) -> Iterator[Sample]:
    for dtype in INDEX_TYPES:
        yield Sample(torch.tensor([2, 0, 3, 1], dtype=dtype))
        yield Sample(torch.tensor([2, 0, 3, 1], dtype=dtype), output_size=6)
    yield Sample(torch.zeros(0, dtype=torch.int64))


def whole_embedding(weight: torch.Tensor, indices: torch.Tensor, *_: Any) -> torch.Tensor:
    """embedding with indices of no dimensions as well."""
    return weight.contiguous()[indices.long()]


OPS = [
    OpCases("aten::index_select.out", index_select),
    OpCases("aten::embedding.out", embedding, reference=whole_embedding),
    OpCases("aten::gather.out", gather),
    OpCases("aten::scatter.src_out", scatter_src),
    OpCases("aten::scatter.value_out", scatter_value),
    OpCases("aten::scatter_add.out", scatter_add),
    OpCases("aten::index.Tensor_out", index),
    OpCases("aten::index_put.out", index_put),
    OpCases("aten::index_put_", index_put),
    OpCases("aten::nonzero.out", nonzero),
    OpCases("aten::masked_select.out", masked_select),
    OpCases("aten::repeat_interleave.Tensor_out", repeat_interleave),
]


def ints(*values: int) -> torch.Tensor:
    """An int64 tensor."""
    return torch.tensor(values)


ERRORS = [
    ErrorCase(
        "aten::index_select.out",
        lambda make: [make.tensor(3, 4), 1, ints(0, 4), make.tensor(3, 2)],
        "index 4 is out of bounds for dimension 1, which takes 0 to 3",
    ),
    ErrorCase(
        "aten::index_select.out",
        lambda make: [make.tensor(3, 4), 1, ints(-1), make.tensor(3, 1)],
        "index -1 is out of bounds",
    ),
    ErrorCase(
        "aten::index_select.out",
        lambda make: [make.tensor(3, 4), 1, make.tensor(2), make.tensor(3, 2)],
        "index is float32, but must be int64 or int32",
    ),
    ErrorCase(  # behind many good ones, along a dimension that lies in a row
        "aten::index_select.out",
        lambda make: [make.tensor(3, 4), 1, ints(*[0] * 2000, 4), make.tensor(3, 2001)],
        "index 4 is out of bounds for dimension 1",
    ),
    ErrorCase(  # whose place in the second row no integer can be
        "aten::gather.out",
        lambda make: [
            make.tensor(2, 3),
            1,
            ints(0, 2**63 - 1).reshape(2, 1),
            False,
            make.tensor(2, 1),
        ],
        "index 9223372036854775807 is out of bounds for dimension 1",
    ),
    ErrorCase(  # where threads share the rows
        "aten::embedding.out",
        lambda make: [
            make.tensor(9, 500),
            ints(*[8] * 299, 9),
            -1,
            False,
            False,
            make.tensor(300, 500),
        ],
        "index 9 is out of bounds for dimension 0",
    ),
    ErrorCase(
        "aten::embedding.out",
        lambda make: [make.tensor(9, 4), ints(1, 9), -1, False, False, make.tensor(2, 4)],
        "index 9 is out of bounds for dimension 0",
    ),
    ErrorCase(
        "aten::gather.out",
        lambda make: [make.tensor(3, 4), 0, torch.full((1, 4), 3), False, make.tensor(1, 4)],
        "index 3 is out of bounds for dimension 0",
    ),
    ErrorCase(
        "aten::gather.out",
        lambda make: [make.tensor(3, 4), 0, torch.zeros(1, 5).long(), False, make.tensor(1, 5)],
        r"index has shape \(1, 5\), which does not fit self",
    ),
    ErrorCase(
        "aten::scatter.src_out",
        lambda make: [make.tensor(3), 0, ints(5), make.tensor(1), make.tensor(3)],
        "index 5 is out of bounds",
    ),
    ErrorCase(
        "aten::scatter.src_out",
        lambda make: [make.tensor(3), 0, ints(1, 2), make.tensor(1), make.tensor(3)],
        "does not fit src",
    ),
    ErrorCase(
        "aten::scatter.value_out",
        lambda make: [make.tensor(3), 0, ints(-1), 1, make.tensor(3)],
        "index -1 is out of bounds",
    ),
    ErrorCase(
        "aten::scatter_add.out",
        lambda make: [make.tensor(3), 0, ints(0), make.tensor(1).int(), make.tensor(3)],
        "src is int32, but out is float32",
    ),
    ErrorCase(
        "aten::index.Tensor_out",
        lambda make: [make.tensor(3, 4), [None, ints(-5)], make.tensor(3, 1)],
        "index -5 is out of bounds for dimension 1, which takes -4 to 3",
    ),
    ErrorCase(
        "aten::index.Tensor_out",
        lambda make: [make.tensor(3, 4), [ints(0, 1), ints(0, 1, 2)], make.tensor(2)],
        "cannot be broadcast",
    ),
    ErrorCase(
        "aten::index.Tensor_out",
        lambda make: [make.tensor(3, 4), [ints(0), ints(0), ints(0)], make.tensor(1)],
        "index more dimensions than self has",
    ),
    ErrorCase(
        "aten::index.Tensor_out",
        lambda make: [make.tensor(3, 4), [torch.ones(2, dtype=torch.bool)], make.tensor(2, 4)],
        r"a mask of shape \(2,\), does not fit self of shape \(3, 4\)",
    ),
    ErrorCase(
        "aten::index_put.out",
        lambda make: [make.tensor(3), [ints(0, 1)], make.tensor(3), False, make.tensor(3)],
        "values has shape .* does not broadcast",
    ),
    ErrorCase(  # behind a good one, which must not be put either
        "aten::index_put_",
        lambda make: [make.tensor(3), [ints(1, -4)], make.tensor(2), False],
        "index -4 is out of bounds",
    ),
    ErrorCase(
        "aten::index_put_",
        lambda make: [make.tensor(3), [ints(0)], make.tensor(1).int(), False],
        "values is int32, but self is float32",
    ),
    # The first index is right: nothing may be written before the last one is looked at.
    ErrorCase(
        "aten::index_put_",
        lambda make: [make.tensor(3, 2), [ints(0, 3)], make.tensor(2, 2), False],
        "index 3 is out of bounds for dimension 0, which takes -3 to 2",
    ),
    ErrorCase(
        "aten::index_put_",
        lambda make: [make.tensor(3, 2), [ints(0, 1), ints(1, -3)], make.tensor(2), True],
        "index -3 is out of bounds for dimension 1",
    ),
    ErrorCase(
        "aten::index_put.out",
        lambda make: [make.tensor(3), [ints(2, 3).int()], make.tensor(2), False, make.tensor(3)],
        "index 3 is out of bounds",
    ),
    ErrorCase(
        "aten::scatter.src_out",
        lambda make: [make.tensor(3), 0, ints(1, 5), make.tensor(2), make.tensor(3)],
        "index 5 is out of bounds",
    ),
    ErrorCase(
        "aten::scatter.value_out",
        lambda make: [make.tensor(3), 0, ints(1, 2**40), 1, make.tensor(3)],
        "index 1099511627776 is out of bounds",
    ),
    ErrorCase(
        "aten::scatter_add.out",
        lambda make: [make.tensor(3), 0, ints(1, -(2**63)), make.tensor(2), make.tensor(3)],
        "index -9223372036854775808 is out of bounds",
    ),
    ErrorCase(
        "aten::scatter_reduce.two_out",
        lambda make: [make.tensor(3), 0, ints(1, 3), make.tensor(2), "amax", False, make.tensor(3)],
        "index 3 is out of bounds",
    ),
    ErrorCase(
        "aten::masked_select.out",
        lambda make: [make.tensor(3), torch.ones(3, dtype=torch.uint8), make.tensor(3)],
        "mask is uint8, but must be bool",
    ),
    ErrorCase(
        "aten::repeat_interleave.Tensor_out",
        lambda make: [ints(1, -1), None, ints(0)],
        r"repeats\[1\] is -1",
    ),
    ErrorCase(
        "aten::repeat_interleave.Tensor_out",
        lambda make: [ints(1, 2), 4, ints(0, 0, 0)],
        "output_size is 4, but repeats add up to 3",
    ),
]
