"""Quantization by recipes: several quantizers, passes, training, torchao's configurations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule
from torchao.quantization import IntxWeightOnlyConfig
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.utils import compute_error

from rushlight.errors import ExportError
from rushlight.quantization import CpuQuantizer, dynamic_config, static_config
from rushlight.recipes import (
    AOQuantizationConfig,
    ExportRecipe,
    ExportSession,
    QuantizationRecipe,
    StageType,
    export,
)

UP_TO_CAPTURE = [StageType.SOURCE_TRANSFORM, StageType.QUANTIZE, StageType.TORCH_EXPORT]
INT8 = IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0))


class Net(nn.Module):
    """A convolution with a norm, a count of its calls, and a linear layer."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        y = torch.relu(self.norm(self.conv(x)))
        mean: Tensor = self.head(y.mean((2, 3)))
        return mean + 0 * self.calls


@pytest.fixture
def net() -> Net:
    return Net().eval()


def _inputs(count: int = 4, batch: int = 2) -> list[tuple[Tensor]]:
    return [(torch.randn(batch, 3, 6, 6),) for _ in range(count)]


def _captured(model: nn.Module, inputs: Any, recipe: QuantizationRecipe, **more: Any) -> Any:
    """The session after the capture of the quantised model."""
    whole = ExportRecipe(quantization_recipe=recipe, pipeline_stages=UP_TO_CAPTURE)
    return export(model, inputs, whole, **more)


def _calls(session: ExportSession) -> Counter[str]:
    return Counter(str(n.target) for n in session.get_exported_program().graph.nodes)


def _is_close(session: ExportSession, model: nn.Module, x: Tensor, least: float = 20) -> bool:
    with torch.no_grad():
        wanted = model(x)
        return bool(compute_error(wanted, session.get_exported_program().module()(x)) > least)


def test_two_quantizers_each_take_their_layers(net: Net) -> None:
    conv = CpuQuantizer().set_module_type(nn.Conv2d, static_config())
    linear = CpuQuantizer().set_module_type(nn.Linear, dynamic_config())
    before = {name: value.clone() for name, value in net.state_dict().items()}
    inputs = _inputs()
    session = _captured(net, inputs, QuantizationRecipe([conv, linear]))
    calls = _calls(session)
    assert any("per_token" in name for name in calls)
    assert any("quantize_per_tensor" in name for name in calls)
    # Calibration is not a use of the model: its state and weights are as they were.
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    state = session.get_exported_program().state_dict
    assert not any(value.any() for name, value in state.items() if "calls" in name)
    assert any("calls" in name for name in state)
    assert _is_close(session, net, inputs[0][0])


def test_calibration_takes_its_own_inputs_and_other_batches(net: Net) -> None:
    batches: list[int] = []

    def more() -> Any:
        for batch in (1, 3, 5):
            batches.append(batch)
            yield from _inputs(1, batch)

    recipe = QuantizationRecipe(
        [CpuQuantizer(static_config())], calibration_inputs_fn=more, dynamic_batch_size=True
    )
    session = _captured(net, _inputs(1), recipe)
    assert batches == [1, 3, 5] and _is_close(session, net, _inputs(1)[0][0])


def test_dynamic_sizes_stay_dynamic(net: Net) -> None:
    shapes = ({0: torch.export.Dim("batch", min=1, max=8)},)
    recipe = QuantizationRecipe([CpuQuantizer(static_config())])
    session = _captured(net, _inputs(3), recipe, dynamic_shapes=shapes)
    assert _is_close(session, net, _inputs(1, 7)[0][0])


def test_passes_run_between_the_parts_of_quantization(net: Net) -> None:
    seen: list[tuple[str, bool, bool]] = []

    def noting(name: str) -> Any:
        def note(module: GraphModule) -> GraphModule:
            has = [str(n.target) for n in module.graph.nodes]
            observed = any("activation_post_process" in one for one in has)
            seen.append((name, observed, any("quantize_per" in one for one in has)))
            return module

        return note

    names = ("pre_prepare", "post_prepare", "pre_convert", "post_convert")
    passes: dict[str, Any] = {f"{name}_passes": [noting(name)] for name in names}
    _captured(net, _inputs(1), QuantizationRecipe([CpuQuantizer(static_config())], **passes))
    assert seen == [
        ("pre_prepare", False, False),
        ("post_prepare", True, False),
        ("pre_convert", True, False),
        ("post_convert", False, True),
    ]

    def fails(module: GraphModule) -> GraphModule:
        raise KeyError("lost")

    recipe = QuantizationRecipe([CpuQuantizer(static_config())], pre_prepare_passes=[fails])
    with pytest.raises(RuntimeError, match="pre_prepare_passes: fails fails: KeyError: 'lost'"):
        _captured(net, _inputs(1), recipe)


