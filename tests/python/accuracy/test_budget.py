"""`quantize_within`: quantises as much as a limit of a metric allows."""

from __future__ import annotations

import json
import threading
from importlib.util import find_spec

import pytest
import torch

import rushlight as rl
from rushlight.accuracy import quantize_within


class Net(torch.nn.Module):
    """A model whose layer `hard` has weights of very different sizes in each row."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.hard = torch.nn.Linear(32, 32)
        self.last = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.last(torch.tanh(self.hard(torch.relu(self.first(x)))))


@pytest.fixture(scope="module")
def net() -> Net:
    torch.manual_seed(3)
    net = Net().eval()
    with torch.no_grad():
        net.hard.weight[:, 0] *= 400
        net.first.weight[0] *= 1e-2
        net.first.bias[0] = 0
    return net


X = torch.randn(32, 16, generator=torch.Generator().manual_seed(5))
DATA = [(x,) for x in X.split(8)]


def closeness(net: torch.nn.Module):
    """Minus the mean distance from the float model's results."""
    with torch.no_grad():
        exact = [net(*x) for x in DATA]

    def metric(module: torch.nn.Module) -> float:
        errors = [(module(*x) - y).abs().mean() for x, y in zip(DATA, exact, strict=True)]
        return -float(torch.stack(errors).mean())

    return metric


def within(net: Net, max_drop: float, **options):
    options = {"recipes": ("int8",), **options}
    return quantize_within(net, DATA, closeness(net), max_drop, backend="portable", **options)


def test_a_wide_budget_quantises_all(net):
    result = within(net, 100.0)
    assert [layer.precision for layer in result.layers] == ["int8"] * 3
    assert result.bytes * 4 == result.float_bytes
    assert result.blocking == ()


@pytest.mark.filterwarnings("ignore:.*groups of 32 do not divide")
def test_weights_take_the_bytes_that_are_stored():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    data = [(torch.randn(4, 20),)]
    result = quantize_within(
        net.eval(), data, lambda module: 1.0, 0.0, recipes=("int4-dynamic",), backend="portable"
    )
    assert [layer.precision for layer in result.layers] == ["int4-dynamic"] * 2
    assert [layer.bytes for layer in result.layers] == [20 * 64, 64 * 8 // 2]


def test_a_narrow_budget_names_the_layer_that_blocks(net):
    alone = {layer.name: layer.drop for layer in within(net, 100.0).layers}
    assert max(alone, key=alone.__getitem__) == "hard"
    result = within(net, 0.8 * alone["hard"])
    assert [layer.name for layer in result.blocking] == ["hard"]
    assert f"{alone['hard']:.4g}" in result.blocking[0].blocked
    assert result.baseline - result.metric <= result.max_drop
    assert closeness(net)(result.program.module()) == pytest.approx(result.metric, abs=1e-7)
    assert {layer.precision for layer in result.layers} == {"int8", "float"}


def test_no_budget_leaves_all_in_float(net):
    result = within(net, 0.0)
    assert {layer.precision for layer in result.layers} == {"float"}
    assert result.metric == result.baseline and len(result.blocking) == 3


def test_the_program_runs(net):
    program = rl.export(within(net, 0.05).program)
    assert rl.load(program.buffer)(X[:8].numpy()).shape == (8, 4)


@pytest.mark.filterwarnings("ignore:.*groups of 32 do not divide")
@pytest.mark.parametrize("recipe", ["int8", pytest.param("int4-dynamic", marks=pytest.mark.full)])
def test_processes_give_the_same(net, recipe):
    one, two = (within(net, 0.02, recipes=(recipe,), workers=n) for n in (1, 2))
    assert [layer.precision for layer in one.layers] == [layer.precision for layer in two.layers]
    assert (one.metric, one.trials) == (two.metric, two.trials)


def test_a_search_goes_on_where_it_was_stopped(net, tmp_path):
    path = tmp_path / "trials"
    whole = within(net, 0.02, resume=path)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + whole.trials
    path.write_text(
        "\n".join(lines[:3]) + '\n{"mix": "cut'
    )  # as a process that was stopped left it
    lines: list[str] = []
    again = within(net, 0.02, resume=path, progress=lines.append)
    assert again.metric == whole.metric
    assert sum(int(line.split()[0]) for line in lines if "trials" in line) == whole.trials - 2
    lines.clear()
    within(net, 0.02, resume=path, progress=lines.append)
    assert not [line for line in lines if "trials" in line]


def test_trials_of_another_model_are_refused(net, tmp_path):
    path = tmp_path / "trials"
    path.write_text(json.dumps({"task": "another"}) + "\n")
    with pytest.raises(rl.ExportError, match="another model, data or choice of recipes"):
        within(net, 0.02, resume=path)


def test_what_was_found_is_a_program_and_prints_as_a_table(net, capsys):
    result = within(net, 0.02, recipes=("int8",))
    assert isinstance(result.program, torch.export.ExportedProgram)
    assert capsys.readouterr().out == ""  # the caller prints it, or not
    text = str(result)
    assert "precision of each layer" in text and "hard" in text and "allowed" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": []}, "data is empty"),
        ({"max_drop": -1.0}, "0 or more"),
        ({"metric": None}, "metric is NoneType: give a function"),
        ({"metric": lambda module: "good"}, "not a number"),
        ({"metric": lambda module: float("nan")}, "finite number"),
        ({"recipes": ("int5",)}, "no recipe 'int5'"),
        ({"data": [(torch.zeros(8, 3),)]}, "item 0|3"),
    ],
)
def test_what_cannot_be_searched_is_said(net, options, message):
    arguments = {"data": DATA, "metric": closeness(net), "max_drop": 0.1, "recipes": ("int8",)}
    arguments.update(options)
    with pytest.raises(rl.Error, match=message):
        rl.quantize_within(net, **arguments)


