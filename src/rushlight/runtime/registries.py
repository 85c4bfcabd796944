"""The operators and backends that programs can use in this process."""

from __future__ import annotations

from rushlight import _core
from rushlight.runtime.backends import absent_backends, installed_backends


class BackendRegistry:
    """The backends that are registered."""

    @property
    def registered_backend_names(self) -> list[str]:
        """Ids, in the order of registration."""
        return _core.backend_names()

    @property
    def installed_backend_names(self) -> list[str]:
        """Ids of the backends that installed packages offer (entry points of the group
        `rushlight.runtime_backends`); each is registered when a program first names it."""
        return installed_backends()

    def is_available(self, backend_name: str) -> bool:
        """Whether a backend works on this machine; one that an installed package offers is
        registered."""
        return not absent_backends([backend_name])


class OperatorRegistry:
    """The operators that have a kernel."""

    @property
    def operator_names(self) -> set[str]:
        """Names with overload: "aten::add.out"."""
        return _core.operator_names()


backend_registry = BackendRegistry()
operator_registry = OperatorRegistry()
