"""Timed calls of resizing, sampling, Fourier transforms, complex numbers and quantization, for
`kernels.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from cases.kernel_cases import Case, Inputs

QUANTIZED = "quantized_decomposed"
BYTES = (-128, 127, torch.int8)


def resized(x: torch.Tensor) -> list[int]:
    """Twice the spatial sizes of a [1, C, ...] tensor."""
    return [2 * size for size in x.shape[2:]]


def resizing() -> Iterator[Case]:
    """Twice the size, in as many dimensions as the operator's name says."""
    for dims, name in enumerate(("linear1d", "bilinear2d", "trilinear3d"), start=1):

        def make(t: Inputs, dims: int = dims) -> tuple[Any, ...]:
            x = {1: t.x[None], 2: t.image, 3: t.volume}[dims]
            return x, resized(x), False

        def nearest(t: Inputs, make: Any = make) -> tuple[Any, ...]:
            return make(t)[:2]  # type: ignore[no-any-return]

        yield Case(f"aten::upsample_{name}.out", make)
        yield Case(f"aten::upsample_nearest{dims}d.out", nearest)
        yield Case(f"aten::_upsample_nearest_exact{dims}d.out", nearest)
    for name in ("upsample_bicubic2d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa"):
        yield Case(f"aten::{name}.out", lambda t: (t.image, resized(t.image), False))
    yield Case(
        "aten::grid_sampler_2d.out",
        lambda t: (t.image, 2 * t.tensor(1, *t.image.shape[2:], 2) - 1, 0, 0, False),
    )
    yield Case(
        "aten::grid_sampler_3d.out",
        lambda t: (t.volume, 2 * t.tensor(1, *t.volume.shape[2:], 3) - 1, 0, 0, False),
    )


def complex_numbers() -> Iterator[Case]:
    """Fourier transforms of the rows of a matrix; complex tensors from and to pairs."""

    def pairs(t: Inputs) -> torch.Tensor:
        return torch.complex(t.x, t.x)

    yield Case("aten::_fft_r2c.out", lambda t: (t.x, [1], 0, True))
    yield Case("aten::_fft_c2c.out", lambda t: (pairs(t), [1], 0, True))
    yield Case(
        "aten::_fft_c2r.out",
        lambda t: (pairs(t)[:, : t.cols // 2 + 1].clone(), [1], 0, t.cols),
    )
    yield Case("aten::complex.out", lambda t: (t.x, t.x))
    yield Case("aten::_conj_physical.out", lambda t: (pairs(t),))
    yield Case("aten::view_as_real_copy.out", lambda t: (pairs(t),))
    yield Case("aten::view_as_complex_copy.out", lambda t: (t.tensor(t.n // 2, 2),))


def quantization() -> Iterator[Case]:
    """A tensor, its rows, groups and tokens to int8 and back."""

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.int64)

    def codes(t: Inputs) -> torch.Tensor:
        return (t.x * 100).to(torch.int8)

    def whole(kind: str) -> tuple[Any, ...]:
        if kind == "float":
            return 0.01, 3, *BYTES
        scale, zero = torch.tensor(0.01), torch.tensor(3)
        return (scale, zero, *BYTES) if kind == "Tensor" else (scale, zero, *bounds(), torch.int8)

    def bounds() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor(-128), torch.tensor(127)

    for kind, out in (("float", "out"), ("Tensor", "Tensor_out"), ("tensor2", "tensor2_out")):
        yield Case(f"{QUANTIZED}::quantize_per_tensor.{out}", lambda t, k=kind: (t.x, *whole(k)))
        yield Case(
            f"{QUANTIZED}::dequantize_per_tensor.{out}", lambda t, k=kind: (codes(t), *whole(k))
        )
    scales = (
        ("channel", lambda t: (torch.full((t.rows,), 0.01), zeros(t.rows), 0, *BYTES), ()),
        (
            "channel_group",
            lambda t: (torch.full((t.rows, 2), 0.01), zeros(t.rows, 2), *BYTES, t.cols // 2),
            (torch.float32,),
        ),
        (
            "token",
            lambda t: (torch.full((t.rows, 1), 0.01).double(), zeros(t.rows, 1), *BYTES),
            (torch.float32,),
        ),
    )
    for name, how, back in scales:
        yield Case(f"{QUANTIZED}::quantize_per_{name}.out", lambda t, h=how: (t.x, *h(t)))
        yield Case(
            f"{QUANTIZED}::dequantize_per_{name}.out",
            lambda t, h=how, b=back: (codes(t), *h(t), *b),
        )
    for name in ("choose_qparams", "choose_qparams_symmetric"):
        yield Case(f"{QUANTIZED}::{name}.Tensor_out", lambda t: (t.x, -128, 127, 1e-6, torch.int8))
    yield Case(f"{QUANTIZED}::choose_qparams_per_token_asymmetric.out", lambda t: (t.x, torch.int8))


def signal_cases() -> Iterator[Case]:
    """All of them."""
    for op in ("_h2d_copy", "_d2h_copy"):
        yield Case(f"et_copy::{op}.out", lambda t: (t.x,))
    yield from resizing()
    yield from complex_numbers()
    yield from quantization()