@pytest.mark.parametrize(
    ("function", "keyword", "advice"),
    [
        (rl.quantize, "data", r"with a recipe it is calibrate=; rushlight\.quantize_within\("),
        (rl.quantize, "metric", r"rushlight\.quantize_within\("),
        (rl.quantize, "max_drop", r"rushlight\.quantize_within\("),
        (rl.quantize, "recipes", r"rushlight\.quantize_within\("),
        (rl.quantize_within, "recipe", r"rushlight\.quantize takes one recipe"),
        (rl.quantize_within, "calibrate", "data= calibrates"),
        (rl.export, "methods", r"constant_methods=\{'name': value\}"),
    ],
)
def test_keywords_of_another_function_are_answered_with_what_to_write(function, keyword, advice):
    with pytest.raises(
        TypeError, match=rf"{function.__name__}\(\) takes no {keyword}=: .*{advice}"
    ):
        function(torch.nn.ReLU(), **{keyword: None})


def test_a_metric_that_cannot_leave_the_process_is_said(net):
    lock = threading.Lock()

    def metric(module: torch.nn.Module) -> float:
        with lock:
            return 1.0

    with pytest.raises(rl.ExportError, match="workers at 1"):
        quantize_within(net, DATA, metric, 0.1, recipes=("int8",), workers=2)


def test_a_model_without_layers():
    with pytest.raises(rl.ExportError, match="no linear layer or convolution"):
        quantize_within(torch.nn.ReLU(), DATA, lambda module: 1.0, 0.1)


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is an extra")
def test_a_ray_cluster_gives_the_same_where_ray_is_installed(net):
    one, two = within(net, 0.02), within(net, 0.02, ray=True)
    assert [layer.precision for layer in one.layers] == [layer.precision for layer in two.layers]
    assert (one.metric, one.trials) == (two.metric, two.trials)


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is there")
def test_a_cluster_without_ray_is_refused_where_ray_is_absent(net):
    with pytest.raises(rl.ExportError, match=r"rushlight\[ray\]"):
        within(net, 0.02, ray=True)
