"""What is said where a name has no counterpart, or where both packages are installed."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from types import ModuleType
from typing import Any

OURS, REAL = "rushlight-executorch", "executorch"


def refuse_beside_real() -> None:
    """Raise ImportError if the distribution of real ExecuTorch is installed, too."""
    try:
        version = metadata.version(REAL)
    except metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"two distributions provide the package 'executorch': {OURS}, which is Rushlight's, and "
        f"{REAL} {version}. Files of both would be mixed: keep one of them. "
        f"For Rushlight's: pip uninstall {REAL}; for the other: pip uninstall {OURS} {REAL}, then "
        f"pip install {REAL}=={version}",
        name="executorch",
    )


def absent(module: str, use: str = "docs/compat.md lists what there is") -> Callable[[str], Any]:
    """The `__getattr__` of a module, for names that it has not.

    It raises ImportError in `from module import name`, whose text would else be Python's own, and
    AttributeError everywhere else, as `hasattr` expects it.

    Args:
        module: the module's name.
        use: what to use in place of such a name.
    """

    def get(name: str) -> Any:
        text = f"Rushlight has no {module}.{name}: {use}"
        asks = sys._getframe(1)
        if asks.f_code.co_code[asks.f_lasti] == dis.opmap["IMPORT_FROM"]:
            raise ImportError(text, name=module)
        raise AttributeError(text, name=name)

    return get


class NoSuchModule:
    """The last finder: says of a module below `executorch` that it is not here."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise ModuleNotFoundError for modules below `executorch`; no other finder has them."""
        if name.startswith("executorch."):
            raise ModuleNotFoundError(
                f"Rushlight has no module {name}: docs/compat.md lists what there is",
                name=name,
            )
