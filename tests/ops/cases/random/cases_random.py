"""Cases of the random operators: the kernel draws what eager draws from the same seed, bit for bit.

``run_kernel`` seeds its generator with torch's default seed, and so does the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...harness import FLOATING, INTEGRAL, REAL, ErrorCase, Maker, OpCases, Sample, functional

SEED = 67280421310721
CHANNELS_LAST = (0, 2, 3, 1)
# Below 16 elements normal variates are made one by one, else in blocks of 16.
SHAPES = [(), (0,), (1,), (15,), (16,), (17,), (3, 7, 5), (40, 40)]
EXACT = (0.0, 0.0)


def seeded(op: str, call: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The functional operator (or ``call``) after torch.manual_seed."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            return (call if call is not None else functional(op))(*args, **kwargs)

    return reference


def sized(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        for dtype in FLOATING:
            yield Sample(list(shape), dtype=dtype)


def likes(make: Maker) -> Iterator[torch.Tensor]:
    for shape in SHAPES:
        for dtype in FLOATING:
            yield torch.zeros(shape, dtype=dtype)
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST)
    yield make.tensor(2, 3, 4, 5, order=CHANNELS_LAST, dtype=torch.float64)
    yield torch.zeros(3, 20).t()


def like(make: Maker) -> Iterator[Sample]:
    for tensor in likes(make):
        yield Sample(tensor)


def like_with(*choices: tuple[float, ...]) -> Callable[[Maker], Iterator[Sample]]:
    def samples(make: Maker) -> Iterator[Sample]:
        for tensor in likes(make):
            for choice in choices:
                yield Sample(tensor, *choice)

    return samples


def normal(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        for dtype in FLOATING:
            yield Sample(0.3, 1.7, list(shape), dtype=dtype)
    yield Sample(-2.0, 0.0, [20])


def geometric(make: Maker) -> Iterator[Sample]:
    for dtype in REAL:
        yield Sample(torch.zeros(4, 5, dtype=dtype), 0.3)


def poisson(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        for high in (0.5, 8.0, 40.0, 300.0):
            yield Sample(make.tensor(6, 7, low=0.0, high=high, dtype=dtype))
    yield Sample(make.tensor(20, 30, low=0.0, high=20.0))
    yield Sample(make.tensor(2, 3, 4, 5, low=0.0, high=20.0, order=CHANNELS_LAST))
    yield Sample(torch.zeros(3))
    yield Sample(torch.zeros(0, 3))


BOUNDS = [(0, 10), (-5, 6), (3, 4), (0, 1 << 27), (0, 1 << 28), (-(1 << 40), 1 << 50)]


def randint(make: Maker) -> Iterator[Sample]:
    for _, high in BOUNDS:
        yield Sample(high, [4, 5])
    for dtype in (*INTEGRAL, *FLOATING):
        yield Sample(100, [7], dtype=dtype)


def randint_low(make: Maker) -> Iterator[Sample]:
    for low, high in BOUNDS:
        for shape in ([], [0, 3], [4, 5]):
            yield Sample(low, high, shape)
    yield Sample(-(2**63), 2**63 - 1, [9])
    for dtype in (*INTEGRAL, *FLOATING):
        yield Sample(3, 100, [7], dtype=dtype)


def randint_like(make: Maker) -> Iterator[Sample]:
    for dtype in REAL:
        yield Sample(torch.zeros(3, 4, dtype=dtype), 100)


def randint_like_low(make: Maker) -> Iterator[Sample]:
    for dtype in REAL:
        yield Sample(torch.zeros(3, 4, dtype=dtype), 10, 100)
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), 10, 100)


def random(make: Maker) -> Iterator[Sample]:
    for dtype in (*REAL, torch.bool):
        yield Sample(torch.zeros(3, 40, dtype=dtype))


def randperm(make: Maker) -> Iterator[Sample]:
    for n in (0, 1, 2, 100, 3000):
        yield Sample(n)
    for dtype in REAL:
        yield Sample(100, dtype=dtype)


def probabilities(make: Maker) -> Iterator[torch.Tensor]:
    for dtype in FLOATING:
        yield make.tensor(30, 40, low=0.0, high=1.0, dtype=dtype)
    yield make.tensor(2, 3, 4, 5, low=0.0, high=1.0, order=CHANNELS_LAST)
    yield torch.tensor([0.0, 1.0, 0.5])
    yield torch.zeros(0, 3)


def bernoulli(make: Maker) -> Iterator[Sample]:
    for p in probabilities(make):
        yield Sample(p)


def bernoulli_tensor(make: Maker) -> Iterator[Sample]:
    for p in probabilities(make):
        yield Sample(torch.zeros_like(p), p)
    for dtype in (*REAL, torch.bool):
        yield Sample(torch.zeros(6, 40, dtype=dtype), make.tensor(40, low=0.0, high=1.0))
        yield Sample(torch.zeros(6, 40, dtype=dtype), torch.tensor(0.3, dtype=torch.float64))


def bernoulli_float(make: Maker) -> Iterator[Sample]:
    for p in (0.0, 0.3, 1.0):
        for dtype in (*REAL, torch.bool):
            yield Sample(torch.zeros(6, 40, dtype=dtype), p)
        yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), p)


def native_dropout(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        for p in (0.0, 0.3, 1.0):
            for train in (True, False, None):
                yield Sample(make.tensor(20, 30, dtype=dtype), p, train)
    yield Sample(make.tensor(2, 3, 4, 5, order=CHANNELS_LAST), 0.4, True)
    yield Sample(make.tensor(20, special=True), 0.4, True)


def multinomial(make: Maker) -> Iterator[Sample]:
    for dtype in (torch.float32, torch.float64):
        for replacement in (False, True):
            for count in (1, 2, 9):
                yield Sample(make.tensor(9, low=0.0, high=3.0, dtype=dtype), count, replacement)
                yield Sample(make.tensor(5, 9, low=0.0, high=3.0, dtype=dtype), count, replacement)
    yield Sample(make.tensor(5, 9, low=0.0, high=3.0), 50, True)
    yield Sample(torch.tensor([0.0, 1.0, 0.0, 2.0]), 2, False)
    yield Sample(torch.tensor([0.0, 1.0, 0.0, 2.0], dtype=torch.float16), 1, True)


def _case(
    op: str, samples: Any, call: Callable[..., Any] | None = None, tolerance: Any = EXACT
) -> OpCases:
    return OpCases(op, samples, reference=seeded(op, call), tolerance=tolerance)


OPS = [
    _case("aten::rand.out", sized),
    _case("aten::rand_like.out", like),
    _case("aten::uniform.out", like_with((-1.3, 2.7), (0.0, 0.0))),
    _case("aten::randn.out", sized),
    _case("aten::randn_like.out", like),
    _case("aten::normal.float_float_out", normal),
    _case("aten::log_normal.out", like_with((0.5, 1.5))),
    _case("aten::exponential.out", like_with((1.0,), (3.7,))),
    _case("aten::cauchy.out", like_with((0.5, 2.0))),
    _case("aten::geometric.out", geometric),
    _case("aten::poisson.out", poisson),
    _case("aten::randint.out", randint),
    _case("aten::randint.low_out", randint_low),
    _case("aten::randint_like.out", randint_like),
    _case("aten::randint_like.low_dtype_out", randint_like_low),
    _case("aten::random.out", random),
    _case("aten::randperm.out", randperm),
    _case("aten::bernoulli.out", bernoulli),
    _case("aten::bernoulli.Tensor_out", bernoulli_tensor),
    _case("aten::bernoulli.float_out", bernoulli_float, torch.ops.aten.bernoulli.p),
    _case("aten::native_dropout.out", native_dropout),
    _case("aten::multinomial.out", multinomial),
]


def f(*shape: int) -> torch.Tensor:
    """A float32 tensor of zeros."""
    return torch.zeros(shape)


ERRORS = [
    ErrorCase(
        "aten::rand.out", lambda make: [[3], f(3).int()], "out is int32, but must be floating"
    ),
    ErrorCase("aten::randn.out", lambda make: [[3, -1], f(3)], r"size\[1\] is -1"),
    ErrorCase("aten::rand_like.out", lambda make: [f(3), None, f(3).int()], "out is int32"),
    ErrorCase("aten::randn_like.out", lambda make: [f(3), None, f(3).bool()], "out is bool"),
    ErrorCase(
        "aten::uniform.out",
        lambda make: [f(3), 2.0, 1.0, None, f(3)],
        "from is 2, but must not be above to, which is 1",
    ),
    ErrorCase(
        "aten::normal.float_float_out",
        lambda make: [0.0, -1.0, [3], None, f(3)],
        "std is -1, but must be 0 or more",
    ),
    ErrorCase("aten::log_normal.out", lambda make: [f(3), 0.0, 0.0, None, f(3)], "std is 0, but"),
    ErrorCase("aten::exponential.out", lambda make: [f(3), 0.0, None, f(3)], "lambd is 0, but"),
    ErrorCase("aten::cauchy.out", lambda make: [f(3), 0.0, -2.0, None, f(3)], "sigma is -2, but"),
    ErrorCase("aten::geometric.out", lambda make: [f(3), 1.0, None, f(3)], "p is 1, but"),
    ErrorCase(
        "aten::poisson.out",
        lambda make: [torch.tensor([1.0, -2.0]), None, f(2)],
        "an element of self is -2, but must be finite and 0 or more",
    ),
    ErrorCase(
        "aten::poisson.out",
        lambda make: [torch.tensor([1.0, float("inf")]), None, f(2)],
        "an element of self is inf",
    ),
    ErrorCase(
        "aten::randint.out", lambda make: [0, [3], f(3)], "low is 0 and high is 0, but low must"
    ),
    ErrorCase(
        "aten::randint.low_out",
        lambda make: [0, 300, [3], f(3).byte()],
        "high is 300, .* must fit out, which is uint8",
    ),
    ErrorCase("aten::randint_like.out", lambda make: [f(3), -1, None, f(3)], "high is -1"),
    ErrorCase(
        "aten::randint_like.low_dtype_out", lambda make: [f(3), 3, 2, None, f(3)], "low is 3"
    ),
    ErrorCase("aten::random.out", lambda make: [f(3), None, f(3).cfloat()], "out is complex64"),
    ErrorCase("aten::randperm.out", lambda make: [-1, f(3).long()], "n is -1, but must not be"),
    ErrorCase(
        "aten::randperm.out", lambda make: [300, f(300).byte()], "n is 300, .* which is uint8"
    ),
    ErrorCase(
        "aten::bernoulli.out",
        lambda make: [torch.tensor([0.5, 1.5]), None, f(2)],
        "an element of p is 1.5, but must be from 0 to 1",
    ),
    ErrorCase(
        "aten::bernoulli.Tensor_out",
        lambda make: [f(3), f(2, 3), None, f(2, 3)],
        r"p has shape \(2, 3\), which does not broadcast to self's, \(3,?\)",
    ),
    ErrorCase("aten::bernoulli.float_out", lambda make: [f(3), -0.1, None, f(3)], "p is -0.1"),
    ErrorCase(
        "aten::native_dropout.out", lambda make: [f(3), 2.0, True, f(3), f(3).bool()], "p is 2, but"
    ),
    ErrorCase(
        "aten::native_dropout.out",
        lambda make: [f(3), 0.5, True, f(3), f(3)],
        "out1 is float32, but must be bool",
    ),
    ErrorCase(
        "aten::multinomial.out",
        lambda make: [torch.tensor([1.0, -1.0]), 1, False, None, f(1).long()],
        "self holds the weight -1, but weights must be finite and 0 or more",
    ),
    ErrorCase(
        "aten::multinomial.out",
        lambda make: [f(3), 1, False, None, f(1).long()],
        "weights of a row of self add up to 0",
    ),
    ErrorCase(
        "aten::multinomial.out",
        lambda make: [torch.ones(3), 4, False, None, f(4).long()],
        "num_samples is 4, but must be 1 or more, and without replacement",
    ),
]
