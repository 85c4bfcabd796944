"""Matrix products, convolutions, pooling and data movement at shapes of real models, beside eager
PyTorch.

    python benchmarks/kernels_nn.py [--only conv mm] [--isa avx2] [--scratch 65536]

One thread on both sides, the best of several rounds in which they take turns. Eager runs the
functional operator, so its time includes a dispatch and an allocation. GFLOP/s are ours and eager's
where the operation has a number of multiplications worth naming.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed

from rushlight.ir.spec import SCALAR_TYPES

ROUNDS = 7
ROUND_SECONDS = 0.02


@dataclass(frozen=True)
class Bench:
    """One call: the functional operator (with its overload where the out variant's name does not
    tell it) and its out variant's name, all arguments but the outs."""

    eager: str
    op: str
    args: tuple[Any, ...]
    note: str
    flops: float = 0.0
    keywords: dict[str, Any] = field(default_factory=dict)


def matrix_products() -> Iterator[Bench]:
    """Linear layers of MiniLM, ViT and GPT-2, attention's products, single tokens."""
    for m, n, k, note in [
        (128, 384, 384, "MiniLM attention"),
        (128, 1536, 384, "MiniLM up"),
        (128, 384, 1536, "MiniLM down"),
        (197, 768, 768, "ViT attention"),
        (197, 3072, 768, "ViT up"),
        (128, 768, 3072, "GPT-2 down"),
        (512, 512, 512, "cube"),
        (1, 768, 768, "one token"),
        (1, 50257, 768, "GPT-2 head, one token"),
        (4, 768, 768, "four tokens"),
        (16, 768, 768, "sixteen tokens"),
        (1, 1000, 2048, "ResNet head"),
    ]:
        x, w, b = torch.randn(m, k), torch.randn(n, k), torch.randn(n)
        flops = 2.0 * m * n * k
        shape = f"{m}x{n}x{k} {note}"
        yield Bench("linear", "aten::linear.out", (x, w, b), shape, flops)
        keywords = {"beta": 1, "alpha": 1}
        args = (b, x, w.t().contiguous())
        yield Bench("addmm", "aten::addmm.out", args, shape, flops, keywords)
    for batch, m, n, k, note in [
        (12, 128, 128, 32, "MiniLM scores"),
        (12, 128, 32, 128, "MiniLM values"),
        (12, 197, 197, 64, "ViT scores"),
        (12, 197, 64, 197, "ViT values"),
        (12, 1, 128, 64, "one token"),
    ]:
        factors = (torch.randn(batch, m, k), torch.randn(batch, k, n))
        yield Bench(
            "bmm", "aten::bmm.out", factors, f"{batch}x{m}x{n}x{k} {note}", 2.0 * batch * m * n * k
        )


# channels in, out, size, kernel, stride, groups
CONVOLUTIONS = [
    (3, 64, 224, 7, 2, 1, "ResNet stem"),
    (64, 64, 56, 1, 1, 1, "ResNet"),
    (64, 64, 56, 3, 1, 1, "ResNet"),
    (64, 256, 56, 1, 1, 1, "ResNet"),
    (128, 128, 56, 3, 2, 1, "ResNet"),
    (128, 128, 28, 3, 1, 1, "ResNet"),
    (256, 512, 56, 1, 2, 1, "ResNet"),
    (256, 256, 14, 3, 1, 1, "ResNet"),
    (1024, 256, 14, 1, 1, 1, "ResNet"),
    (512, 512, 7, 3, 1, 1, "ResNet"),
    (512, 2048, 7, 1, 1, 1, "ResNet"),
    (3, 32, 224, 3, 2, 1, "MobileNet stem"),
    (32, 32, 112, 3, 1, 32, "MobileNet depthwise"),
    (32, 16, 112, 1, 1, 1, "MobileNet"),
    (16, 96, 112, 1, 1, 1, "MobileNet"),
    (96, 96, 112, 3, 2, 96, "MobileNet depthwise"),
    (144, 144, 56, 3, 1, 144, "MobileNet depthwise"),
    (144, 24, 56, 1, 1, 1, "MobileNet"),
    (576, 576, 14, 3, 1, 576, "MobileNet depthwise"),
    (960, 960, 7, 3, 1, 960, "MobileNet depthwise"),
    (320, 1280, 7, 1, 1, 1, "MobileNet"),
    (3, 768, 224, 16, 16, 1, "ViT patches"),
]


