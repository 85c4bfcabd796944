"""split_batch_norms and fuse_norms: batch norms written out, norms that are written out fused."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after

from rushlight.backends.cpu.patterns.batch_norm import split_batch_norms
from rushlight.backends.cpu.patterns.norms import fuse_norms

X = torch.ones(2, 3)
W = torch.tensor([1.0, 2.0, 3.0])


def test_a_batch_norm_is_a_product_and_a_sum() -> None:
    def model(x, gain, shift, mean, var):  # type: ignore[no-untyped-def]
        norm = torch.ops.aten._native_batch_norm_legit_no_training.default
        return norm(x, gain, shift, mean, var, 0.1, 0.0)[0].relu()

    numbers = {"gain": 2.0, "shift": 3.0, "mean": 0.5, "var": 4.0}
    constants = {name: torch.tensor([value]) for name, value in numbers.items()}
    assert_expected_inline(
        after(split_batch_norms, model, torch.ones(1, 1, 2, 2), **constants),
        """\
c0: float32[1, 1, 1] = [[[2.5]]]
c1: float32[1, 1, 1] = [[[1]]]
x: float32[1, 1, 2, 2]
%1: float32[1, 1, 2, 2] = mul.Tensor(x, c1)
%2: float32[1, 1, 2, 2] = add.Tensor(%1, c0)
%3: float32[1, 1, 2, 2] = relu(%2)
return [%3]
""",
    )


def test_the_root_of_a_mean_square_becomes_rms_norm() -> None:
    def model(x, w):  # type: ignore[no-untyped-def]
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 0.125) * w

    assert_expected_inline(
        after(fuse_norms, model, X, w=W),
        """\
c0: float32[] = 0.125
x: float32[2, 3]
w: float32[3] = [1, 2, 3]
%1: float32[2, 3] = rms_norm(x, [3], w, 0.125)
return [%1]
""",
    )


def test_a_centred_one_becomes_layer_norm() -> None:
    def model(x, w, b):  # type: ignore[no-untyped-def]
        c = x - x.mean(-1, keepdim=True)
        return c / torch.sqrt((c * c).mean(-1, keepdim=True) + 0.125) * w + b

    assert_expected_inline(
        after(fuse_norms, model, X, w=W, b=W.neg()),
        """\
c0: float32[] = 0.125
x: float32[2, 3]
w: float32[3] = [1, 2, 3]
b: float32[3] = [-1, -2, -3]
%1: (float32[2, 3], NoneType, NoneType) = native_layer_norm(x, [3], w, b, 0.125)
%2: float32[2, 3] = getitem(%1, 0)
return [%2]
""",
    )


def test_the_mean_of_something_else_is_no_norm() -> None:
    def model(x, y):  # type: ignore[no-untyped-def]
        return x * torch.rsqrt((y * y).mean(-1, keepdim=True) + 0.125)

    assert_expected_inline(
        after(fuse_norms, model, X, X),
        """\
c0: float32[] = 0.125
x: float32[2, 3]
y: float32[2, 3]
%1: float32[2, 3] = mul.Tensor(y, y)
%2: float32[2, 1] = mean.dim(%1, [-1], True)
%3: float32[2, 1] = add.Tensor(%2, c0)
%4: float32[2, 1] = rsqrt(%3)
%5: float32[2, 3] = mul.Tensor(x, %4)
return [%5]
""",
    )
