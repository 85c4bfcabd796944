"""What a GGUF file says of its architecture: sizes, numbers, and what is not supported."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.errors import Code, ExportError
from rushlight.llm.gguf.file import GgufFile

_MOST = 2**31 - 1
_NO_MATTER = ("vocab_size", "tensor_data_layout", "rope.scaling.finetuned", "use_parallel_residual")
"""Keys that say nothing of what is computed, or only what the tensors say as well."""


class Facts:
    """The metadata of a file that describes its architecture.

    Args:
        file: the file.
        name: of the architecture, which its keys begin with.
    """

    def __init__(self, file: GgufFile, name: str) -> None:
        self.file, self.name = file, name
        self._read = {f"{name}.{key}" for key in _NO_MATTER}

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        return self.file.flag(self._full(key), default)

    def size(self, key: str, default: int | None = None) -> int:
        """A positive integer. One for each layer is taken if they are equal.

        Raises:
            ExportError: there is none, or the layers differ.
        """
        full = self._full(key)
        found = self.file.metadata.get(full)
        if isinstance(found, np.ndarray) and len(found):
            if (found != found[0]).any():
                raise ExportError(
                    f"the layers of {self.file.path} differ in {full!r}, which is not supported",
                    code=Code.NOT_SUPPORTED,
                )
            value = found[0].item()
        else:
            value = self.file.integer(full, default)
        if type(value) is not int or not 1 <= value <= _MOST:
            raise self._bad(full, value, "a positive integer")
        return value

    def listed(self, key: str, count: int) -> list[Any] | None:
        """An array with one number for each of `count` layers; None if there is no array."""
        full = self._full(key)
        found = self.file.metadata.get(full)
        if not isinstance(found, np.ndarray):
            return None
        if len(found) != count:
            raise self._bad(full, f"an array of {len(found)}", f"one of {count} elements")
        values: list[Any] = found.tolist()
        return values

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        full = self._full(key)
        value = self.file.number(full, default)
        if not math.isfinite(value):
            raise self._bad(full, value, "finite")
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        """A number above zero."""
        value = self.number(key, default)
        if value <= 0:
            raise self._bad(self._full(key), value, "above zero")
        return value

    def text(self, key: str, default: str) -> str:
        """A text."""
        return self.file.text(self._full(key), default)

    def refuse_others(self) -> None:
        """Refuse keys that nothing has read: they may change what the model computes."""
        for key in self.file.names(f"{self.name}."):
            value = self.file.metadata[key]
            is_off = isinstance(value, bool | int | float) and not value
            if key in self._read or is_off:
                continue
            shown = f"{len(value)} numbers" if isinstance(value, np.ndarray) else repr(value)[:60]
            kind = " (of a mixture of experts)" if ".expert" in key else ""
            raise ExportError(
                f"{self.file.path} has {key!r} = {shown}{kind}, which is not supported for models "
                f"of the architecture {self.name!r}",
                code=Code.NOT_SUPPORTED,
            )

    def _full(self, key: str) -> str:
        full = f"{self.name}.{key}"
        self._read.add(full)
        return full

    def _bad(self, full: str, value: object, wanted: str) -> ExportError:
        return ExportError(
            f"{full!r} of {self.file.path} is {value!r}, and must be {wanted}",
            code=Code.INVALID_EXTERNAL_DATA,
        )
