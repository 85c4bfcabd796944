"""Cases of attention kept whole."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...harness import FLOATING, ErrorCase, Maker, OpCases, Sample

INF = float("inf")
HEADS_INSIDE = (0, 2, 1, 3)


def attention(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        q, k, v = (make.tensor(2, 3, n, 8, dtype=dtype, low=-1, high=1) for n in (5, 7, 7))
        yield Sample(q, k, v)
        yield Sample(q, k, v, scale=0.3)
        yield Sample(q, k, v, None, 0.0, True)
        yield Sample(q, k, v, make.tensor(5, 7, dtype=torch.bool))
        yield Sample(q, k, v, make.tensor(2, 1, 5, 7, dtype=dtype))
    # Of several blocks, of one token, of values wider than keys, without batch.
    for queries, keys, width, values in ((70, 300, 16, 20), (1, 600, 32, 32), (130, 3, 4, 65)):
        q = make.tensor(2, queries, width, low=-1, high=1)
        k = make.tensor(2, keys, width, low=-1, high=1)
        v = make.tensor(2, keys, values)
        yield Sample(q, k, v)
        yield Sample(q, k, v, None, 0.0, True)
        yield Sample(q, k, v, make.tensor(1, keys, dtype=torch.bool))
        yield Sample(q[0].clone(), k[0].clone(), v[0].clone())
    # Queries that see nothing, everything, or an infinite score.
    q, k, v = (make.tensor(1, 2, 4, 6, low=-1, high=1) for _ in range(3))
    mask = torch.tensor([[0.0, -INF, 1.0, -1.0], [-INF] * 4, [0.0] * 4, [-INF, -INF, -INF, 2.0]])
    yield Sample(q, k, v, mask)
    yield Sample(q, k, v, mask > -INF)
    yield Sample(q, k, v, torch.tensor([float("nan"), 0.0, 0.0, 0.0]).expand(4, 4).contiguous())
    # Heads that share keys and values; batches of one.
    q = make.tensor(2, 6, 5, 8)
    yield Sample(q, make.tensor(2, 2, 9, 8), make.tensor(2, 2, 9, 8), enable_gqa=True)
    yield Sample(q, make.tensor(1, 6, 9, 8), make.tensor(2, 1, 9, 8))
    # Heads inside of tokens in memory, as a projection gives them.
    q, k, v = (make.tensor(2, 3, 5, 8, order=HEADS_INSIDE, low=-1, high=1) for _ in range(3))
    yield Sample(q, k, v)
    yield Sample(q, k, v, out_dim_order=HEADS_INSIDE)
    yield Sample(make.tensor(0, 5, 8), make.tensor(0, 5, 8), make.tensor(0, 5, 8))


def rms_norm(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        yield Sample(make.tensor(3, 4, 6, dtype=dtype), [6])
        weight = make.tensor(4, 6, dtype=dtype)
        yield Sample(make.tensor(3, 4, 6, dtype=dtype), [4, 6], weight, 1e-5)
    yield Sample(make.tensor(2, 700), [700], make.tensor(700), 1e-6)
    yield Sample(make.tensor(5, 7, order=(1, 0)), [7], make.tensor(7))
    yield Sample(make.tensor(0, 7), [7], make.tensor(7))


OPS = [
    OpCases(
        "rushlight::scaled_dot_product_attention.out",
        attention,
        reference=torch.ops.aten.scaled_dot_product_attention.default,
        tolerance=(1e-5, 2e-6),
    ),
    OpCases("rushlight::rms_norm.out", rms_norm, reference=torch.ops.aten.rms_norm.default),
]

ATTENTION = "rushlight::scaled_dot_product_attention.out"
ROW = torch.zeros(2, 4)


def call(query: torch.Tensor = ROW, key: torch.Tensor = ROW, **other: object) -> list[object]:
    """All arguments of a small call."""
    options = {"mask": None, "dropout": 0.0, "causal": False, "gqa": False, **other}
    rest = (options["mask"], options["dropout"], options["causal"], None, options["gqa"])
    return [query, key, key, *rest, torch.zeros(*query.shape[:-1], key.shape[-1])]


ERRORS = [
    ErrorCase(ATTENTION, lambda make: call(dropout=0.5), "dropout_p is 0.5, but must be 0"),
    ErrorCase(ATTENTION, lambda make: call(torch.zeros(4)), "query has 1 dimensions"),
    ErrorCase(ATTENTION, lambda make: call(key=torch.zeros(2, 5)), "do not fit one another"),
    ErrorCase(
        ATTENTION,
        lambda make: call(torch.zeros(6, 2, 4), torch.zeros(2, 2, 4)),
        "heads are shared only with enable_gqa",
    ),
    ErrorCase(ATTENTION, lambda make: call(key=ROW.double()), "does not convert"),
    ErrorCase(ATTENTION, lambda make: call(mask=torch.zeros(3, 2)), "attn_mask has shape"),
    ErrorCase(ATTENTION, lambda make: call(mask=ROW[:, :2].int()), "attn_mask is int32"),
    ErrorCase(
        ATTENTION,
        lambda make: call(mask=torch.zeros(2, 2), causal=True),
        "is_causal is true, but there is an attn_mask",
    ),
    ErrorCase(
        "rushlight::rms_norm.out",
        lambda make: [ROW, [3], None, None, torch.zeros(2, 4)],
        "normalized_shape is",
    ),
]
