"""The models that requests name: the one that is served, and it with each of its adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.llm.serve.errors import ApiError
from rushlight.llm.serve.fields import Fields
from rushlight.llm.serve.settings import Settings

if TYPE_CHECKING:
    from rushlight import _core


@dataclass(frozen=True)
class Asked:
    """The model of a request.

    Attributes:
        name: its id.
        adapter: what it is computed with; None for the model alone.
    """

    name: str
    adapter: _core.LlmAdapter | None


def read_model(fields: Fields, settings: Settings) -> Asked:
    """The model that a request is for.

    Args:
        fields: of the request.
        settings: have the model's id and those of its adapters.

    Raises:
        ApiError: there is no such model.
    """
    return find_model(fields.need("model", str), settings)


def find_model(name: str, settings: Settings) -> Asked:
    """The model with an id.

    Args:
        name: the id.
        settings: have the model's id and those of its adapters.

    Raises:
        ApiError: there is no such model.
    """
    names = [settings.name, *settings.adapters]
    if name not in names:
        raise ApiError(
            404,
            f"there is no model {name[:100]!r}: the server has {', '.join(map(repr, names))}",
            param="model",
            code="model_not_found",
        )
    return Asked(name, settings.adapters.get(name))
