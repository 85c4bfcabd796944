"""cut_into_bands: the nodes of convolutions that are computed in bands of rows."""

from __future__ import annotations

import pytest
import torch
from expecttest import assert_expected_inline
from payload_text import payload, payload_text

from rushlight.backends.cpu.passes import bands

IMAGE = torch.ones(1, 2, 12, 3)
WIDER = {"one": torch.ones(8, 2, 1, 1), "two": torch.ones(2, 8, 3, 1)}


@pytest.fixture
def at_any_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images are cut, too, whatever it costs."""
    for name, value in {"_SMALL_BYTES": 0, "_SMALL_SHARE": 0, "_MAX_WORK": 1e6}.items():
        monkeypatch.setattr(bands, name, value)


def convolved(x: torch.Tensor, w: torch.Tensor, rows: int = 0, stride: int = 1) -> torch.Tensor:
    settings = [stride, 1], [rows, 0], [1, 1], False, [0, 0], 1
    return torch.ops.aten.convolution(x, w, None, *settings)


def wide(x: torch.Tensor, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """An image of more channels between two convolutions, of which the second reads three rows."""
    return convolved(convolved(x, one).relu(), two, rows=1)


def test_what_is_small_enough_stays_whole() -> None:
    assert_expected_inline(
        payload_text(payload(wide, IMAGE, **WIDER)),
        """\
v0: float[1, 2, 12, 3] strides [72, 36, 3, 1], input 0
v1: float[32] strides [1], constant 0
v2: float[1, 8, 12, 3] strides [288, 1, 24, 8], scratch at 0
v3: float[384] strides [1], constant 1
v4: float[1, 2, 12, 3] strides [72, 1, 6, 2], scratch at 1152
v5: float[2, 36] strides [1, 2], scratch at 1152
v6: float[2, 36] strides [36, 1], output 0
v2 = Convolution(kernel=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1,
    epilogue=Epilogue(clamped=True, high=inf)) of v0, v1, none
v4 = Convolution(kernel=[3, 1], stride=[1, 1], padding=[1, 0, 1, 0], dilation=[1, 1], groups=1)
    of v2, v3, none
v6 = Copy() of v5
scratch: 1472 bytes
""",
    )


@pytest.mark.usefixtures("at_any_cost")
def test_a_band_computes_the_rows_that_it_reads_and_shares_one_memory() -> None:
    """Rows at the edge of two bands are computed twice; only the outer bands are padded."""
    assert_expected_inline(
        payload_text(payload(wide, IMAGE, **WIDER)),
        """\
v0: float[1, 2, 5, 3] strides [72, 36, 3, 1], input 0
v1: float[32] strides [1], constant 0
v2: float[1, 8, 5, 3] strides [120, 1, 24, 8], scratch at 320
v3: float[384] strides [1], constant 1
v4: float[1, 2, 4, 3] strides [72, 1, 6, 2], scratch at 0
v5: float[1, 2, 6, 3] strides [72, 36, 3, 1], input 0 at 36
v6: float[1, 8, 6, 3] strides [144, 1, 24, 8], scratch at 320
v7: float[1, 2, 4, 3] strides [72, 1, 6, 2], scratch at 96
v8: float[1, 2, 5, 3] strides [72, 36, 3, 1], input 0 at 84
v9: float[1, 8, 5, 3] strides [120, 1, 24, 8], scratch at 320
v10: float[1, 2, 4, 3] strides [72, 1, 6, 2], scratch at 192
v11: float[2, 36] strides [1, 2], scratch at 0
v12: float[2, 36] strides [36, 1], output 0
v2 = Convolution(kernel=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1,
    epilogue=Epilogue(clamped=True, high=inf)) of v0, v1, none
v4 = Convolution(kernel=[3, 1], stride=[1, 1], padding=[1, 0, 0, 0], dilation=[1, 1], groups=1)
    of v2, v3, none
v6 = Convolution(kernel=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1,
    epilogue=Epilogue(clamped=True, high=inf)) of v5, v1, none
v7 = Convolution(kernel=[3, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1)
    of v6, v3, none
v9 = Convolution(kernel=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1,
    epilogue=Epilogue(clamped=True, high=inf)) of v8, v1, none
v10 = Convolution(kernel=[3, 1], stride=[1, 1], padding=[0, 0, 1, 0], dilation=[1, 1], groups=1)
    of v9, v3, none
v12 = Copy() of v11
scratch: 896 bytes
""",
    )


@pytest.mark.usefixtures("at_any_cost")
def test_a_stride_makes_a_band_read_more_rows() -> None:
    def model(x, one, two):  # type: ignore[no-untyped-def]
        return convolved(convolved(x, one), two, stride=2)

    image = torch.ones(1, 2, 17, 3)
    assert_expected_inline(
        payload_text(payload(model, image, **WIDER)),
        """\
v0: float[1, 2, 9, 3] strides [102, 51, 3, 1], input 0
v1: float[32] strides [1], constant 0
v2: float[1, 8, 9, 3] strides [216, 1, 24, 8], scratch at 192
v3: float[384] strides [1], constant 1
v4: float[1, 2, 4, 3] strides [48, 1, 6, 2], scratch at 0
v5: float[1, 2, 9, 3] strides [102, 51, 3, 1], input 0 at 96
v6: float[1, 8, 9, 3] strides [216, 1, 24, 8], scratch at 192
v7: float[1, 2, 4, 3] strides [48, 1, 6, 2], scratch at 96
v8: float[2, 24] strides [1, 2], scratch at 0
v9: float[2, 24] strides [24, 1], output 0
v2 = Convolution(kernel=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1)
    of v0, v1, none
v4 = Convolution(kernel=[3, 1], stride=[2, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1)
    of v2, v3, none
v6 = Convolution(kernel=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1)
    of v5, v1, none
v7 = Convolution(kernel=[3, 1], stride=[2, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1)
    of v6, v3, none
v9 = Copy() of v8
scratch: 1088 bytes
""",
    )


@pytest.mark.usefixtures("at_any_cost")
def test_an_image_that_others_read_stays_whole() -> None:
    def model(x, one, two):  # type: ignore[no-untyped-def]
        inner = convolved(x, one)
        return convolved(inner, two), inner.sin()

    assert_expected_inline(
        payload_text(payload(model, IMAGE, **WIDER)),
        """\
v0: float[1, 2, 12, 3] strides [72, 36, 3, 1], input 0
v1: float[32] strides [1], constant 0
v2: float[1, 8, 12, 3] strides [288, 1, 24, 8], scratch at 0
v3: float[384] strides [1], constant 1
v4: float[1, 2, 10, 3] strides [60, 1, 6, 2], scratch at 1152
v5: float[288] strides [1], scratch at 0
v6: float[288] strides [1], scratch at 1408
v7: float[2, 30] strides [1, 2], scratch at 1152
v8: float[2, 30] strides [30, 1], output 0
v9: float[8, 36] strides [1, 8], scratch at 1408
v10: float[8, 36] strides [36, 1], output 1
v2 = Convolution(kernel=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1)
    of v0, v1, none
v4 = Convolution(kernel=[3, 1], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1)
    of v2, v3, none
Elementwise()
    r0 = v5
    r0 = SIN(r0)
    v6 = r0
v8 = Copy() of v7
v10 = Copy() of v9
scratch: 2560 bytes
""",
    )
