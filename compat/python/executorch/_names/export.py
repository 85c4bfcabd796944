"""`executorch.export`: recipes."""

from __future__ import annotations

_RECIPES = "rushlight.recipes"


def _same(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, _RECIPES)


MODULES: dict[str, dict[str, str]] = {
    "export": _same(
        "AOQuantizationConfig",
        "BackendRecipeProvider",
        "ExportRecipe",
        "ExportSession",
        "LoweringRecipe",
        "QuantizationRecipe",
        "RecipeType",
        "StageType",
        "export",
        "recipe_registry",
    ),
    "export.export": _same("ExportSession", "export"),
    "export.recipe": _same(
        "AOQuantizationConfig",
        "ExportRecipe",
        "LoweringRecipe",
        "Mode",
        "QuantizationRecipe",
        "RecipeType",
        "RecipeTypeMeta",
    ),
    "export.recipe_provider": _same("BackendRecipeProvider"),
    "export.recipe_registry": _same("RecipeRegistry", "recipe_registry"),
    "export.target_recipes": {"get_ios_recipe": "rushlight.exir.target_recipes"},
    "export.types": _same("StageType"),
    "export.utils": dict.fromkeys(
        (
            "is_fbcode",
            "is_supported_platform_for_coreml_lowering",
            "is_supported_platform_for_qnn_lowering",
        ),
        "rushlight.exir.target_recipes",
    ),
}

# Ours as a whole, so that what its stages call can be patched.
WHOLE: dict[str, str] = {"export.stages": "rushlight.recipes.stages"}

ABSENT: dict[str, str] = {
    "export.target_recipes.get_android_recipe": (
        "it is for Qualcomm's processors, for which there is no backend: "
        "ExportRecipe.get_recipe(XNNPackRecipeType.FP32) is for the CPUs of Android's devices"
    ),
}
