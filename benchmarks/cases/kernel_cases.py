"""The cases that `kernels.py` times: at least one call of every operator of ops/ops.yaml.

A case gives the arguments of the functional operator for a number of elements and a dtype; which
dtypes an operator takes is eager's to say. Layers at the shapes of real models, where the number of
elements is not to be chosen, are in `model_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

Tensor = torch.Tensor

# Operators that are not timed, and why.
UNTIMED = {
    "executorch_prim::": "one scalar from others: no loop",
    "aten::sym_": "reads one size",
    "aten::_local_scalar_dense": "reads one element",
    "aten::_assert_": "reads one element",
    "aten::scalar_tensor.out": "writes one element",
    "aten::empty.out": "writes nothing",
    "dim_order_ops::_empty_dim_order.out": "writes nothing",
}


class Inputs:
    """Tensors of a dtype with about `n` elements, a power of 4."""

    def __init__(self, n: int, dtype: torch.dtype) -> None:
        self.n, self.dtype = n, dtype
        self.generator = torch.Generator().manual_seed(0)
        self.cols = min(1024, int(n**0.5))
        self.rows = n // self.cols

    def tensor(self, *shape: int) -> Tensor:
        """Values from 0.01 to 1, integers from 1 to 99, or bools, all alike often."""
        if self.dtype == torch.bool or not self.dtype.is_floating_point:
            return torch.randint(1, 100, shape, generator=self.generator).to(self.dtype)
        values = torch.rand(shape, generator=self.generator)
        return (values * 0.99 + 0.01).to(self.dtype)

    @property
    def x(self) -> Tensor:
        """A matrix."""
        return self.tensor(self.rows, self.cols)

    @property
    def mask(self) -> Tensor:
        """Bools of the matrix' shape, half of them set."""
        return torch.rand((self.rows, self.cols), generator=self.generator) > 0.5

    @property
    def image(self) -> Tensor:
        """One image, channels first."""
        side = {16: 2, 256: 8, 65536: 64}.get(self.n, 128)
        return self.tensor(1, self.n // side**2, side, side)

    @property
    def image_last(self) -> Tensor:
        """The same with channels innermost in memory."""
        return self.image.contiguous(memory_format=torch.channels_last)

    @property
    def volume(self) -> Tensor:
        """One volume, channels first."""
        side = {16: 2, 256: 4, 65536: 16}.get(self.n, 32)
        return self.tensor(1, self.n // side**3, side, side, side)

    @property
    def heads(self) -> Tensor:
        """Attention heads: [1, tokens, heads, size of a head]."""
        size = min(64, self.cols // 2)
        count = min(8, max(1, self.n // size // 4))
        return self.tensor(1, self.n // size // count, count, size)

    def index(self, high: int, *shape: int) -> Tensor:
        """int64 indices below `high`."""
        return torch.randint(0, high, shape, generator=self.generator)


@dataclass(frozen=True)
class Case:
    """One call. `make` gives the positional arguments in schema order; defaults may be left out."""

    op: str
    make: Callable[[Inputs], tuple[Any, ...]]
    note: str = ""


def unary() -> Iterator[Case]:
    """Operators on one tensor."""
    names = (
        "abs acos asin asinh atan atanh bitwise_not ceil cos cosh erf exp expm1 floor isinf isnan "
        "log log10 log1p log2 logical_not neg reciprocal relu round rsqrt sigmoid sign sin sinh "
        "sqrt tan tanh trunc"
    )
    for name in names.split():
        yield Case(f"aten::{name}.out", lambda t: (t.x,))
    yield Case("aten::acosh.out", lambda t: (t.x + 1,))
    yield Case("aten::clamp.out", lambda t: (t.x, 0.2, 0.8) if is_float(t) else (t.x, 20, 80))
    yield Case("aten::elu.out", lambda t: (t.x, 1.0, 1.0, 1.0))
    yield Case("aten::gelu.out", lambda t: (t.x, "none"))
    yield Case("aten::gelu.out", lambda t: (t.x, "tanh"), "tanh")
    yield Case("aten::hardtanh.out", lambda t: (t.x, -1, 1))
    yield Case("aten::leaky_relu.out", lambda t: (t.x, 0.1))
    yield Case("aten::logit.out", lambda t: (t.x, 0.1))


def special() -> Iterator[Case]:
    """Special functions, and what looks into the bits of a number."""
    names = (
        "digamma erfc erfinv exp2 i0 lgamma signbit special_erfcx special_i0e special_i1 "
        "special_i1e special_log_ndtr special_ndtri special_airy_ai special_bessel_j0 "
        "special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0 "
        "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 "
        "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 "
        "special_spherical_bessel_j0"
    )
    for name in names.split():
        yield Case(f"aten::{name}.out", lambda t: (t.x,))
    yield Case("aten::frexp.Tensor_out", lambda t: (t.x,))
    yield Case("aten::polygamma.out", lambda t: (1, t.x))
    for name in ("copysign", "gcd", "hypot", "igamma", "igammac", "nextafter"):
        yield Case(f"aten::{name}.out", lambda t: (t.x, t.x))
    yield Case("aten::copysign.Scalar_out", lambda t: (t.x, -1))
    yield Case("aten::special_zeta.out", lambda t: (t.x + 1, t.x))
    yield Case("aten::special_zeta.other_scalar_out", lambda t: (t.x + 1, 0.5))
    yield Case("aten::special_zeta.self_scalar_out", lambda t: (1.5, t.x))
    kinds = [f"{shifted}chebyshev_polynomial_{k}" for shifted in ("", "shifted_") for k in "tuvw"]
    kinds += ["hermite_polynomial_h", "hermite_polynomial_he"]
    for name in (*kinds, "laguerre_polynomial_l", "legendre_polynomial_p"):
        yield Case(f"aten::special_{name}.out", lambda t: (t.x, 9 * t.x))
        yield Case(f"aten::special_{name}.n_scalar_out", lambda t: (t.x, 5))
        yield Case(f"aten::special_{name}.x_scalar_out", lambda t: (0.3, 9 * t.x))


def is_float(t: Inputs) -> bool:
    """True for a floating dtype."""
    return t.dtype.is_floating_point


def binary() -> Iterator[Case]:
    """Arithmetic on two tensors, or on one and a scalar."""
    for name in ("add", "sub", "mul", "div", "floor_divide", "maximum", "minimum", "atan2"):
        yield Case(f"aten::{name}.out", lambda t: (t.x, t.x))
    for name in ("fmod.Tensor_out", "remainder.Tensor_out", "pow.Tensor_Tensor_out"):
        yield Case(f"aten::{name}", lambda t: (t.x, t.x))
    for name in ("add", "sub", "mul", "div", "fmod", "remainder"):
        yield Case(f"aten::{name}.Scalar_out", lambda t: (t.x, 3))
    yield Case("aten::rsub.Scalar_out", lambda t: (t.x, 3))
    for mode in ("floor", "trunc"):
        yield Case("aten::div.out_mode", lambda t, m=mode: (t.x, t.x, m), mode)
        yield Case("aten::div.Scalar_mode_out", lambda t, m=mode: (t.x, 3, m), mode)
    yield Case("aten::pow.Scalar_out", lambda t: (3, t.x))
    yield Case("aten::pow.Tensor_Scalar_out", lambda t: (t.x, 2), "2")
    yield Case("aten::pow.Tensor_Scalar_out", lambda t: (t.x, 3), "3")
    yield Case("aten::pow.Tensor_Scalar_out", lambda t: (t.x, 2.5), "2.5")
    yield Case("aten::add.out", lambda t: (t.x, t.tensor(t.cols)), "row")
    yield Case("aten::add.out", lambda t: (t.x, t.tensor(t.rows, 1)), "column")
    yield Case("aten::add.out", lambda t: (t.x, t.tensor(1)[0]), "0-d")
    yield Case("aten::add.out", lambda t: (t.x, t.x.t().contiguous().t()), "transposed")
    yield Case("aten::add.out", lambda t: (t.image, t.image_last), "channels-last")
    yield Case("aten::add.out", lambda t: (t.x, t.x.to(torch.int64)), "+ int64")
    yield Case("aten::add.out", lambda t: (t.x, t.x.float()), "+ float32")


def compare() -> Iterator[Case]:
    """Comparisons, logical and bitwise operators, selection."""
    for name in ("eq", "ge", "gt", "le", "lt", "ne"):
        yield Case(f"aten::{name}.Tensor_out", lambda t: (t.x, t.x))
        yield Case(f"aten::{name}.Scalar_out", lambda t: (t.x, 1))
    for name in ("and", "or", "xor"):
        yield Case(f"aten::logical_{name}.out", lambda t: (t.x, t.x))
        yield Case(f"aten::bitwise_{name}.Tensor_out", lambda t: (t.x, t.x))
        yield Case(f"aten::bitwise_{name}.Scalar_out", lambda t: (t.x, 5))
    for name in ("left", "right"):
        op = f"aten::bitwise_{name}_shift"
        yield Case(f"{op}.Tensor_out", lambda t: (t.x, t.x % 8))
        yield Case(f"{op}.Tensor_Scalar_out", lambda t: (t.x, 3))
    yield Case("aten::clamp.Tensor_out", lambda t: (t.x, t.x, t.x))
    yield Case("aten::masked_fill.Scalar_out", lambda t: (t.x, t.mask, one(t)))
    yield Case("aten::masked_fill.Scalar_out", lambda t: (t.x, t.mask[0], one(t)), "row")
    yield Case("aten::masked_fill.Scalar_out", lambda t: (t.x, t.mask[:, :1], one(t)), "column")
    yield Case("aten::where.self_out", lambda t: (t.mask, t.x, t.x))
    yield Case("aten::where.self_out", lambda t: (t.mask[0], t.x, t.tensor(1)[0]), "row, 0-d")


def one(t: Inputs) -> bool | int:
    """A scalar of the dtype's kind."""
    return t.dtype == torch.bool or 1


def creation() -> Iterator[Case]:
    """Fills and copies."""
    yield Case("aten::arange.out", lambda t: (t.n,))
    yield Case("aten::arange.start_out", lambda t: (1, 1 + 3 * t.n, 3))
    yield Case("aten::fill.Scalar_out", lambda t: (t.x, 1))
    yield Case("aten::fill.Tensor_out", lambda t: (t.x, t.tensor(1)[0]))
    yield Case("aten::full.out", lambda t: ([t.rows, t.cols], 1))
    yield Case("aten::full_like.out", lambda t: (t.x, 1))
    yield Case("aten::ones.out", lambda t: ([t.rows, t.cols],))
    yield Case("aten::zeros.out", lambda t: ([t.rows, t.cols],))
    for op in ("alias_copy", "clone", "detach_copy", "lift_fresh_copy"):
        yield Case(f"aten::{op}.out", lambda t: (t.x,))
    yield Case("dim_order_ops::_clone_dim_order.out", lambda t: (t.x,))
    yield Case("aten::_to_copy.out", lambda t: (t.x,))
    yield Case("dim_order_ops::_to_dim_order_copy.out", lambda t: (t.x,))
    yield Case("aten::copy_", lambda t: (t.x, t.x))
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        to = str(dtype).removeprefix("torch.")
        yield Case(
            "aten::copy.out", lambda t, d=dtype: (torch.ones_like(t.x).to(d), t.x), f"to {to}"
        )
    yield Case("aten::copy.out", lambda t: (t.x.bool(), t.x), "to bool")
    yield Case("aten::copy.out", lambda t: (t.x.byte(), t.x), "to uint8")
    yield Case("aten::copy.out", lambda t: (t.x, t.tensor(t.cols)), "row")
    yield Case("aten::copy.out", lambda t: (t.image_last, t.image), "to channels-last")


def reductions() -> Iterator[Case]:
    """Reductions along rows, columns and everything; scans, order statistics, softmax."""
    for dims, note in (([1], "rows"), ([0], "columns"), ([0, 1], "all")):
        for name in ("sum.IntList_out", "mean.out", "amax.out", "amin.out", "any.dims_out"):
            yield Case(f"aten::{name}", lambda t, d=dims: (t.x, d), note)
        for name in ("var.correction_out", "var_mean.correction_out"):
            yield Case(f"aten::{name}", lambda t, d=dims: (t.x, d, 1), note)
        yield Case("aten::var.out", lambda t, d=dims: (t.x, d), note)
    yield Case("aten::sum.IntList_out", lambda t: (t.image, [1]), "channels")
    yield Case("aten::sum.IntList_out", lambda t: (t.image_last, [2, 3]), "channels-last")
    yield Case("aten::mean.out", lambda t: (t.image, [2, 3]), "image")
    for name in ("any.all", "max.unary", "min.unary", "mean.dtype", "prod"):
        op = f"aten::{name}_out" if "." in name else f"aten::{name}.out"
        yield Case(op, lambda t: (t.x,), "all")
    yield Case("aten::argmax.out", lambda t: (t.x, None), "all")
    yield Case("aten::argmin.out", lambda t: (t.x, None), "all")
    for dim, note in ((1, "rows"), (0, "columns")):
        names = "any.out argmax.out argmin.out cumsum.out max.dim_max min.dim_min prod.int_out"
        for name in names.split():
            yield Case(f"aten::{name}", lambda t, d=dim: (t.x, d), note)
        for name in ("_softmax", "_log_softmax"):
            yield Case(f"aten::{name}.out", lambda t, d=dim: (t.x, d, False), note)
    yield Case("aten::_softmax.out", lambda t: (t.image, 1, False), "channels")
    for k in (1, 10, 500):
        make = lambda t, k=k: (t.x, min(k, t.cols), 1, True, True)  # noqa: E731
        yield Case("aten::topk.values", make, f"k={k}")
    yield Case("aten::topk.values", lambda t: (t.x, 3, 0, True, True), "columns")


def matrices() -> Iterator[Case]:
    """Products with about n elements on each side."""

    def side(t: Inputs) -> int:
        return int(t.n**0.5)

    def square(t: Inputs) -> Tensor:
        return t.tensor(side(t), side(t))

    yield Case("aten::mm.out", lambda t: (square(t), square(t)))
    yield Case("aten::addmm.out", lambda t: (t.tensor(side(t)), square(t), square(t)))
    yield Case("aten::linear.out", lambda t: (square(t), square(t), t.tensor(side(t))))
    yield Case("aten::linear.out", lambda t: (t.tensor(1, side(t)), square(t), None), "one row")
    yield Case(
        "aten::bmm.out",
        lambda t: (
            t.tensor(4, side(t) // 2, side(t) // 2),
            t.tensor(4, side(t) // 2, side(t) // 2),
        ),
    )


def layers() -> Iterator[Case]:
    """Convolution, pooling, normalisation, resizing."""
    for note in ("", "channels-last"):

        def image(t: Inputs, last: bool = bool(note)) -> Tensor:
            return t.image_last if last else t.image

        yield Case("aten::convolution.out", lambda t, i=image: convolution(t, i(t), 3, 1), note)
        yield Case(
            "aten::convolution.out",
            lambda t, i=image: convolution(t, i(t), 3, t.image.shape[1]),
            f"depthwise {note}".strip(),
        )
        yield Case("aten::avg_pool2d.out", lambda t, i=image: (i(t), [2, 2], [2, 2]), note)
        yield Case("aten::_adaptive_avg_pool2d.out", lambda t, i=image: (i(t), [1, 1]), note)
        yield Case("aten::max_pool2d_with_indices.out", lambda t, i=image: (i(t), [2, 2]), note)
        yield Case(
            "aten::upsample_nearest2d.vec_out", lambda t, i=image: (i(t), None, [2.0, 2.0]), note
        )
        yield Case(
            "aten::upsample_bilinear2d.vec_out",
            lambda t, i=image: (i(t), None, False, [2.0, 2.0]),
            note,
        )
        yield Case(
            "aten::_native_batch_norm_legit_no_training.out",
            lambda t, i=image: (i(t), *four(t), 0.1, 1e-5),
            note,
        )
        yield Case(
            "aten::_native_batch_norm_legit.no_stats_out",
            lambda t, i=image: (i(t), *four(t)[:2], True, 0.1, 1e-5),
            note,
        )
    yield Case("aten::native_group_norm.out", group_norm)
    yield Case("aten::native_layer_norm.out", lambda t: layer_norm(t, t.x))
    yield Case("aten::native_layer_norm.out", lambda t: layer_norm(t, t.heads), "short rows")
    yield Case("rushlight::rms_norm.out", lambda t: (t.x, [t.cols], t.tensor(t.cols), 1e-5))
    yield Case("rushlight::scaled_dot_product_attention.out", lambda t: attention(t, None))
    yield Case(
        "rushlight::scaled_dot_product_attention.out",
        lambda t: attention(t, t.tensor(t.heads.shape[1], t.heads.shape[1]) > 0.5),
        "mask",
    )
    yield Case("aten::glu.out", lambda t: (t.x, 1), "rows")
    yield Case("aten::glu.out", lambda t: (t.x, 0), "columns")
    for kind in ("reflection", "replication"):
        yield Case(f"aten::{kind}_pad1d.out", lambda t: (t.x, [1, 1]))
        yield Case(f"aten::{kind}_pad2d.out", lambda t: (t.image, [1, 1, 1, 1]))
        yield Case(f"aten::{kind}_pad3d.out", lambda t: (t.volume, [1] * 6))


def convolution(t: Inputs, x: Tensor, kernel: int, groups: int) -> tuple[Any, ...]:
    """As many channels out as in."""
    channels = x.shape[1]
    weight = t.tensor(channels, channels // groups, kernel, kernel)
    if not x.is_contiguous():
        weight = weight.contiguous(memory_format=torch.channels_last)
    padding = [kernel // 2] * 2
    return x, weight, t.tensor(channels), [1, 1], padding, [1, 1], False, [0, 0], groups


def attention(t: Inputs, mask: Tensor | None) -> tuple[Any, ...]:
    """Arguments of attention with as many keys as queries."""
    query, key, value = (t.heads.transpose(1, 2).contiguous() for _ in range(3))
    return query, key, value, mask


def four(t: Inputs) -> list[Tensor]:
    """Weight, bias, mean and variance of the image's channels."""
    return [t.tensor(t.image.shape[1]) for _ in range(4)]


def group_norm(t: Inputs) -> tuple[Any, ...]:
    """Two groups."""
    n, c, h, w = t.image.shape
    return t.image, *four(t)[:2], n, c, h * w, 2, 1e-5


def layer_norm(t: Inputs, x: Tensor) -> tuple[Any, ...]:
    """Over the last dimension."""
    size = x.shape[-1]
    return x, [size], t.tensor(size), t.tensor(size), 1e-5


def movement() -> Iterator[Case]:
    """Permutations, views, slices, joins."""
    yield Case("aten::permute_copy.out", lambda t: (t.heads, [0, 2, 1, 3]), "heads")
    yield Case("aten::permute_copy.out", lambda t: (t.heads, [0, 2, 3, 1]), "heads, transposed")
    yield Case("aten::permute_copy.out", lambda t: (t.image, [0, 2, 3, 1]), "to NHWC")
    yield Case("aten::permute_copy.out", lambda t: (t.volume, [4, 1, 3, 0, 2]), "5 dims")
    yield Case("aten::t_copy.out", lambda t: (t.x,))
    yield Case("aten::transpose_copy.int_out", lambda t: (t.heads, 1, 2))
    yield Case("aten::view_copy.out", lambda t: (t.x, [t.n]))
    for op in ("squeeze_copy.dim_out", "unsqueeze_copy.out"):
        yield Case(f"aten::{op}", lambda t: (t.heads, 0))
    yield Case("aten::squeeze_copy.dims_out", lambda t: (t.heads, [0]))
    yield Case("aten::as_strided_copy.out", lambda t: (t.x, [t.cols - 1, t.rows], [1, t.cols], 1))
    yield Case("aten::diagonal_copy.out", lambda t: (t.image, 0, 2, 3))
    yield Case(
        "aten::diagonal_scatter.out",
        lambda t: (t.image, t.image.diagonal(0, 2, 3).clone(), 0, 2, 3),
    )
    yield Case("aten::expand_copy.out", lambda t: (t.tensor(1, t.cols), [t.rows, t.cols]), "rows")
    yield Case(
        "aten::expand_copy.out", lambda t: (t.tensor(t.rows, 1), [t.rows, t.cols]), "columns"
    )
    for dim, note in ((1, "rows"), (0, "columns")):
        yield Case("aten::flip.out", lambda t, d=dim: (t.x, [d]), note)
        yield Case("aten::roll.out", lambda t, d=dim: (t.x, [3], [d]), note)
        yield Case("aten::cat.out", lambda t, d=dim: ([t.x, t.x], d), note)
        yield Case("aten::stack.out", lambda t, d=dim: ([t.x, t.x], d), note)
        yield Case("aten::narrow_copy.out", lambda t, d=dim: (t.x, d, 1, t.x.shape[d] - 2), note)
        yield Case("aten::select_copy.int_out", lambda t, d=dim: (t.image, 2 + d, 1), note)
        yield Case("aten::slice_copy.Tensor_out", lambda t, d=dim: (t.x, d, 1, 2**40, 2), note)
        yield Case(
            "aten::select_scatter.out", lambda t, d=dim: (t.x, t.x.select(d, 0).clone(), d, 1), note
        )
        yield Case(
            "aten::slice_scatter.out",
            lambda t, d=dim: (t.x, t.x.narrow(d, 0, 2).clone(), d, 0, 3, 2),
            note,
        )
        yield Case(
            "aten::split_copy.Tensor_out", lambda t, d=dim: (t.x, t.x.shape[d] // 4, d), note
        )
        yield Case(
            "aten::split_with_sizes_copy.out",
            lambda t, d=dim: (t.x, [1, t.x.shape[d] - 1], d),
            note,
        )
        yield Case("aten::repeat.out", lambda t, d=dim: (t.x, [2 - d, 1 + d]), note)
        yield Case("aten::unfold_copy.out", lambda t, d=dim: (t.x, d, 4, 4), note)
    yield Case("aten::cat.out", lambda t: ([t.image, t.image], 1), "channels")
    yield Case("aten::cat.out", lambda t: ([t.image_last, t.image_last], 1), "channels-last")
    yield Case("aten::cat.out", lambda t: ([t.x[:, :3].clone(), t.x], 1), "narrow first")
    yield Case("aten::unbind_copy.int_out", lambda t: (t.heads, 2))
    yield Case("aten::pixel_shuffle.out", lambda t: (t.image, 2))
    yield Case("aten::pixel_unshuffle.out", lambda t: (t.image, 2))
    yield Case("aten::constant_pad_nd.out", lambda t: (t.image, [1, 1, 1, 1], 0), "image")
    yield Case("aten::constant_pad_nd.out", lambda t: (t.x, [0, 0, 1, 1], 1), "rows")
    yield Case("aten::tril.out", lambda t: (t.x,))


def indexing() -> Iterator[Case]:
    """Operators that take index tensors."""
    yield Case("aten::embedding.out", lambda t: (t.x, t.index(t.rows, t.rows)))
    yield Case(
        "aten::embedding.out",
        lambda t: (t.tensor(t.n // 4, 4), t.index(t.n // 4, t.n // 4)),
        "4 wide",
    )
    for dim, note in ((1, "rows"), (0, "columns")):
        yield Case(
            "aten::index_select.out",
            lambda t, d=dim: (t.x, d, t.index(t.x.shape[d], t.x.shape[d])),
            note,
        )
        index = lambda t, d=dim: t.index(t.x.shape[d], t.rows, t.cols)  # noqa: E731
        yield Case("aten::gather.out", lambda t, d=dim, i=index: (t.x, d, i(t)), note)
        yield Case("aten::scatter.src_out", lambda t, d=dim, i=index: (t.x, d, i(t), t.x), note)
        yield Case("aten::scatter.value_out", lambda t, d=dim, i=index: (t.x, d, i(t), 1), note)
        yield Case("aten::scatter_add.out", lambda t, d=dim, i=index: (t.x, d, i(t), t.x), note)
    yield Case("aten::repeat_interleave.Tensor_out", lambda t: (t.index(3, t.n).to(t.dtype),))
    yield Case("aten::index.Tensor_out", lambda t: (t.x, places(t)), "elements")
    yield Case("aten::index.Tensor_out", lambda t: (t.x, [t.index(t.rows, t.rows)]), "whole rows")
    yield Case("aten::index.Tensor_out", lambda t: (t.x, [t.mask]), "mask")
    yield Case("aten::index_put.out", lambda t: (t.x, places(t), t.tensor(t.n), False), "elements")
    yield Case("aten::index_put.out", lambda t: (t.x, places(t), t.tensor(t.n), True), "add")
    yield Case("aten::index_put_", lambda t: (t.x, [None, t.index(t.cols, 2)], t.tensor(1)[0]))
    yield Case("aten::masked_select.out", lambda t: (t.x, t.mask))
    yield Case("aten::nonzero.out", lambda t: (t.x * t.mask,))


def places(t: Inputs) -> list[Tensor]:
    """n places of the matrix."""
    return [t.index(t.rows, t.n), t.index(t.cols, t.n)]


def all_cases() -> list[Case]:
    """Every case whose number of elements can be chosen."""
    families = (
        unary,
        special,
        binary,
        compare,
        creation,
        reductions,
        matrices,
        layers,
        movement,
        indexing,
    )
    return [case for family in families for case in family()]


def untimed(op: str) -> str | None:
    """Why an operator has no case, or None if it needs one."""
    return next((why for prefix, why in UNTIMED.items() if op.startswith(prefix)), None)