def convolutions() -> Iterator[Bench]:
    """Layers of ResNet-50, MobileNetV2 and ViT-B/16; channels-last, 1-d and transposed ones."""
    for c, o, size, kernel, stride, groups, note in CONVOLUTIONS:
        padding = kernel // 2 if stride < kernel else 0
        padding = 0 if kernel == 16 else padding
        x, w, b = (
            torch.randn(1, c, size, size),
            torch.randn(o, c // groups, kernel, kernel),
            torch.randn(o),
        )
        rest = (b, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)
        out = (size + 2 * padding - kernel) // stride + 1
        flops = 2.0 * o * c // groups * kernel * kernel * out * out
        text = f"{c}->{o} {size}x{size} k{kernel} s{stride} {note}"
        yield Bench("convolution", "aten::convolution.out", (x, w, *rest), text, flops)
        if (note == "ResNet" and size in (28, 14)) or ("depthwise" in note and size == 56):
            last = [t.contiguous(memory_format=torch.channels_last) for t in (x, w)]
            text += " channels-last"
            yield Bench("convolution", "aten::convolution.out", (*last, *rest), text, flops)
    x, w = torch.randn(1, 128, 28, 28), torch.randn(128, 64, 2, 2)
    rest = (torch.randn(64), [2, 2], [0, 0], [1, 1], True, [0, 0], 1)
    flops = 2.0 * 128 * 64 * 4 * 28 * 28
    yield Bench("convolution", "aten::convolution.out", (x, w, *rest), "transposed k2 s2", flops)
    x, w = torch.randn(1, 80, 3000), torch.randn(384, 80, 3)
    rest = (torch.randn(384), [1], [1], [1], False, [0], 1)
    flops = 2.0 * 384 * 80 * 3 * 3000
    yield Bench("convolution", "aten::convolution.out", (x, w, *rest), "1-d 80->384 k3", flops)


def rare_types() -> Iterator[Bench]:
    """Convolutions of other types than float32."""
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int64):
        for c, o, size, kernel, groups in [(64, 64, 56, 3, 1), (144, 144, 56, 3, 144)]:
            x = (torch.randn(1, c, size, size) * 4).to(dtype)
            w = (torch.randn(o, c // groups, kernel, kernel) * 4).to(dtype)
            rest = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], groups)
            flops = 2.0 * o * c // groups * kernel * kernel * size * size
            text = f"{c}->{o} {size}x{size} k{kernel} groups {groups} {dtype}"
            yield Bench("convolution", "aten::convolution.out", (x, w, *rest), text, flops)
    x, w = torch.randn(1, 16, 16, 28, 28), torch.randn(32, 16, 3, 3, 3)
    rest = (None, [1] * 3, [1] * 3, [1] * 3, False, [0] * 3, 1)
    flops = 2.0 * 32 * 16 * 27 * 16 * 28 * 28
    yield Bench("convolution", "aten::convolution.out", (x, w, *rest), "3-d 16->32 k3", flops)


def pooling() -> Iterator[Bench]:
    """Pooling of video and image features, even and uneven windows; bags and distances."""
    video, image = torch.randn(1, 64, 16, 56, 56), torch.randn(1, 64, 112, 112)
    window = ([3] * 3, [2] * 3, [1] * 3)
    maxima = (video, *window, [1] * 3, False)
    yield Bench("max_pool3d_with_indices", "aten::max_pool3d_with_indices.out", maxima, "k3 s2")
    means = (video, *window, False, True, None)
    yield Bench("avg_pool3d", "aten::avg_pool3d.out", means, "k3 s2")
    for size in (1, 7, 9):
        yield Bench(
            "adaptive_max_pool2d",
            "aten::adaptive_max_pool2d.out",
            (image, [size] * 2),
            f"to {size}",
        )
        yield Bench(
            "_adaptive_avg_pool3d",
            "aten::_adaptive_avg_pool3d.out",
            (video, [size] * 3),
            f"to {size}",
        )
    table, ids = torch.randn(20000, 128), torch.randint(0, 20000, (4096,))
    for mode, note in enumerate(("sum", "mean", "max")):
        rest = (torch.arange(0, 4096, 16), False, mode, False, None, False, -1)
        yield Bench("_embedding_bag", "aten::_embedding_bag.out", (table, ids, *rest), note)
    for p in (1.0, 2.0, 3.0):
        points = (torch.randn(300, 64), torch.randn(300, 64), p, 2)
        yield Bench("_cdist_forward", "aten::_cdist_forward.out", points, f"300x300x64 p={p}")


