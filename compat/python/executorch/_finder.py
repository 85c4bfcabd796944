"""Makes the modules `executorch.*` of the tables in `executorch/_names/`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from executorch._names import ABSENT, MODULES, WHOLE

_ROOT = "executorch."


class NamesModule(ModuleType):
    """A module whose names are looked up in Rushlight when they are first used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = self.__name__.removeprefix(_ROOT)
        target = MODULES[path].get(name)
        if target is not None:
            value = _resolve(target, name)
        elif _is_known(f"{path}.{name}"):
            value = importlib.import_module(f"{self.__name__}.{name}")
        else:
            raise AttributeError(_advice(f"{path}.{name}"))
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        is_module = isinstance(value, NamesModule)
        if is_module and name in MODULES[self.__name__.removeprefix(_ROOT)]:
            return  # a name of the table comes before a module below of that name
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *MODULES[self.__name__.removeprefix(_ROOT)]})


def _resolve(target: str, name: str) -> Any:
    """The object of "module", in which it has the same name, or of "module:attribute"."""
    module, _, attribute = target.partition(":")
    value: Any = importlib.import_module(module)
    for part in (attribute or name).split("."):
        value = getattr(value, part)
    return value


def _is_known(path: str) -> bool:
    """Whether there is a module of this path, or one below it."""
    return path in MODULES or path in WHOLE


def _advice(asked: str) -> str:
    """What to use in place of a name that does not exist here."""
    parts = asked.split(".")
    above = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    module = next((path for path in above if path in MODULES), "")
    advised = next((path for path in above if path in ABSENT), "")
    if len(advised) > len(module):
        return f"executorch.{advised} does not exist on Rushlight: {ABSENT[advised]}"
    if not module:
        return (
            "this name of ExecuTorch does not exist on Rushlight: docs/compat.md lists those that "
            "do"
        )
    said = f"executorch.{above[above.index(module) - 1]} does not exist on Rushlight"
    if advised:
        said += f": {ABSENT[advised]}"
    if MODULES[module]:
        said += f"; executorch.{module} has: {', '.join(sorted(MODULES[module]))}"
    return said


class _NamesFinder(MetaPathFinder, Loader):
    """Finds the modules of the tables."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_ROOT) or not _is_known(name.removeprefix(_ROOT)):
            return None
        spec = ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return NamesModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__all__ = sorted(MODULES[module.__name__.removeprefix(_ROOT)])  # type: ignore[attr-defined]


class _WholeFinder(MetaPathFinder, Loader):
    """Finds the modules that are ours as a whole: under both names, the same object."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        whole = WHOLE.get(name.removeprefix(_ROOT)) if name.startswith(_ROOT) else None
        found = importlib.util.find_spec(whole) if whole is not None else None
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        # The origin is what `python -m` names the program by.
        return ModuleSpec(name, self, origin=found.origin, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        return None  # an empty one, which exec_module replaces

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(
            WHOLE[module.__name__.removeprefix(_ROOT)]
        )

    def get_code(self, name: str) -> CodeType | None:
        """What `python -m` runs."""
        found = importlib.util.find_spec(WHOLE[name.removeprefix(_ROOT)])
        loader: Any = found.loader if found is not None else None
        return loader.get_code(loader.name) if loader is not None else None


class _AbsentFinder(MetaPathFinder):
    """The last finder: says what to use in place of a module or name that does not exist here."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name.startswith(_ROOT):
            # Without `name=`: `from package import name` would replace the error by its own.
            raise ModuleNotFoundError(_advice(name.removeprefix(_ROOT)))


def install() -> None:
    """Puts the finders into sys.meta_path."""
    if not any(isinstance(finder, _NamesFinder) for finder in sys.meta_path):
        sys.meta_path[:0] = [_WholeFinder(), _NamesFinder()]
        sys.meta_path.append(_AbsentFinder())
