"""Calls of the operator database through the whole path: module, export, file, runtime.

A call ends in one of three ways, and only the first two are right: its program gives what eager
gives, ``rushlight.export`` refuses it with a reason, or something is broken. The operators that are
refused stand in ``opinfo_refused.yaml``, by reason.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml
from torch.utils import _pytree as pytree

import rushlight
from rushlight.errors import ExportError

from . import opinfo
from .opinfo import Outcome

TABLE = Path(__file__).with_name("opinfo_refused.yaml")
SECTIONS = ("always", "sometimes", "broken")


@cache
def table() -> list[dict[str, Any]]:
    """The rows of the table, their sections as sets of operators."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return [row | {s: frozenset((row.get(s) or "").split()) for s in SECTIONS} for row in rows]


def row_of(reason: str) -> dict[str, Any] | None:
    """The first row whose message is found in the reason of a refusal."""
    return next((row for row in table() if re.search(row["message"], reason)), None)


def outcome(name: str, call: opinfo.Call) -> Outcome | None:
    """Export, load and run one call; None if eager itself refuses it."""
    try:
        expected = call.expected(name)
    except Exception:  # the database has samples that a build of torch cannot run
        return None
    module, inputs = opinfo.as_module(call)
    result = _lowered((module, opinfo.copied(inputs)), inputs, expected, opinfo.compared(name))
    return result._replace(dtype=str(call.dtype).removeprefix("torch."))


def program_outcome(program: torch.export.ExportedProgram) -> Outcome:
    """The same of a captured program with its example inputs, all of them positional."""
    expected, compared = opinfo.results_of(program)
    assert program.example_inputs is not None
    return _lowered((program,), program.example_inputs[0], expected, compared)


def _lowered(
    exported: tuple[Any, ...], inputs: tuple[Any, ...], expected: Any, compared: int
) -> Outcome:
    try:
        with opinfo.quiet():
            program = rushlight.export(*exported, verify=False)
    except ExportError as error:
        return Outcome("refused", str(error))
    except Exception as error:
        return Outcome("broken", f"export: {type(error).__name__}: {error}")
    try:
        with rushlight.load(program.buffer) as loaded:
            got = loaded(*opinfo.copied(inputs))
    except Exception as error:
        return Outcome("broken", f"run: {type(error).__name__}: {error}")
    try:
        equal_trees(got, expected, compared=compared, inputs=bool(inputs))
    except AssertionError as error:
        return Outcome("broken", f"result: {error}")
    return Outcome("passes")


def outcomes(name: str, *, whole: bool) -> list[Outcome]:
    """The outcomes of an operator's calls that eager runs."""
    results = [outcome(name, call) for call in opinfo.calls_to_export(name, whole=whole)]
    return [o for o in results if o is not None]


def equal_trees(got: Any, expected: Any, *, compared: int, inputs: bool) -> None:
    """Raises AssertionError unless containers, dtypes, shapes and the first values agree.

    `inputs` is False where no tensor went in, and results are NumPy's.
    """
    mine, mine_spec = pytree.tree_flatten(opinfo.as_tuples(got))
    wanted, wanted_spec = pytree.tree_flatten(opinfo.as_tuples(expected))
    assert mine_spec == wanted_spec, f"structure {mine_spec}, eager has {wanted_spec}"
    for index, (g, e) in enumerate(zip(mine, wanted, strict=True)):
        if isinstance(e, torch.Tensor) and not inputs:
            g = tensor_of(g, e.dtype)
        opinfo.assert_equal(index, g, e, compared)


def tensor_of(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """NumPy's array as a tensor; it has no bfloat16, so that one comes by its bits."""
    if dtype == torch.bfloat16:
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.as_tensor(array)
