"""Cases of softmax and of the normalisations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...harness import FLOATING, ErrorCase, Maker, OpCases, Sample

CHANNELS_LAST = (0, 2, 3, 1)
PLAIN = torch.contiguous_format
aten = torch.ops.aten


# --- softmax ------------------------------------------------------------------------------------


def softmax(make: Maker) -> Iterator[Sample]:
    for shape in (
        (7,),
        (1,),
        (3, 33),
        (2, 3, 64),
        (5, 1, 65),
        (2, 3, 4, 5),
        (2, 2500),
        (3, 0),
        (0, 3),
    ):
        for dim in range(-len(shape), len(shape)):
            yield Sample(make.tensor(*shape, high=30), dim, False)
    yield Sample(make.tensor(), 0, False)
    yield Sample(make.tensor(), -1, False)
    for order in (CHANNELS_LAST, (3, 2, 1, 0)):
        for dim in range(4):
            yield Sample(make.tensor(2, 3, 5, 70, order=order), dim, False)
            yield Sample(make.tensor(2, 3, 5, 70), dim, False, out_dim_order=order)
            yield Sample(
                make.tensor(2, 9, 1, 600, order=order), dim, False, out_dim_order=(0, 1, 2, 3)
            )
    for dtype in FLOATING:
        for shape in ((3, 40), (40, 3), (2, 1300)):
            for dim in (0, 1):
                yield Sample(make.tensor(*shape, dtype=dtype), dim, False)
    huge = torch.finfo(torch.float32).max
    for rows in ([[-torch.inf] * 3, [1, 2, 3]], [[torch.inf, 1, 2], [torch.nan, 1, 2]]):
        for values in (torch.tensor(rows), torch.tensor(rows, dtype=torch.float64)):
            yield Sample(values.float(), 1, False)
            yield Sample(values.float(), 0, False)
            yield Sample(values, 1, False)
    yield Sample(torch.tensor([[huge, -huge, 0.0], [-huge, -huge, -huge]]), 1, False)
    yield Sample(torch.tensor([[0.0, -torch.inf] * 50]), 1, False)


# --- layer norm ---------------------------------------------------------------------------------


def layer_norm(make: Maker) -> Iterator[Sample]:
    for shape, normalized in (
        ((4, 6), [6]),
        ((2, 3, 768), [768]),
        ((2, 3, 5, 7), [5, 7]),
        ((2, 3, 5, 7), [2, 3, 5, 7]),
        ((2, 700, 2), [700, 2]),
        ((3, 1), [1]),
        ((5,), [5]),
        ((0, 4), [4]),
        ((2, 0), [0]),
    ):
        x = make.tensor(*shape)
        weight, bias = make.tensor(*normalized), make.tensor(*normalized)
        yield Sample(x, normalized, weight, bias, 1e-5)
        yield Sample(x, normalized, weight, None, 1e-3)
        yield Sample(x, normalized, None, bias, 1e-3)
        yield Sample(x, normalized, None, None, 1e-5)
        if len(shape) == 4:
            for order in (CHANNELS_LAST, (3, 0, 2, 1)):
                odd = make.tensor(*shape, order=order)
                yield Sample(odd, normalized, weight, bias, 1e-5)
                yield Sample(odd, normalized, weight, bias, 1e-5, out_dim_order=(3, 1, 2, 0))
    for dtype in FLOATING:
        x = make.tensor(3, 600, dtype=dtype)
        weight, bias = make.tensor(600, dtype=dtype), make.tensor(600, dtype=dtype)
        yield Sample(x, [600], weight, bias, 1e-5)
    half = make.tensor(3, 40, dtype=torch.bfloat16)
    yield Sample(half, [40], make.tensor(40), make.tensor(40), 1e-5)
    yield Sample(make.tensor(3, 40, low=1000, high=1001), [40], None, None, 1e-5)
    yield Sample(make.tensor(3, 40, special=True), [40], None, None, 1e-5)


# --- by channels --------------------------------------------------------------------------------


def channel_inputs(make: Maker) -> Iterator[torch.Tensor]:
    """Tensors of 12 channels, of many ranks and orders of dimensions."""
    for shape in ((2, 12, 5, 7), (1, 12, 1, 600), (3, 12, 4), (5, 12), (2, 12, 2, 3, 4)):
        yield make.tensor(*shape)
    yield make.tensor(2, 12, 5, 7, order=(3, 1, 0, 2))
    for dtype in FLOATING:
        for order in (None, CHANNELS_LAST):
            yield make.tensor(2, 12, 5, 7, dtype=dtype, order=order)


def parameters(make: Maker, dtype: torch.dtype, channels: int = 12) -> list[torch.Tensor]:
    """Weight, bias, mean and variance."""
    return [
        make.tensor(channels, dtype=dtype),
        make.tensor(channels, dtype=dtype),
        make.tensor(channels, dtype=dtype),
        make.tensor(channels, low=0.1, dtype=dtype),
    ]


def batch_norm_inference(make: Maker) -> Iterator[Sample]:
    for x in channel_inputs(make):
        yield Sample(x, *parameters(make, x.dtype), 0.1, 1e-5)
    weight, bias, mean, var = parameters(make, torch.float32)
    yield Sample(make.tensor(2, 12, 5, 7), None, bias, mean, var, 0.1, 1e-3)
    yield Sample(make.tensor(2, 12, 5, 7), weight, None, mean, var, 0.1, 1e-3)
    yield Sample(make.tensor(2, 12, 5, 7), None, None, mean, var, 0.1, 1e-3)
    yield Sample(make.tensor(2, 12, 5, 7, dtype=torch.float16), weight, bias, mean, var, 0.1, 1e-3)
    yield Sample(make.tensor(0, 12, 5, 7), weight, bias, mean, var, 0.1, 1e-3)
    wide = make.tensor(1, 1100, 2, 2, order=CHANNELS_LAST)
    yield Sample(wide, *parameters(make, torch.float32, 1100), 0.1, 1e-5)


def batch_norm_no_stats(make: Maker) -> Iterator[Sample]:
    for x in channel_inputs(make):
        weight, bias, _, _ = parameters(make, x.dtype)
        yield Sample(x, weight, bias, True, 0.1, 1e-5)
    yield Sample(make.tensor(2, 12, 5, 7), None, None, True, 0.1, 1e-3)
    wide = make.tensor(2, 1100, 2, 2, order=CHANNELS_LAST)
    yield Sample(wide, make.tensor(1100), None, True, 0.1, 1e-5)


def batch_norm(make: Maker) -> Iterator[Sample]:
    for x in channel_inputs(make):
        for training in (True, False):
            yield Sample(x, *parameters(make, x.dtype), training, 0.3, 1e-5)
    stats = [make.tensor(12), make.tensor(12, low=0.1)]
    yield Sample(make.tensor(2, 12, 5, 7), None, None, *stats, True, 0.0, 1e-3)
    yield Sample(make.tensor(2, 12, 5, 7), None, make.tensor(12), *stats, True, 1.0, 1e-3)
    half = make.tensor(2, 12, 5, 7, dtype=torch.float16)
    yield Sample(half, None, None, *stats, True, 0.1, 1e-3)
    wide = make.tensor(2, 1100, 2, 2, order=CHANNELS_LAST)
    yield Sample(wide, *parameters(make, torch.float32, 1100), True, 0.1, 1e-5)


def group_norm(make: Maker) -> Iterator[Sample]:
    for x in channel_inputs(make):
        pixels = x[0, 0].numel()
        for groups in (1, 3, 12):
            weight, bias, _, _ = parameters(make, x.dtype)
            yield Sample(x, weight, bias, x.shape[0], 12, pixels, groups, 1e-5)
    yield Sample(make.tensor(2, 12, 5), None, None, 2, 12, 5, 4, 1e-3)
    yield Sample(make.tensor(2, 12, 5), make.tensor(12), None, 2, 12, 5, 4, 1e-3)
    yield Sample(make.tensor(2, 12, 5), None, make.tensor(12), 2, 12, 5, 4, 1e-3)
    yield Sample(make.tensor(0, 12, 5), None, None, 0, 12, 5, 4, 1e-3)
    yield Sample(make.tensor(2, 12, 0), None, None, 2, 12, 0, 4, 1e-3)
    half = make.tensor(2, 12, 5, dtype=torch.bfloat16)
    yield Sample(half, make.tensor(12), make.tensor(12), 2, 12, 5, 4, 1e-3)
    for groups in (1, 2, 100):
        # Groups within a chunk of channels, and greater than one.
        wide = make.tensor(2, 1200, 2, 3, order=CHANNELS_LAST)
        yield Sample(wide, make.tensor(1200), None, 2, 1200, 6, groups, 1e-5)


def in_double(op: Any) -> Any:
    """Eager computed in double: in float32 it loses more digits than the kernels may."""

    def reference(x: torch.Tensor, *args: Any) -> list[torch.Tensor]:
        if not x.is_contiguous(memory_format=torch.channels_last if x.dim() == 4 else PLAIN):
            x = x.contiguous()
        rough = op(x, *args)
        exact = op(x.double(), *[a.double() if isinstance(a, torch.Tensor) else a for a in args])
        return [e.to(r.dtype) for e, r in zip(exact, rough, strict=True)]

    return reference


def batch_norm_in_double(
    x: torch.Tensor, weight: Any, bias: Any, mean: torch.Tensor, var: torch.Tensor, *rest: Any
) -> list[torch.Tensor]:
    """The same for batch norm, and the running statistics that it leaves behind."""
    rough = aten._native_batch_norm_legit(
        x.contiguous(), weight, bias, mean.clone(), var.clone(), *rest
    )
    wide = [t.double() if isinstance(t, torch.Tensor) else t for t in (weight, bias, mean, var)]
    exact = aten._native_batch_norm_legit(x.double().contiguous(), *wide, *rest)
    values = [e.to(r.dtype) for e, r in zip(exact, rough, strict=True)]
    values[0] = torch.empty_like(x).copy_(values[0])
    return [*values, wide[2].to(mean.dtype), wide[3].to(var.dtype)]


OPS = [
    OpCases("aten::_log_softmax.out", softmax, tolerance=(1e-6, 2e-6)),
    OpCases(
        "aten::_native_batch_norm_legit.no_stats_out",
        batch_norm_no_stats,
        in_double(aten._native_batch_norm_legit.no_stats),
    ),
    OpCases("aten::_native_batch_norm_legit.out", batch_norm, batch_norm_in_double),
    OpCases(
        "aten::_native_batch_norm_legit_no_training.out",
        batch_norm_inference,
        in_double(aten._native_batch_norm_legit_no_training.default),
    ),
    OpCases("aten::_softmax.out", softmax, tolerance=(2e-6, 1e-9)),
    OpCases("aten::native_group_norm.out", group_norm, in_double(aten.native_group_norm.default)),
    OpCases("aten::native_layer_norm.out", layer_norm, in_double(aten.native_layer_norm.default)),
]


def softmax_error(message: str, *args: Any, dtype: torch.dtype = torch.float32) -> ErrorCase:
    return ErrorCase(
        "aten::_softmax.out",
        lambda make: [make.tensor(2, 3, dtype=dtype), *args, torch.zeros(2, 3, dtype=dtype)],
        message,
    )


def layer_norm_error(message: str, normalized: list[int], *parameters: Any) -> ErrorCase:
    def args(make: Maker) -> list[Any]:
        weight, bias = [*parameters, None, None][:2]
        stats = [torch.zeros(2, 1), torch.zeros(2, 1)]
        return [make.tensor(2, 3), normalized, weight, bias, 1e-5, torch.zeros(2, 3), *stats]

    return ErrorCase("aten::native_layer_norm.out", args, message)


def group_norm_error(message: str, *numbers: int, weight: Any = None) -> ErrorCase:
    def args(make: Maker) -> list[Any]:
        outs = [torch.zeros(2, 6, 4), torch.zeros(2, 6), torch.zeros(2, 6)]
        return [make.tensor(2, 6, 4), weight, None, *numbers, 1e-5, *outs]

    return ErrorCase("aten::native_group_norm.out", args, message)


ERRORS = [
    softmax_error("dim is 2, but", 2, False),
    softmax_error("half_to_float is true", 1, True),
    softmax_error("self is int32, but must be floating", 1, False, dtype=torch.int32),
    layer_norm_error(r"normalized_shape is \(2,\), but must be the last dimensions", [2]),
    layer_norm_error(r"normalized_shape is \(1, 2, 3\)", [1, 2, 3]),
    layer_norm_error(r"normalized_shape is \(\)", []),
    layer_norm_error(r"size\[0\] is -3", [-3]),
    layer_norm_error(
        r"weight has shape \(4,\), but normalized_shape is \(3,\)", [3], torch.ones(4)
    ),
    layer_norm_error("bias is int64", [3], None, torch.ones(3, dtype=torch.int64)),
    group_norm_error("group is 4, but must divide the 6 channels", 2, 6, 4, 4),
    group_norm_error("group is 0", 2, 6, 4, 0),
    group_norm_error("group is -1", 2, 6, 4, -1),
    group_norm_error("HxW 5 do not describe", 2, 6, 5, 2),
    group_norm_error(r"weight has shape \(2,\)", 2, 6, 4, 2, weight=torch.ones(2)),
    ErrorCase(
        "aten::_native_batch_norm_legit.no_stats_out",
        lambda make: [
            make.tensor(2, 3),
            *(None, None, False, 0.1, 1e-5),
            *(torch.zeros(2, 3), torch.zeros(3), torch.zeros(3)),
        ],
        "training is false, but",
    ),
    ErrorCase(
        "aten::_native_batch_norm_legit.out",
        lambda make: [
            make.tensor(2, 3),
            *(None, None, torch.zeros(3), torch.zeros(2), True, 0.1, 1e-5),
            *(torch.zeros(2, 3), torch.zeros(3), torch.zeros(3)),
        ],
        r"running_var has shape \(2,\), but must have shape \(3,\)",
    ),
    ErrorCase(
        "aten::_native_batch_norm_legit.out",
        lambda make: [
            make.tensor(0, 3),
            *(None, None, torch.zeros(3), torch.zeros(3), True, 0.1, 1e-5),
            *(torch.zeros(0, 3), torch.zeros(3), torch.zeros(3)),
        ],
        r"input has shape \(0, 3\), but must have elements",
    ),
    ErrorCase(
        "aten::_native_batch_norm_legit_no_training.out",
        lambda make: [
            make.tensor(2, 3),
            *(None, None, torch.zeros(2), torch.zeros(3), 0.1, 1e-5),
            *(torch.zeros(2, 3), torch.zeros(0), torch.zeros(0)),
        ],
        r"running_mean has shape \(2,\), but must have shape \(3,\)",
    ),
]
