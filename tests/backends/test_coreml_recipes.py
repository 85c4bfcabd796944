"""Recipes of Core ML, by what coremltools' own conversion gives."""

from __future__ import annotations

from typing import Any

import coremltools as ct
import pytest
import torch
from torch import nn

from delegates import lowered_modules
from rushlight.backends.coreml.directory import read_files
from rushlight.backends.coreml.recipes import CoreMLRecipeType
from rushlight.errors import ExportError
from rushlight.exir.target_recipes import get_ios_recipe
from rushlight.recipes import ExportRecipe, export

MODEL = "model.mlpackage/Data/com.apple.CoreML/model.mlmodel"


def specs_of(recipe: CoreMLRecipeType, **options: Any) -> list[Any]:
    """The models of all delegates of a small network."""
    model, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval(), torch.randn(2, 4)
    session = export(model, [(x,)], ExportRecipe.get_recipe(recipe, **options))
    program = session.get_edge_program_manager().exported_program()
    files = [read_files(module.processed_bytes) for module in lowered_modules(program)]
    return [ct.proto.Model_pb2.Model.FromString(one[MODEL]) for one in files]


@pytest.mark.parametrize("recipe", list(CoreMLRecipeType))
def test_floats_have_the_precision_of_the_recipe(recipe: CoreMLRecipeType) -> None:
    (spec,) = specs_of(recipe, minimum_deployment_target=ct.target.iOS17)
    main = spec.mlProgram.functions["main"]
    operations = [one for b in main.block_specializations.values() for one in b.operations]
    (linear,) = (one for one in operations if one.type == "linear")
    dtype = linear.outputs[0].type.tensorType.dataType
    halves = recipe is CoreMLRecipeType.FP16
    wanted = ct.proto.MIL_pb2.FLOAT16 if halves else ct.proto.MIL_pb2.FLOAT32
    assert dtype == wanted
    assert spec.specificationVersion == ct.target.iOS17.value


def test_options_leave_operators_out_and_are_checked() -> None:
    assert specs_of(CoreMLRecipeType.FP16, skip_ops_for_coreml_delegation=["linear", "relu"]) == []
    with pytest.raises(ExportError, match="compute_unit"):
        ExportRecipe.get_recipe(CoreMLRecipeType.FP32, compute_unit="ALL")
    with pytest.warns(UserWarning, match="group_size"):
        ExportRecipe.get_recipe(CoreMLRecipeType.FP32, group_size=32)


def test_xnnpack_takes_what_core_ml_leaves() -> None:
    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.last(self.first(x) + y - x)

    recipe = get_ios_recipe(
        "ios-arm64-coreml-fp32", skip_ops_for_coreml_delegation=["aten.linear.default"]
    )
    inputs = (torch.randn(2, 4), torch.randn(2, 4))
    plan = export(Layers().eval(), [inputs], recipe).get_executorch_program().execution_plan[0]
    names = [delegate.id for delegate in plan.delegates]
    assert sorted(names) == ["CoreMLBackend", "XnnpackBackend", "XnnpackBackend"]
    with pytest.raises(ValueError, match="allowed are ios-arm64-coreml-fp16"):
        get_ios_recipe("ios-arm64-coreml-int8")
