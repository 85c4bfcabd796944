"""Packages of others that language models need at export: a missing one is told by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rushlight.errors import Code, ExportError

_PACKAGES = ("torch", "transformers", "tokenizers", "sentencepiece", "tiktoken")


@contextlib.contextmanager
def needs_packages() -> Iterator[None]:
    """A `with` block, or a function, in which the import of a package that is not there says how
    to install it.

    Raises:
        ExportError: a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        raise ExportError(
            f"this needs the package {error.name}, which is not installed: pip install "
            f"'rushlight[export,llm]'",
            code=Code.NOT_FOUND,
        ) from error
