"""Bad inputs give an error or a warning that names the layer and says what to change."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e import HistogramObserver
from torchao.quantization.pt2e.quantizer import QuantizationConfig, QuantizationSpec

import rushlight
from rushlight.errors import Code, ExportError
from rushlight.quantization import CpuQuantizer, convert, prepare_qat, static_config


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
DATA = [(X,), (X.flip(0),)]


def refused(*args: Any, **kwargs: Any) -> ExportError:
    with pytest.raises(ExportError) as error:
        rushlight.quantize(*args, **kwargs)
    return error.value


# --- calibration data -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "there is none: pass calibrate="),
        ([], "the iterable is empty: pass calibrate="),
        (X, "calibrate is Tensor, not an iterable of inputs"),
        (["a"], "item 0 is str; give a tuple"),
        (
            [(X,), (X[:1],)],
            r"item 1, input args\[0\]: its shape is \[1, 3, 8, 8\], the model takes",
        ),
        ([(X.double(),)], r"item 0, input args\[0\]: it is torch.float64, .* convert it with .to"),
        ([(X, X)], r"item 0 has inputs \(tensor\[2, 3, 8, 8\], tensor\[2, 3, 8, 8\]\), the model"),
        ([{"y": X}], r"item 0 has inputs \(y=tensor"),
        ([(X.numpy(),)], r"input args\[0\]: it is ndarray, the model takes a tensor"),
        ([(X * float("nan"),)], r"input args\[0\]: it holds NaN; leave this item out"),
    ],
)
def test_data(data: Any, message: str, net: Net) -> None:
    error = refused(net, (X,), calibrate=data)
    assert error.code == Code.INVALID_ARGUMENT
    with pytest.raises(ExportError, match=message):
        raise error


def test_data_may_be_given_by_name_or_place(net: Net) -> None:
    programs = [rushlight.quantize(net, (X,), calibrate=[one]) for one in (X, (X,), {"x": X})]
    results = [program.module()(X) for program in programs]
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def test_a_generator_is_read_once(net: Net) -> None:
    inputs = iter(DATA)
    program = rushlight.quantize(net, calibrate=inputs)
    assert next(inputs, None) is None and program.module()(X).shape == (2, 8, 4, 4)


def test_progress_says_how_far_it_is(net: Net) -> None:
    lines: list[str] = []
    rushlight.quantize(net, calibrate=DATA, progress=lines.append)
    assert lines == ["capture", "quantise", "calibrate: 1 of 2", "calibrate: 2 of 2"]


# --- values without a scale -----------------------------------------------------------------------


def test_a_layer_that_computes_nan_is_named() -> None:
    class Logarithm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.last = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(torch.log(self.conv(x)))

    error = refused(Logarithm().eval(), calibrate=DATA)
    assert "item 0: aten.log" in str(error) and "test_bad_cases.py" in str(error)
    assert "has NaN or infinite values" in str(error)


@pytest.mark.parametrize("recipe", ["int8", "int8-dynamic", "int4-dynamic", "int8-weights"])
def test_a_weight_with_nan_is_named(recipe: str) -> None:
    model = nn.Sequential(nn.Linear(32, 8), nn.Linear(8, 4)).eval()
    model[0].weight.data[1, 2] = float("nan")
    x = torch.randn(2, 32)
    error = refused(model, (x,), calibrate=[x] if recipe == "int8" else None, recipe=recipe)
    assert "0.weight has NaN" in str(error)


@pytest.mark.parametrize("recipe", ["int8", "int8-per-tensor"])
def test_channels_of_zeros_and_tiny_weights_keep_their_biases(recipe: str, net: Net) -> None:
    with torch.no_grad():
        net.first.weight[2], net.first.bias[2] = 0, 0.7
        net.first.weight[3] *= 1e-8
        net.second.weight *= 1e-9
        net.second.bias.fill_(3.0)
    if recipe == "int8":
        with pytest.warns(UserWarning, match=r"first\.weight: 1 of 8 output channels are zero"):
            program = rushlight.quantize(net, calibrate=DATA, recipe=recipe)
    else:
        program = rushlight.quantize(net, calibrate=DATA, recipe=recipe)
    assert torch.allclose(program.module()(X), net(X), atol=0.05)
    module = rushlight.load(rushlight.export(program).buffer)
    assert torch.allclose(module(X), net(X), atol=0.05)


def test_small_folded_weights_are_not_zeros(net: Net) -> None:
    """With ExecuTorch's least scale, 2**-12, these weights give an output of zeros."""
    with torch.no_grad():
        net.first.weight *= 1e-3
        net.first.bias *= 1e-3
        net.second.weight *= 1e-3
        net.second.bias *= 1e-6
    program = rushlight.quantize(net, calibrate=DATA)
    exact, actual = net(X), program.module()(X)
    assert (actual - exact).square().mean() < 1e-2 * exact.square().mean()


def test_a_value_that_was_always_zero_is_named(net: Net) -> None:
    net.first.bias.data.fill_(-100.0)
    with pytest.warns(UserWarning, match=r"aten\.relu .* was zero for all calibration data"):
        program = rushlight.quantize(net, calibrate=DATA)
    actual = program.module()(X)
    assert torch.isfinite(actual).all() and torch.allclose(actual, net(X), atol=0.01)


# --- quantizers of others, training ---------------------------------------------------------------


def test_a_scale_of_zero_is_refused(net: Net) -> None:
    class Broken(HistogramObserver):  # type: ignore[misc]
        def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.tensor([0.0]), torch.tensor([0])

    config = static_config()
    weight = QuantizationSpec(
        torch.int8, Broken, -127, 127, torch.per_tensor_symmetric, is_dynamic=False
    )
    config = QuantizationConfig(config.input_activation, config.output_activation, weight, None)
    error = refused(net, calibrate=DATA, recipe=CpuQuantizer(config))
    assert "scale that is zero, infinite or NaN" in str(error) and "first.weight" in str(error)


def test_what_cannot_be_trained(net: Net) -> None:
    with pytest.raises(ExportError, match="'int8-dynamic' cannot be trained: choose one of int8"):
        prepare_qat(net, (X,), recipe="int8-dynamic")
    with pytest.raises(ExportError, match="convert takes what prepare_qat made, got Net"):
        convert(net)  # type: ignore[arg-type]
    with pytest.raises(ExportError, match=r"prepare_qat trains an nn\.Module, got Exported"):
        prepare_qat(torch.export.export(net, (X,)), (X,))  # type: ignore[arg-type]


def test_recipes_for_modules_refuse_programs(net: Net) -> None:
    error = refused(torch.export.export(net, (X,)), recipe="float16")
    assert "changes a model's modules" in str(error)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * mask


def test_data_with_positional_and_keyword_arguments_is_a_dict() -> None:
    net, x, mask = Masked().eval(), torch.randn(2, 4), torch.ones(2, 4)
    program = rushlight.quantize(net, (x,), {"mask": mask}, calibrate=[{"x": x, "mask": mask}])
    assert program.module()(x, mask=mask).shape == (2, 4)
    with pytest.raises(ExportError, match="or a dict that has all inputs by name"):
        rushlight.quantize(net, (x,), {"mask": mask}, calibrate=[((x,), {"mask": mask})])


def test_graphs_are_copied_without_torchs_warnings() -> None:
    prepared = prepare_qat(nn.Linear(4, 4), (torch.randn(2, 4),))
    prepared(torch.randn(2, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = convert(prepared)
        rushlight.quantize(program.module(), (torch.randn(2, 4),), recipe="float16")
