"""Passes by name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from rushlight.errors import Code, ExportError


class PassRegistry:
    """Passes, or lists of passes, that a process knows by name.

    Attributes:
        registry: the lists.
    """

    registry: ClassVar[dict[str, list[Any]]] = {}

    @classmethod
    def register(cls, pass_name: str | None = None) -> Callable[[Any], Any]:
        """A decorator that registers a pass, by its own name in snake case unless one is given."""

        def registered(one: Any) -> Any:
            own = re.sub(r"(?<!^)(?=[A-Z])", "_", getattr(one, "__name__", type(one).__name__))
            cls.register_list(pass_name or own.lower(), [one])
            return one

        return registered

    @classmethod
    def register_list(cls, pass_name: str, pass_list: list[Any]) -> None:
        """Register passes under one name; warns, and keeps the first, if the name is taken."""
        if pass_name in cls.registry:
            warnings.warn(
                f"pass {pass_name!r} is registered already: the first is kept", stacklevel=2
            )
            return
        cls.registry[pass_name] = pass_list

    @classmethod
    def get(cls, key: str) -> list[Any]:
        """The passes of a name; ExportError if there are none."""
        if key not in cls.registry:
            known = ", ".join(sorted(cls.registry)) or "none"
            raise ExportError(
                f"no pass is registered as {key!r}; registered are: {known}", code=Code.NOT_FOUND
            )
        return cls.registry[key]
