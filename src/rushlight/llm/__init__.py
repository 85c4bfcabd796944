"""Language models: from a model to a file, and from a file to text.

    program = rushlight.llm.export(model, quantize="8da4w")
    program.save("model.pte")

Importing this package imports nothing else: a name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.llm.adapters.convert import adapter
    from rushlight.llm.description import Description
    from rushlight.llm.exporter.attention import attention
    from rushlight.llm.exporter.export import export
    from rushlight.llm.loading import load, restore

__all__ = ["Description", "adapter", "attention", "export", "load", "restore"]

_HOME_OF = {
    "Description": "rushlight.llm.description",
    "adapter": "rushlight.llm.adapters.convert",
    "attention": "rushlight.llm.exporter.attention",
    "export": "rushlight.llm.exporter.export",
    "load": "rushlight.llm.loading",
    "restore": "rushlight.llm.loading",
}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'rushlight.llm' has no attribute {name!r}")
    try:
        value = getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise ImportError(
            f"rushlight.llm.{name} needs {error.name}, which is not installed: pip install "
            f"'rushlight[export,llm]'",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
