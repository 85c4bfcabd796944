"""Hides messages of other packages, by their text, while the code that causes them runs.

Only messages that a user of ours cannot act on are hidden. All others are shown, and nothing stays
hidden afterwards.
"""

from __future__ import annotations

import copy
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TypeVar

# torchao reports which of its GPU libraries could not be loaded, and torch that the way in which
# torchao registers its types is deprecated.
OF_TORCHAO = {
    "torchao": r"Failed to load .* Could not load this library|Skipping import of cpp extensions",
    "torch.utils._pytree": r"register_constant\(\) on Enum subclasses is deprecated",
}

Copied = TypeVar("Copied")
LEAF_SPECS = "LeafSpec.* is deprecated"
"""The warning that torch gives when it copies its own tree specs."""


@contextmanager
def quiet(*, warned: str | None = None, logged: Mapping[str, str] | None = None) -> Iterator[None]:
    """While active, messages that match a pattern are not shown.

    Args:
        warned: the pattern of warnings to hide.
        logged: the patterns of log messages to hide, by the name of the logger.
    """
    with ExitStack() as stack:
        if warned is not None:
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message=f"(?s:.*)(?:{warned})")
        for name, pattern in (logged or {}).items():
            stack.enter_context(_log_without(name, pattern))
        yield


@contextmanager
def _log_without(name: str, pattern: str) -> Iterator[None]:
    def is_shown(record: logging.LogRecord) -> bool:
        return re.search(pattern, record.getMessage()) is None

    logger = logging.getLogger(name)
    logger.addFilter(is_shown)
    try:
        yield
    finally:
        logger.removeFilter(is_shown)


def deep_copy(value: Copied) -> Copied:
    """A deep copy of a module or inputs, without torch's warnings about tree specs in graphs."""
    with quiet(warned=LEAF_SPECS):
        return copy.deepcopy(value)


def import_torchao() -> None:
    """Import the parts of torchao that we use, without its messages about its own build.

    Raises:
        ImportError: torchao is not installed, or does not fit torch.
    """
    with quiet(logged=OF_TORCHAO):
        import_module("torchao.quantization.pt2e.quantize_pt2e")
