"""Recipes: exports described by data, and run stage by stage, under ExecuTorch's names.

    session = export(model, [(x,)], ExportRecipe.get_recipe(XNNPackRecipeType.FP32))
    session.save_to_pte("model.pte")

`rushlight.export` is the shorter way to a checked program. A session is for several methods, for
more than one quantizer, and for what lies between the stages.
"""

import rushlight.quantization  # noqa: F401  # says what is missing if torchao is
from rushlight.recipes.export_recipe import ExportRecipe, Mode
from rushlight.recipes.lowering_recipe import LoweringRecipe
from rushlight.recipes.provider import BackendRecipeProvider
from rushlight.recipes.quantization_recipe import AOQuantizationConfig, QuantizationRecipe
from rushlight.recipes.recipe_type import RecipeType, RecipeTypeMeta
from rushlight.recipes.registry import RecipeRegistry, recipe_registry
from rushlight.recipes.session import ExportSession, export
from rushlight.recipes.stage import PipelineArtifact, Stage
from rushlight.recipes.stage_type import StageType

__all__ = [
    "AOQuantizationConfig",
    "BackendRecipeProvider",
    "ExportRecipe",
    "ExportSession",
    "LoweringRecipe",
    "Mode",
    "PipelineArtifact",
    "QuantizationRecipe",
    "RecipeRegistry",
    "RecipeType",
    "RecipeTypeMeta",
    "Stage",
    "StageType",
    "export",
    "recipe_registry",
]
