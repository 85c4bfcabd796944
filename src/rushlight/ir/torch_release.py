"""What differs between the releases of torch that the compiler is tested with.

`make torch-next` runs a share of the tests with the newest of them. Another release gets a warning;
whether it works shows when a model is exported, since every program is verified against eager.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch._functorch._aot_autograd import collect_metadata_analysis, functional_utils
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import statically_known_true

TESTED = ("2.13.0", "2.15.0")
"""Releases of torch; the first is what is installed where nothing else is asked for."""


def known_operators(
    rules: Mapping[str, Callable[..., Any]],
) -> dict[OpOverload, Callable[..., Any]]:
    """Rules for operators of ATen by name ("cholesky"), those that this release has (2.15 dropped
    old names of `torch.linalg`)."""
    packets = {name: getattr(torch.ops.aten, name, None) for name in rules}
    return {packet.default: rules[name] for name, packet in packets.items() if packet is not None}


def guards_of(program: ExportedProgram) -> list[str]:
    """The conditions on sizes that a captured program holds for, as torch wrote them; what 2.15
    calls `torch.sym_min` is `min`, as it was."""
    found = getattr(program, "_guards_code", None) or ()
    return [re.sub(r"\btorch\.sym_(min|max)\(", r"\1(", guard) for guard in found]


def text_of(error: Exception) -> str:
    """What an error of torch says. Where shapes do not fit, 2.15 begins with the operator that it
    made of the call ("addmm: mat1 and mat2 shapes …"), which is no word of the model's."""
    return re.sub(r"\A\w+: (?=mat1 and mat2 shapes )", "", str(error))


@contextmanager
def comparing_without_guards() -> Iterator[None]:
    """While active, AOT Autograd of torch 2.15, which asks whether an output that is a view has the
    shape of its base, takes what is not known for no. It would guard on the answer for the example,
    and no program depends on it."""
    if not hasattr(collect_metadata_analysis, "has_same_metadata"):  # 2.13 does not ask
        yield
        return
    with mock.patch.object(functional_utils, "guard_or_false", statically_known_true):
        yield


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
