"""Named data of backends."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.partition import NamedDataStore, NamedDataStoreOutput

__all__ = [
    "NamedDataStore",
    "NamedDataStoreOutput",
]

__getattr__ = absent(__name__)
