"""Classes of calls, for XnnpackPartitioner(configs=[…]): only what they name is taken."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx import Node
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from rushlight.backends.xnnpack import XnnpackPartitioner, operator_configs
from rushlight.backends.xnnpack.operator_configs import CONFIGS, name_of
from rushlight.backends.xnnpack.operators import OPERATORS
from rushlight.backends.xnnpack.precision import ConfigPrecisionType
from rushlight.partition import PartitionerConfig, get_lowered_submodules
from rushlight.pipeline import EdgeProgramManager, to_edge_transform_and_lower
from rushlight.quantization import CpuQuantizer, get_symmetric_quantization_config

LinearConfig, AddConfig = CONFIGS["LinearConfig"], CONFIGS["AddConfig"]


class Net(nn.Module):
    """A layer with an activation, a sum, and two calls that no class of the tests names."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.linear(x)) + x
        return torch.sigmoid(y) * torch.relu(x)


X = torch.randn(2, 8)


def lowered(partitioner: XnnpackPartitioner, model: nn.Module | None = None) -> EdgeProgramManager:
    program = torch.export.export(model or Net().eval(), (X,))
    return to_edge_transform_and_lower(program, partitioner=partitioner)


def taken(edge: EdgeProgramManager) -> set[str]:
    """The names of the operators in delegates."""
    lowered_parts = get_lowered_submodules(edge.exported_program().graph_module)
    return {
        name_of(n.target)
        for _, module, _ in lowered_parts
        for n in module.original_module.graph.nodes
        if name_of(n.target)
    }


def test_only_the_calls_that_are_named_are_taken() -> None:
    moving = {"permute_copy.default", "t_copy.default", "view_copy.default"}
    layer = taken(lowered(XnnpackPartitioner(configs=[LinearConfig]))) - moving
    assert "relu.default" in layer and layer & {"linear.default", "addmm.default", "mm.default"}
    assert not layer & {"add.Tensor", "sigmoid.default", "mul.Tensor"}
    both = taken(lowered(XnnpackPartitioner(configs=[LinearConfig, AddConfig])))
    assert {"add.Tensor", *layer} <= both and "sigmoid.default" not in both
    assert taken(lowered(XnnpackPartitioner(configs=[AddConfig]))) == {"add.Tensor"}


def test_a_subclass_chooses_among_the_calls() -> None:
    class Second(CONFIGS["ReLUConfig"]):  # type: ignore[misc]
        def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
            return node.all_input_nodes[0].op == "placeholder"

    class Never(AddConfig):  # type: ignore[misc, valid-type]
        def supported_precision_types(self) -> list[ConfigPrecisionType]:
            return [ConfigPrecisionType.STATIC_QUANT]

    edge = lowered(XnnpackPartitioner(configs=[Second, Never]))
    assert taken(edge) == {"relu.default"}
    left = [name_of(n.target) for n in edge.exported_program().graph.nodes]
    assert left.count("relu.default") == 1 and left.count("add.Tensor") == 1


def test_quantised_calls_are_chosen_too() -> None:
    quantizer = CpuQuantizer(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(Net().eval(), (X,)).module(), quantizer)
    prepared(X)
    model = convert_pt2e(prepared)
    names = taken(lowered(XnnpackPartitioner(configs=[LinearConfig]), model))
    assert names & {"linear.default", "addmm.default", "mm.default"}
    assert not names & {"add.Tensor", "sigmoid.default", "mul.Tensor"}


def test_each_class_names_an_operator_that_xnnpack_takes() -> None:
    known = {name_of(target) for target in OPERATORS}
    unknown = {
        one.target_name
        for one in operator_configs.ALL_PARTITIONER_CONFIGS
        if not {one.target_name, *operator_configs.SPELLINGS.get(one.target_name, ())} & known
    }
    assert unknown == {
        "clone.default",  # a copy with a dim order, in graphs
        "dequantize_per_tensor.default",  # these are taken with the calls between them
        "quantize_per_tensor.default",
        "choose_qparams_affine.default",  # and lowering makes others of these
        "dequantize_affine.default",
        "quantize_affine.default",
    }
    with pytest.raises(AttributeError, match="OtherConfig"):
        _ = operator_configs.OtherConfig


class OnlyWide(CONFIGS["AddConfig"]):  # type: ignore[misc]  # a class of a table
    """Sums of 16 columns that XNNPACK computes, as a class of ExecuTorch's would say it."""

    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        common = self.check_common_constraints(node, ep)
        return common and node.meta["val"].shape[-1] == 16


class Sums(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + x, y + y, torch.sigmoid(y)


def test_a_class_asks_what_all_share() -> None:
    args = (torch.randn(2, 8), torch.randn(2, 16))
    program = torch.export.export(Sums(), args)
    edge = to_edge_transform_and_lower(program, partitioner=XnnpackPartitioner(configs=[OnlyWide]))
    [(_, module, _)] = get_lowered_submodules(edge.exported_program().graph_module)
    graph = module.original_module.graph
    assert [n.meta["val"].shape for n in graph.nodes if name_of(n.target)] == [(2, 16)]
    config = OnlyWide(fused_act=["relu.default"], force_non_static_weights_for_f32_linear=True)
    assert config.fused_acts == ["relu.default"]
    config.set_enabled_precision_types([ConfigPrecisionType.STATIC_QUANT])
    assert config.enabled_precision_types == [ConfigPrecisionType.STATIC_QUANT]
    captured = torch.export.export(Sums().double(), tuple(one.double() for one in args))
    [call, *_] = [n for n in captured.graph.nodes if name_of(n.target)]
    assert not OnlyWide().check_common_constraints(call, captured)


def test_a_class_is_one_of_a_partitioner_by_configurations() -> None:
    program = torch.export.export(Net().eval(), (X,))
    [call] = [n for n in program.graph.nodes if n.target == torch.ops.aten.add.Tensor]
    config = AddConfig()
    assert isinstance(config, PartitionerConfig) and config.get_original_aten() is None
    assert config.get_partition(call, program) == [call]
    assert call.meta["xnn_partitioner_config"] == ["AddConfig"]
    assert LinearConfig().get_original_aten() == torch.ops.aten.linear.default