def movement() -> Iterator[Bench]:
    """What transformers and U-Nets copy."""
    heads, image = torch.randn(1, 128, 12, 32), torch.randn(1, 64, 112, 112)
    square, table = torch.randn(1024, 1024), torch.randn(30522, 384)
    ids = torch.randint(0, 30000, (1, 128))
    yield Bench("permute_copy", "aten::permute_copy.out", (heads, [0, 2, 1, 3]), "heads")
    yield Bench(
        "permute_copy", "aten::permute_copy.out", (heads, [0, 2, 3, 1]), "heads, transposed"
    )
    yield Bench("permute_copy", "aten::permute_copy.out", (image, [0, 2, 3, 1]), "to channels-last")
    yield Bench("t_copy", "aten::t_copy.out", (square,), "float32 1024x1024")
    yield Bench("t_copy", "aten::t_copy.out", (square.half(),), "float16 1024x1024")
    yield Bench("t_copy", "aten::t_copy.out", (square.double(),), "float64 1024x1024")
    yield Bench("view_copy", "aten::view_copy.out", (square, [512, 2048]), "1024x1024")
    yield Bench(
        "expand_copy",
        "aten::expand_copy.out",
        (
            heads[:, :1],
            [4, 128, 12, 32],
        ),
        "rows",
        keywords={"implicit": False},
    )
    yield Bench("cat", "aten::cat.out", ([image, image], 1), "channels")
    yield Bench("cat", "aten::cat.out", ([heads, heads], 3), "innermost")
    yield Bench(
        "slice_copy", "aten::slice_copy.Tensor_out", (square, 1, 0, 1024, 2), "every second"
    )
    yield Bench("flip", "aten::flip.out", (square, [1]), "innermost")
    yield Bench("roll", "aten::roll.out", (image, [3, 3], [2, 3]), "image")
    yield Bench("constant_pad_nd", "aten::constant_pad_nd.out", (image, [1, 1, 1, 1], 0), "image")
    yield Bench("pixel_shuffle", "aten::pixel_shuffle.out", (image, 2), "image")
    yield Bench("embedding", "aten::embedding.out", (table, ids, -1, False, False), "MiniLM")
    yield Bench("index_select", "aten::index_select.out", (square, 1, ids[0] % 1024), "columns")
    yield Bench(
        "gather",
        "aten::gather.out",
        (square, 1, torch.randint(0, 1024, (1024, 256))),
        "",
        keywords={"sparse_grad": False},
    )
    index = torch.randint(0, 1024, (1024, 64))
    yield Bench("scatter_add", "aten::scatter_add.out", (square, 0, index, square), "")
    pair = [torch.randint(0, 1024, (20000,)) for _ in range(2)]
    yield Bench("index", "aten::index.Tensor_out", (square, pair), "elements")
    yield Bench("index", "aten::index.Tensor_out", (square, [square > 0.5]), "mask")
    yield Bench("index_put", "aten::index_put.out", (square, pair, torch.randn(20000), True), "add")
    yield Bench("nonzero", "aten::nonzero.out", (square > 0.5,), "1024x1024")
    yield Bench("masked_select", "aten::masked_select.out", (square, square > 0.5), "1024x1024")


