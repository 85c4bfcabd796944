"""`BackendRecipeProvider`: the base of what a backend registers to provide recipes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from rushlight.recipes.export_recipe import ExportRecipe
from rushlight.recipes.recipe_type import RecipeType


class BackendRecipeProvider(ABC):
    """Makes the recipes of one backend."""

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """The name of the backend, as its recipes' `get_backend_name` gives it."""

    @abstractmethod
    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """The recipes that it makes."""

    @abstractmethod
    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """Make a recipe.

        Args:
            recipe_type: which one.
            kwargs: what the recipe takes.

        Returns:
            The recipe; None if the backend does not have it.
        """

    def supports_recipe(self, recipe_type: RecipeType) -> bool:
        """Whether it makes a recipe."""
        return recipe_type in self.get_supported_recipes()