@pytest.mark.full  # torchao searches the graph for norms for 10 s
def test_training_changes_a_copy(net: Net) -> None:
    weight = net.head.weight.detach().clone()
    trained: list[bool] = []

    def train(module: GraphModule) -> None:
        trained.append(any(one.requires_grad for one in module.parameters()))
        optimiser = torch.optim.SGD(module.parameters(), lr=0.01)
        for (x,) in _inputs(2, batch=4):
            optimiser.zero_grad()
            module(x).square().mean().backward()
            optimiser.step()

    quantizer = CpuQuantizer(static_config(is_qat=True))
    recipe = QuantizationRecipe([quantizer], is_qat=True, train_fn=train, dynamic_batch_size=True)
    session = _captured(net, _inputs(1), recipe)
    assert trained == [True] and not net.training
    assert torch.equal(net.head.weight, weight) and not net.calls.any()
    assert any("quantize_per" in name for name in _calls(session))
    with pytest.raises(ValueError, match="train_fn must be provided"):
        _captured(net, _inputs(1), QuantizationRecipe([quantizer], is_qat=True))


def test_configurations_of_torchao_change_a_copy_or_the_model() -> None:
    linear = nn.Linear(32, 8)
    model = nn.Sequential(linear, nn.ReLU(), nn.Linear(8, 4)).eval()
    x = torch.randn(3, 32)

    def is_first(module: nn.Module, name: str) -> bool:
        return name == "0"

    recipe = QuantizationRecipe(None, [AOQuantizationConfig(INT8, is_first)])
    session = _captured(model, [(x,)], recipe)
    assert type(linear.weight) is nn.Parameter and _is_close(session, model, x)
    assert sum("dequantize_affine" in name for name in _calls(session).elements()) == 1
    wanted = model(x).detach()
    in_place = ExportRecipe(
        quantization_recipe=recipe, pipeline_stages=UP_TO_CAPTURE, source_transform_in_place=True
    )
    export(model, [(x,)], in_place)
    assert 0 < (model(x) - wanted).abs().max() < 0.1
    two = QuantizationRecipe(None, [AOQuantizationConfig(INT8)] * 2)
    with pytest.raises(ValueError, match="has 2 entries, and only one"):
        _captured(model, [(x,)], two)
    groups = IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerGroup(5))
    bad = QuantizationRecipe(None, [AOQuantizationConfig(groups)])
    with pytest.raises(ValueError, match="forward: torchao cannot apply IntxWeightOnlyConfig"):
        _captured(nn.Sequential(nn.Linear(32, 8)), [(x,)], bad)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite_are_named(value: float) -> None:
    recipe = QuantizationRecipe([CpuQuantizer(static_config())])
    linear = nn.Linear(4, 4)
    bad = nn.Sequential(linear, nn.ReLU()).eval()
    with pytest.raises(ExportError, match="NaN or infinite"):
        _captured(bad, [(torch.full((2, 4), value),)], recipe)
    with torch.no_grad():
        linear.weight[0, 0] = value
    with pytest.raises(ExportError, match="NaN or infinite"):
        _captured(bad, [(torch.randn(2, 4),)], recipe)


def test_refused_quantizers_and_inputs(net: Net) -> None:
    recipe = QuantizationRecipe([CpuQuantizer(static_config())])
    with pytest.raises(ValueError, match="forward not found or empty"):
        _captured(net, [], recipe)
    with pytest.raises(ValueError, match="fails on item 1 of the inputs"):
        _captured(net, [*_inputs(1), (torch.randn(2, 5, 6, 6),)], recipe)
    quantizers: list[Any] = [CpuQuantizer(static_config()), object()]
    with pytest.raises(ValueError, match="object does not derive from torchao"):
        _captured(net, _inputs(1), QuantizationRecipe(quantizers))
