"""`recipe_registry`: the providers of recipes, by the backends that they are for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rushlight.recipes.recipe_type import RecipeType


class Provider(Protocol):
    """What is registered; see `BackendRecipeProvider`."""

    @property
    def backend_name(self) -> str:
        """The name of the backend."""

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """The recipes that it makes."""

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> Any:
        """Make a recipe; None if it does not have it."""


class RecipeRegistry:
    """The providers of this process: every call gives the same object, `recipe_registry`."""

    _instance: RecipeRegistry | None = None
    _initialized = False

    _providers: dict[str, Provider]

    def __new__(cls) -> RecipeRegistry:
        """The one registry."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._providers = {}
            cls._initialized = True
        return cls._instance

    def register_backend_recipe_provider(self, provider: Provider) -> None:
        """Add a provider; it replaces one for the same backend."""
        self._providers[provider.backend_name] = provider

    def create_recipe(self, recipe_type: RecipeType, backend: str, **kwargs: Any) -> Any:
        """Make a recipe.

        Args:
            recipe_type: which one.
            backend: the name of its backend.
            kwargs: what the recipe takes, such as a group size.

        Returns:
            An `ExportRecipe`; None if the backend does not have it.

        Raises:
            ValueError: no provider is registered for the backend, or an argument is not valid.
        """
        return self._provider(backend).create_recipe(recipe_type, **kwargs)

    def get_supported_recipes(self, backend: str) -> Sequence[RecipeType]:
        """The recipes of a backend; ValueError if no provider is registered for it."""
        return self._provider(backend).get_supported_recipes()

    def list_backends(self) -> Sequence[str]:
        """The names of the backends that have a provider, in the order of registration."""
        return list(self._providers)

    def _provider(self, backend: str) -> Provider:
        if backend not in self._providers:
            known = ", ".join(self._providers) or "none"
            raise ValueError(
                f"Backend '{backend}' not available: registered are {known}. Import the recipes of "
                f"the backend (rushlight.backends.xnnpack.recipes registers XNNPACK's), or pass a "
                f"provider to recipe_registry.register_backend_recipe_provider"
            )
        return self._providers[backend]


recipe_registry = RecipeRegistry()
"""The registry of this process."""
