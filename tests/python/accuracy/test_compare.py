"""The loss by quantization in each layer, compared with eager PyTorch."""

from __future__ import annotations

import copy
import math
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.accuracy import LossReport, compare


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.bn = torch.nn.BatchNorm2d(8)
        self.mid = torch.nn.Linear(8 * 36, 16)
        self.last = torch.nn.Linear(16, 4)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        x = torch.nn.functional.gelu(self.mid(x.flatten(1)))
        return self.last(x)


@pytest.fixture(scope="module")
def net() -> Net:
    torch.manual_seed(1)
    net = Net()
    with torch.no_grad():
        net.train()(2 * torch.randn(64, 3, 8, 8) + 1)
    return net.eval()


def inputs(count: int, scale: float = 1.0) -> list[tuple[torch.Tensor]]:
    draw = torch.Generator().manual_seed(7)
    return [(scale * torch.randn(1, 3, 8, 8, generator=draw),) for _ in range(count)]


@pytest.fixture(scope="module")
def report(net) -> LossReport:
    return compare(net, rl.quantize(net, calibrate=inputs(20)), inputs(5))


def test_every_layer_is_compared_as_it_runs(report):
    layers = {layer.tap.module: layer.tap.op for layer in report.layers}
    assert layers["conv"] == "conv2d, batch_norm, relu"
    assert {"mid", "last"} <= layers.keys()
    assert report.not_compared == ()


def test_the_figures_are_those_of_eager(net, report):
    quantised = rl.quantize(net, calibrate=inputs(20)).module()
    exact = torch.cat([net(*x) for x in inputs(5)]).detach().double()
    value = torch.cat([quantised(*x) for x in inputs(5)]).detach().double()
    error = value - exact
    expected = 10 * math.log10(float(exact.square().sum() / error.square().sum()))
    [last] = [layer for layer in report.layers if layer.tap.module == "last"]
    assert last.sqnr == pytest.approx(expected, abs=0.6)  # one value may round the other way
    assert report.outputs == pytest.approx((last.sqnr,))
    assert last.max_value == pytest.approx(float(exact.abs().max()), rel=1e-5)
    assert sum(last.histogram) == exact.numel()


def test_every_layer_says_its_python_line(report):
    lines = [str(layer.tap.source) for layer in report.layers if layer.tap.op.startswith("gelu")]
    assert len(lines) == 1 and "test_compare.py" in lines[0] and "gelu" in lines[0]


def test_the_layer_that_loses_most_is_first(net):
    bad = copy.deepcopy(net)
    with torch.no_grad():
        bad.bn.weight[0], bad.bn.bias[0] = 0, -1  # after the activation this channel is 0, so that
        bad.mid.weight[:, :36] *= 1000  # these weights give nothing, and no row can hold the rest
    for recipe in ("int8", "int8-per-tensor"):
        quantised = rl.quantize(bad, calibrate=inputs(20), recipe=recipe)
        report = compare(bad, quantised, inputs(5))
        assert report.layers[0].tap.module == "mid"
        assert report.layers[0].blame > 0.5
        assert sum(layer.blame for layer in report.layers) == pytest.approx(1)


def test_values_beyond_what_calibration_saw_are_counted(net):
    quantised = rl.quantize(net, calibrate=inputs(20, 0.1))
    report = compare(net, quantised, inputs(5, 3.0))
    share = {layer.tap.module: layer.saturation for layer in report.layers}
    exact = [torch.relu(net.bn(net.conv(x))).detach().numpy() for (x,) in inputs(5, 3.0)]
    [conv] = [layer.tap.range for layer in report.layers if layer.tap.module == "conv"]
    assert conv is not None
    expected = np.mean(np.concatenate(exact) > conv.limits[1])
    assert expected > 0.1
    assert share["conv"] == pytest.approx(expected, abs=1e-3)


def test_an_exact_copy_has_no_noise(net):
    captured = torch.export.export(net, inputs(1)[0])
    report = compare(net, captured, inputs(2))
    assert all(layer.sqnr == math.inf and layer.blame == 0 for layer in report.layers)
    assert report.outputs == (math.inf,)


def test_a_model_of_several_inputs_and_sizes_that_vary():
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = torch.nn.Linear(8, 8)

        def forward(self, x, y):
            return {"sum": self.one(x) + y, "product": x * y}

    torch.manual_seed(0)
    model = Two().eval()
    data = [(torch.randn(n, 8), torch.randn(n, 8)) for n in (3, 1, 5)]
    batch = torch.export.Dim("batch", min=1, max=8)
    shapes = ({0: batch}, {0: batch})
    quantised = rl.quantize(model, calibrate=data, dynamic_shapes=shapes)
    report = compare(model, quantised, data, dynamic_shapes=shapes)
    assert len(report.outputs) == 2 and all(20 < sqnr < 80 for sqnr in report.outputs)


def test_the_table_and_the_page_hold_every_layer(report):
    class Cells(HTMLParser):
        rows = bars = 0

        def handle_starttag(self, tag, attrs):
            self.rows += tag == "tr"
            self.bars += tag == "svg"

    text, cells = report.html(), Cells()
    cells.feed(text)
    assert cells.rows == 1 + len(report.layers)
    assert cells.bars == sum(any(layer.histogram) for layer in report.layers)
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")
    assert "conv2d, batch_norm, relu" in str(report).replace("\n", "")


@pytest.mark.parametrize(
    ("data", "message"),
    [([], "no inputs to compare with"), ([(torch.randn(1, 3, 9, 9),)], "cannot be multiplied")],
)
def test_data_that_is_missing_or_not_the_models(net, data, message):
    quantised = rl.quantize(net, calibrate=inputs(3))
    with pytest.raises(rl.Error, match=message):
        compare(net, quantised, data)


def test_a_graph_of_another_model(net):
    other = torch.export.export(torch.nn.Softmax(1).eval(), inputs(1)[0])
    with pytest.raises(rl.ExportError, match="made from that model"):
        compare(net, other, inputs(1))
