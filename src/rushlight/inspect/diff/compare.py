"""Compares what two program files hold, without torch and without running them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from rushlight.errors import Code, LoadError, RunError
from rushlight.inspect.coverage import fallbacks, shares
from rushlight.inspect.diff.contract import contract_changes
from rushlight.inspect.diff.model import (
    Amount,
    Delegation,
    MethodDiff,
    OperatorCount,
    Placement,
    ProgramDiff,
)
from rushlight.inspect.diff.names import operator_of
from rushlight.inspect.model import Method, ProgramContents
from rushlight.inspect.program import report_of
from rushlight.inspect.work import InstructionWork, work_of
from rushlight.runtime.forms import PORTABLE, plan_name

Path = str | os.PathLike[str]
NEEDED = "needed by a run"
FILE = "file"
_DELEGATES = "delegates"  # the place of a delegate's call itself
_Counts = Counter[tuple[str, str, str, bool]]  # the first fields of OperatorCount


def compare_files(before: Path, after: Path, form: str | None = None) -> ProgramDiff:
    """What two program files hold, beside each other.

    Args:
        before, after: their paths.
        form: the form of fat programs that is compared; None: the one that each prefers.

    Raises:
        LoadError: a file cannot be read, is no program, or is damaged; says which.
        RunError: one is a fat program without this form.
    """
    one, other = _Program(before, form), _Program(after, form)
    pairs = _paired(one, other)
    diff = ProgramDiff(
        one.report.name,
        other.report.name,
        _sizes(one.report, other.report),
        [_method(one, a, other, b) for a, b in pairs],
    )
    diff.removed = one.signatures(without=[a for a, _ in pairs])
    diff.added = other.signatures(without=[b for _, b in pairs])
    return diff


class _Program:
    """A file that is compared.

    Attributes:
        report: its contents.
        works: the work of each instruction, by method.
        visible: the methods that a caller sees, by name.
        methods: the same in the form that is compared.

    Raises:
        LoadError: as `compare_files`.
        RunError: a fat program does not have this form.
    """

    def __init__(self, path: Path, form: str | None) -> None:
        try:
            self.report: ProgramContents = report_of(path)
            self.works: Mapping[str, Sequence[InstructionWork]] = work_of(path)
        except LoadError as error:
            raise LoadError(str(error), code=error.code, where=os.fspath(path)) from error
        forms = {one.name: one for one in self.report.forms}
        if form is not None and forms and form not in forms:
            raise RunError(
                f"{os.fspath(path)!r} has no form {form!r}; it has {', '.join(forms)}",
                code=Code.NOT_FOUND,
            )
        wanted = next(iter(forms), PORTABLE) if form is None else form
        plans = {method.name: method for method in self.report.methods}
        hidden = {p for f in forms.values() for p in f.methods if p.endswith(f"@{f.name}")}
        self.visible = {name: m for name, m in plans.items() if name not in hidden}
        self.methods: dict[str, Method] = {
            name: plans.get(plan_name(name, wanted), m) for name, m in self.visible.items()
        }

    def signatures(self, without: Sequence[str]) -> dict[str, str]:
        """The signatures of the other methods."""
        return {n: m.signature for n, m in self.visible.items() if n not in without}


def _paired(one: _Program, other: _Program) -> list[tuple[str, str]]:
    """The names of methods that are compared: equal ones, and one that was renamed."""
    pairs = [(name, name) for name in one.methods if name in other.methods]
    removed = [name for name in one.methods if name not in other.methods]
    added = [name for name in other.methods if name not in one.methods]
    is_one = len(removed) == len(added) == 1
    if is_one and not contract_changes(one.visible[removed[0]], other.visible[added[0]]):
        pairs.append((removed[0], added[0]))
    return pairs


# --- sizes ----------------------------------------------------------------------------------------


def _sizes(before: ProgramContents, after: ProgramContents) -> list[Amount]:
    sides = [
        {
            FILE: report.bytes,
            **report.by_kind,
            **_payloads(report),
            **_constants(report),
            **_named_data(report),
        }
        for report in (before, after)
    ]
    return _amounts(*sides)


def _payloads(report: ProgramContents) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for method in report.methods:
        for delegate in method.delegates:
            sizes[f"payloads of {delegate.backend} in {method.name}"] += delegate.bytes
    return sizes


def _constants(report: ProgramContents) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for constant in report.constants:
        outside = " in a data file" if constant.kind == "external" else ""
        sizes[f"constants of {constant.dtype}{outside}"] += constant.bytes
    return sizes


def _named_data(report: ProgramContents) -> dict[str, int]:
    """What the file holds beside weights: contract, debug map, a tokenizer."""
    ours = (data for data in report.named_data if data.key.startswith("rushlight/"))
    return {f"named data {data.key}": data.bytes for data in ours}


def _amounts(before: Mapping[str, float], after: Mapping[str, float]) -> list[Amount]:
    names = dict.fromkeys([*before, *after])
    return [Amount(name, before.get(name), after.get(name)) for name in names]


# --- methods --------------------------------------------------------------------------------------


def _method(one: _Program, name: str, other: _Program, after_name: str) -> MethodDiff:
    before, after = one.methods[name], other.methods[after_name]
    counts = _operators(one, before), _operators(other, after)
    keys = sorted({*counts[0], *counts[1]}, key=lambda key: (key[3], key[2], key[:2]))
    seen = one.visible[name], other.visible[after_name]
    weak = [p.report.name for p, m in zip((one, other), seen, strict=True) if m.weak]
    return MethodDiff(
        name,
        after_name,
        contract_changes(*seen),
        " and ".join(dict.fromkeys(weak)),
        [OperatorCount(*key, counts[0][key], counts[1][key]) for key in keys],
        _placements(before, after),
        (_delegation(before), _delegation(after)),
        _amounts(_memory(one.report, before), _memory(other.report, after)),
    )


def _operators(program: _Program, method: Method) -> _Counts:
    libraries = {o.name: o.library for o in program.report.operators if o.kind == "kernel"}
    counts: _Counts = Counter()
    for instruction, work in zip(method.instructions, program.works[method.name], strict=True):
        if instruction.kind == "kernel":
            values = [method.values[i] for i in (*instruction.writes, *instruction.reads)]
            dtype = next((value.dtype for value in values if value.dtype), "")
            place = libraries.get(instruction.op) or "another library"
            counts[instruction.op, dtype, place, False] += 1
        elif instruction.kind == "delegate":
            counts[instruction.op, "", _DELEGATES, False] += 1
            for node in work.inside.values():
                dtype = "integers" if node.is_integer else ""
                counts[node.name, dtype, instruction.op, True] += 1
    return counts


def _placements(before: Method, after: Method) -> list[Placement]:
    one, other = _places(before), _places(after)
    if one is None or other is None:
        return []
    ops = sorted({*one, *other})
    return [Placement(op, dict(one.get(op, {})), dict(other.get(op, {}))) for op in ops]


def _places(method: Method) -> dict[str, Counter[str]] | None:
    """The calls of the model's operators by backend; None if the file does not tell them."""
    places: dict[str, Counter[str]] = {}
    if method.coverage:
        for call in method.coverage:
            places.setdefault(operator_of(call.op), Counter())[call.backend or PORTABLE] += 1
        return places
    if method.delegates:
        return None
    for instruction in method.instructions:
        if instruction.kind == "kernel":
            places.setdefault(operator_of(instruction.op), Counter())[PORTABLE] += 1
    return places


def _delegation(method: Method) -> Delegation:
    partitions = Counter(delegate.backend for delegate in method.delegates)
    share = None if method.delegates else 0.0
    if method.coverage:
        share = 1 - shares(method.coverage).get("", 0.0)
    stayed: Counter[str] = Counter()
    for entry in fallbacks(method.coverage):
        stayed[f"{entry.op}: {entry.reasons or 'no reason was given'}"] += len(entry.calls)
    return Delegation(dict(partitions), share, dict(stayed))


def _memory(report: ProgramContents, method: Method) -> dict[str, float]:
    parts = report.memory()[method.name]
    planned = {f"planned memory {arena.memory_id}": arena.bytes for arena in method.arenas}
    needed = parts["arenas"] + parts["scratch"] + parts["io"]
    return {
        **planned,
        "least that a plan can need": sum(arena.lower_bound for arena in method.arenas),
        "scratch of delegates": parts["scratch"],
        "inputs and outputs of the caller": parts["io"],
        NEEDED: needed,
        "with constants and payloads": parts["peak"],
    }
