"""The differences between the releases of torch that the compiler is tested with.

`make torch-next` runs a share of the tests with the newest of them. Another release gets a warning;
an export shows whether it works, because every program is verified against eager.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from unittest import mock

import torch
from torch._export import utils as export_utils
from torch._functorch._aot_autograd import collect_metadata_analysis, functional_utils
from torch._ops import OperatorBase, OpOverload
from torch.export import ExportedProgram, decomp_utils, exported_program
from torch.fx.experimental.symbolic_shapes import statically_known_true

TESTED = ("2.13.0", "2.15.0")
"""Releases of torch; the first is the one that is installed by default."""


def known_operators(
    rules: Mapping[str, Callable[..., Any]],
) -> dict[OpOverload, Callable[..., Any]]:
    """The rules for those of the named ATen operators ("cholesky") that this release has: 2.15
    dropped old names of `torch.linalg`."""
    packets = {name: getattr(torch.ops.aten, name, None) for name in rules}
    return {packet.default: rules[name] for name, packet in packets.items() if packet is not None}


def guards_of(program: ExportedProgram) -> list[str]:
    """The conditions on sizes under which a captured program holds, in torch's words.

    The `torch.sym_min` of 2.15 is written as `min`, as in earlier releases.
    """
    guards = getattr(program, "_guards_code", None) or ()
    return [re.sub(r"\btorch\.sym_(min|max)\(", r"\1(", guard) for guard in guards]


def text_of(error: Exception) -> str:
    """The message of a torch error.

    For shapes that do not fit, 2.15 begins with the operator that the call became ("addmm: mat1 and
    mat2 shapes …"). It is removed, because the model does not name that operator.
    """
    return re.sub(r"\A\w+: (?=mat1 and mat2 shapes )", "", str(error))


@contextmanager
def comparing_without_guards() -> Iterator[None]:
    """While active, AOT Autograd of torch 2.15 adds no guards when it compares shapes.

    It asks whether an output that is a view has the shape of its base. If that is not known, it
    would add a guard with the example's answer. Here the answer is no; no program depends on it.
    """
    if not hasattr(collect_metadata_analysis, "has_same_metadata"):  # 2.13 does not ask
        yield
        return
    with mock.patch.object(functional_utils, "guard_or_false", statically_known_true):
        yield


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_composite_operators: dict[tuple[Any, ...], set[OperatorBase]] = {}  # of one state of the libraries


@contextmanager
def short_decomposition_setup() -> Iterator[None]:
    """While active, a decomposition spends no time on composite operators that it does not change.

    torch lists the composite operators of every library anew at each decomposition, and replaces
    the rule of each of them, most by the rule that it has. For a small model this takes longer than
    the decomposition. Here they are listed again only when a library has more operators than
    before, and only rules that differ are replaced.
    """
    collect: Any = getattr(export_utils, "_collect_all_valid_cia_ops", None)
    override: Any = getattr(exported_program, "_override_composite_implicit_decomp", None)
    if collect is None or override is None:  # a release with other names: slower, the same result
        yield
        return

    def collect_once() -> set[OperatorBase]:
        operators = _composite_operators.get(_registered())
        if operators is None:
            operators = collect()  # it makes objects of operators, so what is registered changes
            _composite_operators.clear()
            _composite_operators[_registered()] = operators
        return operators

    def override_changed(rules: dict[OpOverload, Callable[..., Any]]) -> Any:
        return override({op: rule for op, rule in rules.items() if not _is_own_rule(op, rule)})

    with (
        mock.patch.object(exported_program, "_collect_all_valid_cia_ops", collect_once),
        mock.patch.object(decomp_utils, "_collect_all_valid_cia_ops", collect_once),
        mock.patch.object(
            exported_program, "_override_composite_implicit_decomp", override_changed
        ),
    ):
        yield


def _registered() -> tuple[Any, ...]:
    """What the list of composite operators depends on: kernels, and operators of each library."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    libraries = [getattr(torch.ops, name) for name in torch.ops._dir]
    # A library may be defined again: then its operators are other objects.
    packets = [
        id(getattr(library, name))
        for library in libraries
        for name in getattr(library, "_dir", ())
        if library is not torch.ops.aten
    ]
    return tuple(names), len(torch.ops.aten._dir), tuple(packets)


def _is_own_rule(op: OpOverload, rule: Callable[..., Any]) -> bool:
    """Whether the rule is the one that torch uses for the operator anyway."""
    if isinstance(rule, partial):
        name = getattr(rule.func, "__name__", None)
        return name == "_special_op_to_decompose_cia" and rule.keywords.get("kernel") is op
    return op.py_kernels.get(_COMPOSITE) is rule


@cache  # once in a process
def warn_if_untested(release: str = torch.__version__) -> None:
    """Warn if a release of torch is not one of `TESTED`."""
    version = release.partition("+")[0]  # the part after "+" names the build
    if version not in TESTED:
        warnings.warn(
            f"Rushlight is tested with torch {' and '.join(TESTED)}; this is {version}. If an "
            f"export fails here, try it with one of these",
            UserWarning,
            stacklevel=2,
        )
