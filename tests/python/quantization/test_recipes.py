"""Every recipe: the operators of its graph, the size of its file, and that the runtime agrees."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torchao.quantization import (
    FqnToConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8StaticActivationInt8WeightConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerGroup

import rushlight
from rushlight.errors import ExportError
from rushlight.quantization import RECIPES

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
# The operators that each recipe's Edge graph has of quantized_decomposed, without the getitems.
STATIC = {"quantize_per_tensor", "dequantize_per_tensor"}
DYNAMIC = {
    *("choose_qparams_per_token_asymmetric", "quantize_per_token", "dequantize_per_token"),
}
OPERATORS = {
    "int8": STATIC | {"dequantize_per_channel"},
    "int8-per-tensor": STATIC,
    "int8-dynamic": DYNAMIC | {"dequantize_per_channel"},
    "int4-dynamic": DYNAMIC | {"dequantize_per_channel_group"},
    "int8-weights": {"dequantize_per_channel"},
    "int4-weights": {"dequantize_per_channel_group"},
    "int16x8": STATIC | {"dequantize_per_channel"},
    "float16": set(),
    "bfloat16": set(),
}


class Net(nn.Module):
    def __init__(self, depth: int = 96) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(depth, 128), nn.Linear(128, 64, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(4, 7, 96)


def operators(model: torch.export.ExportedProgram | nn.Module, *args: torch.Tensor) -> set[str]:
    if isinstance(model, nn.Module):
        model = torch.export.export(model, args)
    graph = rushlight.to_edge(model).exported_program().graph
    targets = [str(n.target) for n in graph.nodes if n.op == "call_function"]
    return {t.split(".")[1] for t in targets if t.startswith("quantized_decomposed.")}


def test_every_recipe_is_tested() -> None:
    assert OPERATORS.keys() == RECIPES.keys()


@pytest.mark.parametrize("recipe", OPERATORS)
def test_recipe(recipe: str, net: Net, x: torch.Tensor) -> None:
    before = copy.deepcopy(net.state_dict())
    program = rushlight.quantize(net, (x,), calibrate=[(x,)], recipe=recipe)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert operators(program) == OPERATORS[recipe]
    converted = x.to(DTYPES.get(recipe, torch.float32))
    with torch.no_grad():
        exact, wanted = net(x), program.module()(converted).float()
    error = (wanted - exact).square().mean() / exact.square().mean()
    assert 0 < error < (2e-2 if recipe.startswith("int4") else 1e-3)
    module = rushlight.load(rushlight.export(program).buffer)
    assert torch.allclose(module(converted).float(), wanted, atol=2e-2 * float(exact.abs().max()))


@pytest.mark.parametrize("recipe", sorted(set(OPERATORS) - {"int4-dynamic", "int4-weights"}))
def test_file_is_smaller(recipe: str, net: Net, x: torch.Tensor) -> None:
    full = len(rushlight.export(net, (x,)).buffer)
    weights = sum(p.numel() for p in net.parameters())
    saved = weights * (2 if recipe in DTYPES else 3)
    size = len(rushlight.export(net, (x,), quantize=recipe, calibrate=[x]).buffer)
    assert size <= full - saved + 14_000  # scales, names, and more instructions


@pytest.mark.parametrize("is_captured", [False, True], ids=["module", "program"])
def test_dynamic_shapes_stay_dynamic(is_captured: bool, net: Net, x: torch.Tensor) -> None:
    shapes = ({1: torch.export.Dim("rows", min=1, max=64)},)
    data = [x[:, :3], x]
    if is_captured:
        captured = torch.export.export(net, (x,), dynamic_shapes=shapes)
        program = rushlight.quantize(captured, calibrate=data)
    else:
        program = rushlight.quantize(net, (x,), calibrate=data, dynamic_shapes=shapes)
    module = rushlight.load(rushlight.export(program).buffer)
    other = torch.randn(4, 33, 96)
    assert torch.allclose(module(other), program.module()(other), atol=0.05)


def test_methods_have_data_of_their_own(net: Net, x: torch.Tensor) -> None:
    methods = {
        "one": torch.export.export(net, (x,)),
        "two": torch.export.export(Net(32).eval(), (x[..., :32],)),
    }
    data = {"one": [x], "two": [x[..., :32]]}
    module = rushlight.load(rushlight.export(methods, quantize="int8", calibrate=data).buffer)
    assert torch.allclose(module.one(x), net(x), atol=0.1)
    assert module.two(x[..., :32]).shape == (4, 7, 64)
    with pytest.raises(ExportError, match="mapping of the methods' names, one, two"):
        rushlight.export(methods, quantize="int8", calibrate={"three": [x]})


def test_calibration_fits_four_bit_weights(x: torch.Tensor) -> None:
    torch.manual_seed(3)
    layer = nn.Sequential(nn.Linear(96, 64)).eval()
    mixed = x @ torch.randn(96, 96) / 10  # inputs that are correlated
    exact = layer(mixed)
    errors = []
    for data in (None, [mixed]):
        program = rushlight.quantize(layer, (mixed,), calibrate=data, recipe="int4-dynamic")
        with torch.no_grad():
            errors.append(float((program.module()(mixed) - exact).square().mean()))
    assert errors[1] < 0.7 * errors[0]


def test_groups_that_do_not_divide_get_eight_bits_and_a_warning(x: torch.Tensor) -> None:
    odd = nn.Sequential(Net(), nn.Linear(64, 100), nn.Linear(100, 8)).eval()
    for recipe in ("int4-dynamic", "int4-weights"):
        with pytest.warns(UserWarning, match="has 100 inputs, which groups of 32 do not divide"):
            program = rushlight.quantize(odd, (x,), recipe=recipe)
        assert {"dequantize_per_channel", "dequantize_per_channel_group"} <= operators(program)


def test_matrix_products_are_linear_layers(x: torch.Tensor) -> None:
    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(96, 64)), nn.Parameter(torch.randn(64, 32))
            self.bias = nn.Parameter(torch.randn(32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.addmm(self.bias, (x @ self.a).flatten(0, 1), self.b)

    model = Products().eval()
    program = rushlight.quantize(model, (x,), recipe="int8-dynamic")
    assert sum(n.target is torch.ops.aten.linear.default for n in program.graph.nodes) == 2
    exact = model(x)
    assert (program.module()(x) - exact).square().mean() < 1e-3 * exact.square().mean()


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (
            Int8DynamicActivationIntxWeightConfig(
                weight_dtype=torch.int4,
                weight_granularity=PerGroup(32),
            ),
            OPERATORS["int4-dynamic"],
        ),
        (
            IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
            OPERATORS["int4-weights"],
        ),
    ],
    ids=["dynamic", "weights"],
)
def test_weights_that_torchao_quantised_stay_integers(
    config: object, wanted: set[str], net: Net, x: torch.Tensor
) -> None:
    ready = copy.deepcopy(net)
    quantize_(ready, config)
    assert operators(ready, x) == wanted
    module = rushlight.load(rushlight.export(ready, (x,)).buffer)
    assert torch.allclose(module(x), ready(x), atol=1e-2)
    assert operators(rushlight.quantize(net, (x,), recipe=config)) == wanted


def test_blocks_that_no_operator_has_become_arithmetic(net: Net, x: torch.Tensor) -> None:
    """Symmetric rows and an int8 product: torchao's decomposition must not call our rule again, in
    an endless recursion."""
    config = Int8DynamicActivationInt8WeightConfig()
    ready = copy.deepcopy(net)
    quantize_(ready, config)
    module = rushlight.load(rushlight.export(net, (x,), quantize=config).buffer)
    assert torch.allclose(torch.as_tensor(module(x)), ready(x), atol=1e-4)


def test_a_configuration_by_names_says_itself_what_it_is_for(net: Net, x: torch.Tensor) -> None:
    linear = next(n for n, m in net.named_modules() if isinstance(m, nn.Linear))
    config = FqnToConfig({linear: IntxWeightOnlyConfig(weight_dtype=torch.int8)})
    program = rushlight.quantize(net, (x,), recipe=config)
    assert str(program.graph).count("torch.ops.torchao.dequantize_affine") == 1


def test_what_torchao_cannot_apply_is_refused_by_name(net: Net, x: torch.Tensor) -> None:
    linear = next(n for n, m in net.named_modules() if isinstance(m, nn.Linear))
    told = rf"torchao cannot apply Int8StaticActivationInt8WeightConfig to {linear}\.weight here"
    with pytest.raises(ExportError, match=rf"{told}: it lacks something.* choose a recipe"):
        rushlight.quantize(net, (x,), recipe=Int8StaticActivationInt8WeightConfig())


def test_recipes_say_what_they_are() -> None:
    assert all(recipe.meaning.endswith(".") for recipe in RECIPES.values())
    with pytest.raises(ExportError, match="there is no recipe 'int7'; there are int8, "):
        rushlight.quantize(nn.Linear(2, 2), (torch.ones(1, 2),), recipe="int7")
