"""What differs between the releases of torch that the compiler is tested with.

`make torch-next` runs a share of the tests with the newest of them. Another release gets a warning;
whether it works shows when a model is exported, since every program is verified against eager.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

TESTED = ("2.13.0", "2.15.0")
"""Releases of torch; the first is what is installed where nothing else is asked for."""


def known_operators(
    rules: Mapping[str, Callable[..., Any]],
) -> dict[OpOverload, Callable[..., Any]]:
    """Rules for operators of ATen by name ("cholesky"), those that this release has (2.15 dropped
    old names of `torch.linalg`)."""
    packets = {name: getattr(torch.ops.aten, name, None) for name in rules}
    return {packet.default: rules[name] for name, packet in packets.items() if packet is not None}


@cache  # once in a process
def warn_if_untested(release: str = torch.__version__) -> None:
    """Warn of a release of torch that is none of `TESTED`."""
    version = release.partition("+")[0]  # what stands behind it says how it was built
    if version not in TESTED:
        warnings.warn(
            f"Rushlight is tested with torch {' and '.join(TESTED)}; this is {version}. If an "
            f"export fails here, try it with one of these",
            UserWarning,
            stacklevel=2,
        )