def signals() -> Iterator[Bench]:
    """Resized and sampled images, Fourier transforms, quantization."""
    image, volume = torch.randn(1, 16, 128, 128), torch.randn(1, 4, 16, 32, 32)
    flat: Any = ([224, 224], False, None, None)
    small: Any = ([48, 48], False, None, None)
    photo = torch.randint(0, 255, (1, 3, 256, 256), dtype=torch.uint8)
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        yield Bench(name, f"aten::{name}.out", (image, *flat), "128 to 224")
        yield Bench(name, f"aten::{name}.out", (photo, *flat), "uint8 256 to 224")
    for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
        yield Bench(name, f"aten::{name}.out", (image, *flat), "128 to 224")
        yield Bench(name, f"aten::{name}.out", (image, *small), "128 to 48")
        yield Bench(name, f"aten::{name}.out", (photo, *flat), "uint8 256 to 224")
    nearest: Any = ([224, 224], None, None)
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        yield Bench(name, f"aten::{name}.out", (image, *nearest), "128 to 224")
    deep = (volume, [32, 64, 64], False, None, None, None)
    yield Bench("upsample_trilinear3d", "aten::upsample_trilinear3d.out", deep, "twice")
    grid, places = torch.rand(1, 128, 128, 2) * 2 - 1, torch.rand(1, 16, 32, 32, 3) * 2 - 1
    for mode, note in enumerate(("bilinear", "nearest", "bicubic")):
        call: Any = (image, grid, mode, 0, False)
        yield Bench("grid_sampler_2d", "aten::grid_sampler_2d.out", call, note)
    call = (volume, places, 0, 0, False)
    yield Bench("grid_sampler_3d", "aten::grid_sampler_3d.out", call, "trilinear")
    for rows, n in ((256, 256), (100, 400), (64, 1000), (64, 1009), (1, 32768), (400, 512)):
        x = torch.randn(rows, n)
        yield Bench("_fft_r2c", "aten::_fft_r2c.out", (x, [1], 0, True), f"{rows} of {n}")
        half = torch.randn(rows, n // 2 + 1, dtype=torch.complex64)
        yield Bench("_fft_c2r", "aten::_fft_c2r.out", (half, [1], 0, n), f"{rows} of {n}")
        pairs = torch.randn(rows, n, dtype=torch.complex64)
        yield Bench("_fft_c2c", "aten::_fft_c2c.out", (pairs, [1], 0, True), f"{rows} of {n}")
    pairs = torch.randn(256, 256, dtype=torch.complex64)
    yield Bench("_fft_c2c", "aten::_fft_c2c.out", (pairs, [0, 1], 0, True), "256x256 both")
    yield Bench("mul.Tensor", "aten::mul.out", (pairs, pairs), "complex 256x256")
    yield Bench("abs", "aten::abs.out", (pairs,), "complex 256x256")


def quantization() -> Iterator[Bench]:
    """A tensor, its channels and its tokens to int8 and back."""
    x, scales = torch.randn(256, 1024), torch.rand(256) + 0.1
    zeros = torch.zeros(256, dtype=torch.int64)
    bytes_, bounds = (x * 30).to(torch.int8), (-128, 127, torch.int8)
    tokens = (scales.view(256, 1).double(), zeros.view(256, 1))
    prefix = "quantized_decomposed::"
    back = {"out_dtype": None}
    for name, args, keywords in (
        ("quantize_per_tensor", (x, 0.1, 3, *bounds), {}),
        ("dequantize_per_tensor", (bytes_, 0.1, 3, *bounds), back),
        ("quantize_per_channel", (x, scales, zeros, 0, *bounds), {}),
        ("dequantize_per_channel", (bytes_, scales, zeros, 0, *bounds), back),
        ("quantize_per_token", (x, *tokens, *bounds), {}),
        ("dequantize_per_token", (bytes_, *tokens, *bounds, torch.float32), {}),
    ):
        yield Bench(name, f"{prefix}{name}.out", args, "256x1024", keywords=keywords)


def overload(bench: Bench) -> Any:
    """Eager's functional overload with as many arguments as the bench has."""
    name, _, given = bench.eager.partition(".")
    packet = getattr(getattr(torch.ops, bench.op.partition("::")[0]), name)
    wanted = given or bench.op.partition(".")[2].removesuffix("out").removesuffix("_")
    return getattr(packet, wanted or "default")


def eager_result(bench: Bench) -> Any:
    """One call of eager."""
    return overload(bench)(*bench.args, **bench.keywords)


def best_of(call: Any) -> float:
    """Seconds per call in one round of about ROUND_SECONDS."""
    once = max(call(1), 1e-7)
    seconds: float = call(max(1, int(ROUND_SECONDS / once)))
    return seconds


def measure(bench: Bench, native: Any, isa: str | None, scratch: int) -> tuple[float, float]:
    """Best seconds per call of ours and of eager's, taking turns."""
    results = eager_result(bench)
    outs = [torch.empty_like(r) for r in (results if isinstance(results, tuple) else [results])]
    args = [
        int(SCALAR_TYPES[a]) if isinstance(a, torch.dtype) else a
        for a in (*bench.args, *bench.keywords.values(), *outs)
    ]

    def eager(repeats: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            eager_result(bench)
        return (time.perf_counter() - start) / repeats

    def ours(repeats: int) -> float:
        seconds: float = native.time_kernel(bench.op, args, repeats, isa=isa, scratch=scratch)
        return seconds

    pairs = [(best_of(ours), best_of(eager)) for _ in range(ROUNDS)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="words of the operator or its note")
    parser.add_argument("--isa", help="plain, avx2 or avx512 instead of the widest")
    parser.add_argument("--scratch", type=int, default=1 << 20, help="bytes that kernels may use")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    native = importlib.import_module(os.environ.get("RUSHLIGHT_KERNELS_MODULE", "rushlight._core"))
    print(f"{'ratio':>6} {'ours us':>9} {'eager us':>9} {'GFLOP/s':>8} {'eager':>7}  operator")
    families = (
        matrix_products,
        convolutions,
        rare_types,
        pooling,
        movement,
        signals,
        quantization,
    )
    for bench in [bench for family in families for bench in family()]:
        name = f"{bench.op.removeprefix('aten::')} {bench.note}"
        if arguments.only and not any(word in name for word in arguments.only):
            continue
        ours, eager = measure(bench, native, arguments.isa, arguments.scratch)
        rates = f"{bench.flops / ours / 1e9:8.1f} {bench.flops / eager / 1e9:7.1f}"
        if bench.flops == 0:
            rates = f"{'':8} {'':7}"
        print(f"{ours / eager:6.2f} {ours * 1e6:9.1f} {eager * 1e6:9.1f} {rates}  {name}")


if __name__ == "__main__":
    main()
