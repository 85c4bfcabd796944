"""Complex numbers, Fourier transforms, resizing, sampling, quantization: from a model to a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch.nn import functional as F

import rushlight

quantized = torch.ops.quantized_decomposed
WINDOW = torch.hann_window(16)
SIGNAL = torch.randn(2, 64, generator=torch.Generator().manual_seed(0))
IMAGE = torch.randn(1, 3, 8, 9, generator=torch.Generator().manual_seed(1))
PHOTO = (IMAGE * 50 + 128).clamp(0, 255).to(torch.uint8)
PAIRS = torch.complex(SIGNAL, SIGNAL.flip(1))


class Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def spectrum(x: torch.Tensor) -> torch.Tensor:
    return torch.stft(x, 16, 4, window=WINDOW, return_complex=True)


def dynamic(x: torch.Tensor) -> Any:
    scale, zero = quantized.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
    there = quantized.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
    return quantized.dequantize_per_tensor.tensor(there, scale, zero, -128, 127, torch.int8)


def tokens(x: torch.Tensor) -> Any:
    scale, zero = quantized.choose_qparams_per_token_asymmetric(x, torch.int8)
    there = quantized.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
    return quantized.dequantize_per_token(there, scale, zero, -128, 127, torch.int8, torch.float32)


def resize(mode: str, **how: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.interpolate(x, mode=mode, **how)


def sample(mode: str) -> Callable[[torch.Tensor], torch.Tensor]:
    turn = torch.tensor([[[0.8, -0.3, 0.1], [0.3, 0.9, -0.2]]])
    return lambda x: F.grid_sample(
        x, F.affine_grid(turn, [1, 3, 6, 5], align_corners=False), mode, align_corners=False
    )


PROGRAMS: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "rfft": (torch.fft.rfft, SIGNAL),
    "magnitude": (lambda x: spectrum(x).abs(), SIGNAL),
    "phase": (lambda x: torch.angle(torch.fft.rfft(x)), SIGNAL),
    "stft and back": (lambda x: torch.istft(spectrum(x), 16, 4, window=WINDOW), SIGNAL),
    "two dimensions": (lambda x: torch.fft.irfft2(torch.fft.rfft2(x) * 2), SIGNAL),
    "padded": (lambda x: torch.fft.irfft(torch.fft.rfft(x, n=70), n=50), SIGNAL),
    "hfft": (lambda x: torch.fft.fftshift(torch.fft.hfft(x)), SIGNAL),
    "conjugate": (lambda x: torch.fft.ifft(x).conj().imag, PAIRS),
    "imaginary factor": (lambda x: x * 1j - x.conj(), PAIRS),
    "moved": (lambda x: torch.cat([x[:, 3:5].T.flatten(), x[0]]).flip(0), PAIRS),
    "polar": (lambda x: torch.view_as_real(torch.polar(x.abs(), x) / (x + 9)), SIGNAL),
    "from real": (lambda x: x.to(torch.complex64) + 1, SIGNAL),
    "nearest-exact": (resize("nearest-exact", scale_factor=1.7), IMAGE),
    "bilinear": (resize("bilinear", size=(5, 13), antialias=True), IMAGE),
    "bicubic": (resize("bicubic", scale_factor=2), IMAGE),
    "bicubic of bytes": (resize("bicubic", size=(20, 4), antialias=True), PHOTO),
    "linear": (resize("linear", scale_factor=2.5), IMAGE[0]),
    "trilinear": (resize("trilinear", size=(5, 4, 11)), IMAGE[None]),
    "bilinear sample": (sample("bilinear"), IMAGE),
    "bicubic sample": (sample("bicubic"), IMAGE),
    "quantized at run time": (dynamic, SIGNAL),
    "quantized tokens": (tokens, SIGNAL),
    "converted": (lambda x: quantized.convert_element_type.no_fuse(x, torch.int32), SIGNAL),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_eager(name: str) -> None:
    function, x = PROGRAMS[name]
    program = rushlight.export(Module(function).eval(), (x,))
    got = rushlight.load(program.buffer).forward(x)
    torch.testing.assert_close(torch.as_tensor(got), function(x).resolve_conj().resolve_neg())


def test_complex_numbers_from_numpy() -> None:
    program = rushlight.export(Module(lambda x: x * x).eval(), (PAIRS,))
    x = PAIRS.numpy()
    got = rushlight.load(program.buffer).forward(x)
    assert np.asarray(got).dtype == np.complex64
    np.testing.assert_allclose(np.asarray(got), x * x, rtol=1e-5, atol=1e-5)


def test_complex128_is_refused() -> None:
    with pytest.raises(rushlight.ExportError, match=r"has dtype torch\.complex128"):
        rushlight.export(Module(torch.fft.rfft).eval(), (SIGNAL.double(),))


@pytest.mark.parametrize("mode", ["nearest", "bicubic"])
def test_sizes_may_vary(mode: str) -> None:
    function = resize(mode, scale_factor=1.5)
    height = torch.export.Dim("height", min=4, max=40)
    model = Module(function)
    program = rushlight.export(model.eval(), (IMAGE,), dynamic_shapes=({2: height},))
    loaded = rushlight.load(program.buffer)
    for rows in (4, 9, 31):
        x = IMAGE[:, :, :1].repeat(1, 1, rows, 1)
        got = torch.as_tensor(loaded.forward(x))
        torch.testing.assert_close(got, function(x), rtol=1e-4, atol=1e-4)
