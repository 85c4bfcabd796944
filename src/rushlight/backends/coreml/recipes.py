"""The recipes of Core ML; importing this module registers them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rushlight.backends.coreml.partitioner import CoreMLPartitioner
from rushlight.backends.coreml.preprocess import CoreMLBackend
from rushlight.backends.coreml.tools import coremltools as ct
from rushlight.edge import EdgeCompileConfig
from rushlight.recipes import (
    BackendRecipeProvider,
    ExportRecipe,
    LoweringRecipe,
    RecipeType,
    recipe_registry,
)

COREML_BACKEND = "coreml"
_OPTIONS = ("compute_unit", "minimum_deployment_target", "skip_ops_for_coreml_delegation")


class CoreMLRecipeType(RecipeType):
    """The recipes of Core ML."""

    FP32 = "coreml_fp32"
    FP16 = "coreml_fp16"

    @classmethod
    def get_backend_name(cls) -> str:
        """The name of the backend."""
        return COREML_BACKEND


_PRECISIONS: dict[RecipeType, ct.precision] = {
    CoreMLRecipeType.FP32: ct.precision.FLOAT32,
    CoreMLRecipeType.FP16: ct.precision.FLOAT16,
}


class CoreMLRecipeProvider(BackendRecipeProvider):
    """Makes the recipes of `CoreMLRecipeType`."""

    @property
    def backend_name(self) -> str:
        """The name of the backend."""
        return COREML_BACKEND

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All members of `CoreMLRecipeType`."""
        return list(CoreMLRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """Make a recipe.

        Args:
            recipe_type: the precision of floats on the device.
            kwargs: `compute_unit` and `minimum_deployment_target`, as
                `CoreMLBackend.generate_compile_specs` takes them, and
                `skip_ops_for_coreml_delegation` of `CoreMLPartitioner`; a warning names all
                others, which are ignored, since combined recipes give each backend the same.

        Raises:
            ExportError: for a value of another type.
        """
        if recipe_type not in _PRECISIONS:
            return None
        ignored = sorted(kwargs.keys() - set(_OPTIONS))
        if ignored:
            warnings.warn(
                f"the recipe {recipe_type.value} of Core ML ignores {', '.join(ignored)}: it takes "
                f"{', '.join(_OPTIONS)}",
                UserWarning,
                stacklevel=2,
            )
        specs = CoreMLBackend.generate_compile_specs(
            compute_precision=_PRECISIONS[recipe_type],
            **{name: kwargs[name] for name in _OPTIONS[:2] if name in kwargs},
        )
        partitioner = CoreMLPartitioner(
            skip_ops_for_coreml_delegation=kwargs.get(_OPTIONS[2]) or (), compile_specs=specs
        )
        return ExportRecipe(
            name=recipe_type.value,
            lowering_recipe=LoweringRecipe(
                partitioners=[partitioner], edge_compile_config=EdgeCompileConfig()
            ),
        )


recipe_registry.register_backend_recipe_provider(CoreMLRecipeProvider())
