"""Cases of the operators that ExecuTorch's wheel has beside torch's.

Their references are the rules of `rushlight.ir.custom_ops.executorch`, which
tests/e2e/executorch/test_executorch_operators.py holds to ExecuTorch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from rushlight.ir.custom_ops import executorch

from ..harness import FLOATING, INTEGRAL, ErrorCase, Maker, OpCases, Sample

executorch.define()
llama, quantized = torch.ops.llama, torch.ops.quantized_decomposed
INF = float("inf")


def heads(make: Maker, dtype: torch.dtype = torch.float32) -> Iterator[tuple[Any, ...]]:
    """Queries, caches of keys and values, and the first query's place."""
    for batch, length, many, few, width, size, start in (
        *((2, 1, 4, 4, 8, 16, 5), (2, 3, 4, 2, 8, 16, 0), (1, 5, 8, 1, 6, 9, 4)),
        *((1, 70, 2, 1, 16, 300, 200), (1, 0, 2, 2, 4, 3, 1)),
    ):
        query = make.tensor(batch, length, many, width, dtype=dtype, low=-1, high=1)
        caches = [
            make.tensor(batch, size, few, width, dtype=dtype, low=-1, high=1) for _ in range(2)
        ]
        yield query, *caches, start


def custom_sdpa(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        for query, key, value, start in heads(make, dtype):
            mask = make.tensor(query.shape[1], key.shape[1], dtype=dtype, low=-1, high=1)
            yield Sample(query, key, value, start)
            yield Sample(query, key, value, start, None, 0.0, True)
            yield Sample(query, key, value, start, mask, scale=0.3)
            yield Sample(query, key, value, start, mask > 0)
            mask[:, :2] = -INF
            yield Sample(query, key, value, start, mask)


def sdpa_with_kv_cache(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        for query, keys, values, start in heads(make, dtype):
            shape = (*query.shape[:2], *keys.shape[2:])
            new = [make.tensor(*shape, dtype=dtype, low=-1, high=1) for _ in range(2)]
            length = query.shape[1]
            mask = make.tensor(length, keys.shape[1], low=-1, high=1)
            yield Sample(query, *new, keys, values, start, length, None, 0.0, True)
            yield Sample(query, *new, keys, values, start, length, mask)


def custom_quantized_sdpa(make: Maker) -> Iterator[Sample]:
    for tensors in heads(make):
        *shapes, start = tensors
        for heads_first in (False, True):
            parts: list[torch.Tensor] = []
            parameters: list[torch.Tensor] = []
            for like in shapes:
                shape = like.transpose(1, 2).shape if heads_first else like.shape
                parts.append(make.integers(*shape, low=-128, high=128, dtype=torch.int8))
                parameters.append(make.integers(*shape[:3], 1, low=-9, high=9, dtype=torch.int8))
                parameters.append(make.tensor(*shape[:3], 1, low=0, high=0.02))
            mask = make.tensor(shapes[0].shape[1], shapes[1].shape[1])
            options = (None, 0.0, True, None)
            yield Sample(*parts, start, *options, *parameters, heads_first)
            yield Sample(*parts, start, mask, 0.0, False, 0.2, *parameters, heads_first)
            yield Sample(*parts, start, None, 0.0, False, None, *parameters, heads_first)


def update_cache(make: Maker) -> Iterator[Sample]:
    for dtype in (*FLOATING, torch.int8, torch.bool, torch.complex64):
        cache = make.tensor(2, 7, 2, 3, dtype=dtype)
        for length, start in ((1, 0), (3, 4), (7, 0), (0, 7)):
            yield Sample(make.tensor(2, length, 2, 3, dtype=dtype), cache, start)


def update_cache_with_indices(make: Maker) -> Iterator[Sample]:
    for dtype in (*FLOATING, torch.int8, torch.bool, torch.complex64):
        cache = make.tensor(2, 7, 2, 3, dtype=dtype)
        for length in (0, 1, 4):
            places = torch.stack([torch.randperm(7, generator=make.generator)[:length]] * 2)
            yield Sample(make.tensor(2, length, 2, 3, dtype=dtype), cache, 0, places)


def delta_rule(make: Maker) -> Iterator[Sample]:
    for batch, many, tokens, keys, values in (
        *((2, 3, 4, 5, 6), (1, 2, 70, 16, 9), (1, 1, 1, 1, 1), (1, 2, 0, 3, 4), (0, 1, 2, 3, 4)),
        *((1, 40, 30, 32, 32),),
    ):
        shape = (batch, many, tokens, keys)
        q, k = (make.tensor(*shape, low=-0.3, high=0.3) for _ in range(2))
        v = make.tensor(batch, many, tokens, values)
        decay = make.tensor(*shape, low=0, high=1)
        beta = make.tensor(*shape[:3], low=0, high=1)
        yield Sample(q, k, v, decay, beta, make.tensor(batch, many, keys, values))
    none, state = torch.empty(0, 1, 3, 2**31 - 1), torch.empty(0, 1, 2**31 - 1, 2**31 - 1)
    yield Sample(none, none, none, none, torch.empty(0, 1, 3), state)


def hadamard(make: Maker) -> Iterator[Sample]:
    for dtype in FLOATING:
        for shape in ((3, 8), (2, 3, 56), (28,), (1,), (), (2, 128), (0, 4)):
            yield Sample(make.tensor(*shape, dtype=dtype))
    yield Sample(make.tensor(100, 1024))
    yield Sample(make.tensor(9, 28 * 512))


def fallback(make: Maker) -> Iterator[Sample]:
    for dtype in (*FLOATING, *INTEGRAL, torch.bool, torch.complex64):
        yield Sample(make.tensor(2, 3, dtype=dtype))


def tile_crop(make: Maker) -> Iterator[Sample]:
    for dtype in (*FLOATING, *INTEGRAL, torch.bool, torch.complex64):
        yield Sample(make.tensor(3, 8, 12, dtype=dtype), 4)
    yield Sample(make.tensor(3, 8, 12, order=(1, 2, 0)), 2)
    yield Sample(make.tensor(3, 8, 8), 8, out_dim_order=(0, 2, 3, 1))
    yield Sample(make.tensor(1, 0, 8), 8)


def add(make: Maker) -> Iterator[Sample]:
    for dtype in INTEGRAL:
        a, b = (make.tensor(3, 400, dtype=dtype, low=0, high=120) for _ in range(2))
        yield Sample(a, 0.1, 3, 0, 255, b, 0.05, 120, 0, 255, 0.2, 10, 0, 120)
        yield Sample(a, 0.1, 3, 0, 255, b, 0.05, 120, 0, 255, 0.001, 10, 5, 100)
    a, b = (make.tensor(3, 4, 5, order=(2, 0, 1), low=0, high=99).byte() for _ in range(2))
    yield Sample(a, 1e-3, 3, 0, 255, b, 0.5, 120, 0, 255, 0.5, 0, 0, 255)
    yield Sample(a[:0].clone(), 1.0, 0, 0, 9, b[:0].clone(), 1.0, 0, 0, 9, 1.0, 0, 0, 9)


def weights(make: Maker, rows: int, cols: int) -> Iterator[tuple[torch.Tensor, Any, Any]]:
    """int8 matrices with scales and zero points of their rows."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        weight = make.integers(rows, cols, low=-128, high=128, dtype=torch.int8)
        scales = make.tensor(rows, dtype=dtype, low=0, high=0.01)
        yield weight, scales, None
        yield weight, scales, make.tensor(rows, dtype=dtype)


def mixed_mm(make: Maker) -> Iterator[Sample]:
    for m, k, n in ((1, 16, 9), (5, 70, 33), (70, 300, 150), (0, 4, 3), (3, 0, 2)):
        for weight, scales, zeros in weights(make, k, n):
            x = make.tensor(m, k, dtype=scales.dtype, low=-1, high=1)
            yield Sample(x, weight, scales, zeros)


def mixed_linear(make: Maker) -> Iterator[Sample]:
    for m, k, n in ((1, 16, 9), (5, 70, 33), (70, 300, 150), (0, 4, 3), (3, 0, 2)):
        for weight, scales, zeros in weights(make, n, k):
            x = make.tensor(m, k, dtype=scales.dtype, low=-1, high=1)
            yield Sample(x, weight, scales, zeros)
    for groups in (1, 2, 5):
        weight = make.integers(7, 20, low=-128, high=128, dtype=torch.int8)
        scales = make.tensor(7, groups, low=0, high=0.02)
        yield Sample(make.tensor(3, 20), weight, scales, None)
        yield Sample(make.tensor(3, 20), weight, scales, make.tensor(7, groups), torch.float16)


def embedding(bits: int, dtypes: tuple[Any, ...]) -> Callable[[Maker], Iterator[Sample]]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def samples(make: Maker) -> Iterator[Sample]:
        places = (
            *(make.integers(5, low=0, high=9), make.integers(2, 3, low=0, high=9)),
            *(torch.tensor(3), torch.zeros(0, dtype=torch.int64)),
            make.integers(4, low=0, high=9, dtype=torch.int32),
        )
        for groups in (None, 1, 4):
            for real in FLOATING:
                shape = (9,) if groups is None else (9, groups)
                weight = make.integers(9, 8, low=0, high=256, dtype=torch.uint8)
                scales = make.tensor(*shape, dtype=real, low=0, high=0.1)
                zeros = make.tensor(*shape, dtype=real)
                for index in places:
                    for dtype in dtypes:
                        kwargs = {} if dtype is None else {"dtype": dtype}
                        yield Sample(weight, scales, None, low, high, index, **kwargs)
                        yield Sample(weight, scales, zeros, low, high, index, **kwargs)
        if bits == 8:
            yield Sample(weight.view(torch.int8), scales, zeros, low, high, index, **kwargs)
        wide = make.integers(3, 700, low=0, high=256, dtype=torch.uint8)
        yield Sample(wide, scales[:3].clone(), None, low, high, index % 3, **kwargs)

    return samples


def written(function: Any, *positions: int) -> Callable[..., Any]:
    """The operator as one that returns what it writes, too."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return (result, *(args[p] for p in positions))

    return reference


NAMES = {2: "embedding_2bit", 4: "embedding_4bit", 8: "embedding_byte"}
OPS = [
    OpCases("llama::channelwise_gated_delta_rule.out", delta_rule, tolerance=(1e-5, 1e-5)),
    OpCases("llama::custom_quantized_sdpa.out", custom_quantized_sdpa, tolerance=(1e-5, 1e-5)),
    OpCases("llama::custom_sdpa.out", custom_sdpa, tolerance=(1e-5, 1e-6)),
    OpCases("llama::fallback.out", fallback),
    OpCases("llama::fast_hadamard_transform.out", hadamard, tolerance=(2e-6, 1e-5)),
    OpCases(
        "llama::sdpa_with_kv_cache.out",
        sdpa_with_kv_cache,
        written(llama.sdpa_with_kv_cache, 3, 4),
        tolerance=(1e-5, 1e-6),
    ),
    OpCases("llama::update_cache.out", update_cache, written(llama.update_cache, 1)),
    OpCases(
        "llama::update_cache_with_indices.out",
        update_cache_with_indices,
        written(llama.update_cache_with_indices, 1),
    ),
    OpCases("preprocess::tile_crop.out", tile_crop),
    OpCases("quantized_decomposed::add.out", add),
    OpCases("quantized_decomposed::mixed_linear.out", mixed_linear, tolerance=(1e-5, 1e-5)),
    OpCases("quantized_decomposed::mixed_mm.out", mixed_mm, tolerance=(1e-5, 1e-5)),
    *(
        OpCases(f"quantized_decomposed::{name}.out", embedding(bits, (None,)))
        for bits, name in NAMES.items()
    ),
    *(
        OpCases(
            f"quantized_decomposed::{name}.dtype_out",
            embedding(bits, FLOATING),
            getattr(quantized, name).dtype,
        )
        for bits, name in NAMES.items()
    ),
]


def error(name: str, message: str, *args: Any) -> ErrorCase:
    return ErrorCase(name, lambda make: list(args), message)


CACHE = torch.ones(1, 4, 2, 8)
Q = torch.ones(1, 2, 4, 8)
BYTES = torch.zeros(1, 2, 2, 8, dtype=torch.int8)
SCALES = torch.ones(1, 2, 2, 1)
X = torch.ones(2, 4)
WEIGHT = torch.ones(3, 4, dtype=torch.int8)
TABLE = torch.ones(3, 4, dtype=torch.uint8)
OUT = torch.ones(1)
INDEX = torch.tensor([0, 3])
IMAGE = torch.ones(1, 4, 6)
INTS = torch.ones(2, 3, dtype=torch.int32)


def sdpa_error(message: str, *args: Any) -> ErrorCase:
    return error("llama::custom_sdpa.out", message, *args, Q.clone())


def embedding_error(name: str, message: str, *args: Any) -> ErrorCase:
    return error(f"quantized_decomposed::{name}.out", message, *args, torch.ones(2, 4))


def add_error(message: str, a: torch.Tensor, b: torch.Tensor, low: int) -> ErrorCase:
    numbers = [1.0, 0, 0, 9]
    args = [a, *numbers, b, *numbers, 1.0, 0, low, 9, a.clone()]
    return error("quantized_decomposed::add.out", message, *args)


ERRORS = [
    sdpa_error(
        "start_pos is 3, and from there on 2 tokens", Q, CACHE, CACHE, 3, None, 0.0, 0, None
    ),
    sdpa_error("start_pos is -1", Q, CACHE, CACHE, -1, None, 0.0, False, None),
    sdpa_error("start_pos is 9223372036854775807", Q, CACHE, CACHE, 2**63 - 1, None, 0.0, 0, None),
    sdpa_error("drpout_p is 0.5", Q, CACHE, CACHE, 0, None, 0.5, False, None),
    sdpa_error("is_causal is true, but", Q, CACHE, CACHE, 0, torch.ones(2, 4), 0.0, True, None),
    sdpa_error(
        "attn_mask has shape .2, 3., which does not broadcast",
        *(Q, CACHE, CACHE, 0, torch.ones(2, 3), 0.0, False, None),
    ),
    sdpa_error(
        "which do not fit one another",
        *(Q, CACHE[..., :4].clone(), CACHE, 0, None, 0.0, False, None),
    ),
    sdpa_error("key is float64", Q, CACHE.double(), CACHE, 0, None, 0.0, False, None),
    error(
        "llama::sdpa_with_kv_cache.out",
        "value has shape .1, 2, 4, 8. and the cache .1, 4, 2, 8.",
        *(Q, Q, Q, CACHE, CACHE, 0, 2, None, 0.0, False, None, Q.clone()),
    ),
    error(
        "llama::custom_quantized_sdpa.out",
        "query is int8, but its zero points or scales are None",
        *(BYTES, BYTES, BYTES, 0, None, 0.0, False, None, *[None] * 6, False, Q.clone()),
    ),
    error(
        "llama::custom_quantized_sdpa.out",
        "zero points and scales must have it with a last size of 1, but are .1, 2, 2, 8.",
        *(BYTES, BYTES, BYTES, 0, None, 0.0, False, None, BYTES, SCALES, *[None] * 4, False),
        torch.ones(1, 2, 2, 8),
    ),
    error(
        "llama::update_cache.out",
        "start_pos is 3, and from there on 2 tokens do not fit a cache of 4",
        *(CACHE[:, :2].clone(), CACHE, 3, OUT),
    ),
    error(
        "llama::update_cache_with_indices.out",
        "index 4|is 4",
        *(CACHE[:, :2].clone(), CACHE, 0, torch.tensor([[0, 4]]), OUT),
    ),
    error(
        "llama::update_cache_with_indices.out",
        "indices has shape .1, 1.",
        *(CACHE[:, :2].clone(), CACHE, 0, torch.tensor([[0]]), OUT),
    ),
    error(
        "llama::fast_hadamard_transform.out",
        "must be 2.k or 28",
        *(torch.ones(2, 12), torch.ones(2, 12)),
    ),
    error("preprocess::tile_crop.out", "tile_size is 4", IMAGE, 4, torch.ones(1, 1, 4, 4)),
    error("preprocess::tile_crop.out", "tile_size is 0", IMAGE, 0, torch.ones(1, 1, 4, 4)),
    error(
        "llama::channelwise_gated_delta_rule.out",
        "beta has shape .1, 2, 3., but beside query and value it must be .1, 2, 4.",
        *([Q] * 4),
        *(torch.ones(1, 2, 3), torch.ones(1, 2, 8, 8), Q.clone(), torch.ones(1, 2, 8, 8)),
    ),
    error(
        "quantized_decomposed::mixed_mm.out",
        "do not fit, or are not in row-major order",
        *(X, WEIGHT, torch.ones(3), None, torch.ones(2, 4)),
    ),
    error(
        "quantized_decomposed::mixed_linear.out",
        "weight_scales has shape .2,., but must have one element for each row",
        *(X, WEIGHT, torch.ones(2), None, None, torch.ones(2, 3)),
    ),
    error(
        "quantized_decomposed::mixed_linear.out",
        "dtype is 7, but out is float32",
        *(X, WEIGHT, torch.ones(3), None, 7, torch.ones(2, 3)),
    ),
    embedding_error("embedding_byte", "index 3|is 3", TABLE, torch.ones(3), None, 0, 255, INDEX),
    embedding_error(
        "embedding_4bit",
        "weight_quant_min is 0 and weight_quant_max 15, but 4 bits hold -8 to 7",
        *(TABLE, torch.ones(3), None, 0, 15, INDEX),
    ),
    embedding_error(
        "embedding_2bit",
        "weight_scales has shape .3, 5.",
        *(TABLE, torch.ones(3, 5), None, -2, 1, INDEX),
    ),
    embedding_error("embedding_4bit", "weight is int8", WEIGHT, torch.ones(3), None, -8, 7, INDEX),
    add_error("out_quant_min is -1", INTS, INTS, -1),
    add_error("they must have the same", INTS, INTS[:1].clone(), 0),
]
