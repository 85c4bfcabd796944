"""Keeps messages of other packages from the user where they are caused, by their text.

What is filtered is nothing that a user of ours could act on. All else that is said meanwhile is
shown, and nothing stays filtered afterwards.
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

# torchao says which of its libraries for GPUs do not load here, and torch what it thinks of the
# way in which torchao registers its types.
OF_TORCHAO = {
    "torchao": r"Failed to load .* Could not load this library|Skipping import of cpp extensions",
    "torch.utils._pytree": r"register_constant\(\) on Enum subclasses is deprecated",
}

Module = TypeVar("Module")
LEAF_SPECS = "LeafSpec.* is deprecated"
"""What torch warns of when it copies tree specs of its own."""


@contextmanager
def quiet(*, warned: str | None = None, logged: Mapping[str, str] | None = None) -> Iterator[None]:
    """While active, some messages are not shown.

    Args:
        warned: a pattern; warnings in whose text it is found.
        logged: {name of a logger: pattern}; what the logger says in which it is found.
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


def deep_copy(module: Module) -> Module:
    """A deep copy of a module, without what torch says of the tree specs in graphs of its own."""
    with quiet(warned=LEAF_SPECS):
        return copy.deepcopy(module)


def import_torchao() -> None:
    """Import what we use of torchao, without what it says of its own build.

    Raises:
        ImportError: torchao is not installed, or does not fit torch.
    """
    with quiet(logged=OF_TORCHAO):
        import_module("torchao.quantization.pt2e.quantize_pt2e")
