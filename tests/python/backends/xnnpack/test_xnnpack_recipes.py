"""The recipes of XNNPACK: each delegates a whole model, and computes what eager does."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torchao.quantization.utils import compute_error

from rushlight.backends.xnnpack.recipes import XNNPACKRecipeProvider, XNNPackRecipeType
from rushlight.recipes import ExportRecipe, export, recipe_registry
from rushlight.schema.program import DelegateCall

GROUPED = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR


@pytest.mark.parametrize("kind", XNNPackRecipeType, ids=lambda kind: kind.name)
def test_a_recipe_delegates_the_whole_model(kind: XNNPackRecipeType) -> None:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
    inputs = [(torch.randn(9, 32),) for _ in range(4)]
    session = export(model, inputs, ExportRecipe.get_recipe(kind))
    plan = session.get_executorch_program().execution_plan[0]
    (call,) = plan.chains[0].instructions
    assert isinstance(call.instr_args, DelegateCall) and plan.delegates[0].id == "XnnpackBackend"
    result = session.run_method()[0]
    quantised = session.get_exported_program().module()(*inputs[0])
    torch.testing.assert_close(result, quantised, atol=0.02, rtol=0)
    assert compute_error(model(*inputs[0]), result) > (15 if "INT4" in kind.name else 25)


def test_the_provider_is_registered_and_checks_its_parameters() -> None:
    assert isinstance(recipe_registry._providers["xnnpack"], XNNPACKRecipeProvider)
    assert recipe_registry.get_supported_recipes("xnnpack") == list(XNNPackRecipeType)
    recipe = ExportRecipe.get_recipe(GROUPED, group_size=64)
    assert recipe.name == GROUPED.value and recipe.quantization_recipe is not None
    configs = recipe.quantization_recipe.ao_quantization_configs
    assert configs is not None and len(configs) == 1
    assert configs[0].ao_base_config.weight_granularity.group_size == 64
    for size, told in (("32", "an integer, got str: 32"), (True, "got bool"), (0, "positive, got")):
        with pytest.raises(ValueError, match=f"'group_size' must be.*{told}"):
            ExportRecipe.get_recipe(GROUPED, group_size=size)
    with pytest.warns(UserWarning, match="xnnpack_fp32 of XNNPACK ignores bits, group_size"):
        ExportRecipe.get_recipe(XNNPackRecipeType.FP32, group_size=32, bits=4)
