"""`RecipeType`: the base of the enumerations in which backends name their recipes."""

from __future__ import annotations

from abc import ABCMeta
from enum import Enum, EnumMeta


class RecipeTypeMeta(EnumMeta, ABCMeta):
    """The metaclass of `RecipeType`: that of enumerations, which may have abstract bases, too."""


class RecipeType(Enum, metaclass=RecipeTypeMeta):
    """The names of a backend's recipes; each backend derives an enumeration from it."""

    @classmethod
    def get_backend_name(cls) -> str:
        """The name under which the backend's provider is registered, such as "xnnpack"."""
        raise NotImplementedError(
            f"{cls.__name__} does not say which backend its recipes are for: define the class "
            f"method get_backend_name() in it"
        )
