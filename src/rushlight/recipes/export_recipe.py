"""`ExportRecipe`: everything that an export does, as data."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from torch.export import ExportedProgram

from rushlight.edge import ExecutorchBackendConfig
from rushlight.recipes.combine import agreed, combined_lowering, combined_quantization, joined
from rushlight.recipes.lowering_recipe import LoweringRecipe
from rushlight.recipes.quantization_recipe import QuantizationRecipe
from rushlight.recipes.recipe_type import RecipeType
from rushlight.recipes.registry import recipe_registry
from rushlight.recipes.stage_type import StageType


class Mode(str, Enum):
    """What an export is for; stages of your own may read it, the built-in ones do not."""

    DEBUG = "debug"
    RELEASE = "release"


@dataclass
class ExportRecipe:
    """How to export a model.

    Attributes:
        name: for messages, and for the names of combined recipes.
        quantization_recipe: how to quantise; default: not at all.
        aten_transform_passes: functions of a method's name and captured program that return a
            program; run after capture.
        lowering_recipe: how to lower; default: everything on the portable kernels.
        executorch_backend_config: options of the last stage.
        pipeline_stages: the stages to run, in order; default: all that the model needs.
        mode: release or debug.
        strict: read the model's code with Dynamo to capture it (`torch.export.export(strict=True)`)
            instead of running it.
        source_transform_in_place: let torchao change the given modules themselves, for models of
            which a copy does not fit in memory.
    """

    name: str | None = None
    quantization_recipe: QuantizationRecipe | None = None
    aten_transform_passes: list[Callable[[str, ExportedProgram], ExportedProgram]] | None = None
    lowering_recipe: LoweringRecipe | None = None
    executorch_backend_config: ExecutorchBackendConfig | None = None
    pipeline_stages: list[StageType] | None = None
    mode: Mode = Mode.RELEASE
    strict: bool = True
    source_transform_in_place: bool = field(default=False, kw_only=True)

    @classmethod
    def get_recipe(cls, recipe: RecipeType, **kwargs: Any) -> ExportRecipe:
        """A recipe that a backend provides.

        Args:
            recipe: which one; its class says for which backend.
            kwargs: what the recipe takes.

        Raises:
            ValueError: `recipe` is something else, its backend has no registered provider or does
                not have the recipe, or an argument is not valid.
        """
        if not isinstance(recipe, RecipeType):
            raise ValueError(
                f"Invalid recipe type: {recipe!r} is {type(recipe).__name__}; give a member of a "
                f"RecipeType, such as XNNPackRecipeType.FP32"
            )
        backend = recipe.get_backend_name()
        made = recipe_registry.create_recipe(recipe, backend, **kwargs)
        if made is None:
            supported = [one.value for one in recipe_registry.get_supported_recipes(backend)]
            raise ValueError(
                f"Recipe '{recipe.value}' not supported by '{backend}'. Supported: {supported}"
            )
        if not isinstance(made, ExportRecipe):
            raise TypeError(
                f"the provider of '{backend}' made {type(made).__name__} for "
                f"'{recipe.value}': create_recipe must return an ExportRecipe or None"
            )
        return made

    @classmethod
    def combine(cls, recipes: list[ExportRecipe], recipe_name: str | None = None) -> ExportRecipe:
        """One recipe for several backends, of which the first takes what it can, then the next.

        Args:
            recipes: in order of preference; a single one is returned itself.
            recipe_name: the result's name; default: their names, joined by "_".

        Raises:
            ValueError: there are none, or they contradict each other: names the field.
        """
        if not recipes:
            raise ValueError("recipes is empty: give at least one ExportRecipe")
        if len(recipes) == 1:
            return recipes[0]
        named = [(one.name or f"recipes[{i}]", one) for i, one in enumerate(recipes)]
        configs = (one.executorch_backend_config for one in recipes)
        stages = agreed(
            "pipeline_stages", ((n, list(one.pipeline_stages or ())) for n, one in named)
        )
        return cls(
            name=recipe_name or "_".join(one.name for one in recipes if one.name is not None),
            quantization_recipe=combined_quantization(
                [(n, part) for n, one in named if (part := one.quantization_recipe)]
            ),
            aten_transform_passes=joined(one.aten_transform_passes for one in recipes),
            lowering_recipe=combined_lowering(
                [(n, lowering) for n, one in named if (lowering := one.lowering_recipe)]
            ),
            executorch_backend_config=copy.deepcopy(next(filter(None, configs), None)),
            pipeline_stages=stages or None,
            mode=agreed("mode", ((n, one.mode) for n, one in named)),
            strict=agreed("strict", ((n, one.strict) for n, one in named)),
            source_transform_in_place=agreed(
                "source_transform_in_place",
                ((n, one.source_transform_in_place) for n, one in named),
            ),
        )
