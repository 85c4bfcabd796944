"""A comparison as tables, which the terminal and the page show alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rushlight.inspect.diff.model import (
    Amount,
    Delegation,
    MethodDiff,
    OutputDiff,
    ProgramDiff,
    RunDiff,
)
from rushlight.inspect.diff.texts import ABSENT, amount_text, change_text, ratio_text
from rushlight.inspect.diff.verdicts import Verdict
from rushlight.inspect.trace.statistics import Change

Mark = Literal["", "told", "changed", "good", "bad"]
"""Of a row: equal, worth telling, different; a verdict, or a time that is certainly another."""


@dataclass(frozen=True)
class Row:
    """Cells of a table, and their mark."""

    cells: tuple[str, ...]
    mark: Mark = ""


@dataclass
class Section:
    """A table, or a sentence in its place.

    Attributes:
        title: above it.
        columns: the headings; the first `texts` are texts, the others numbers.
        rows: all, equal ones too.
        note: below it, or in place of a table without rows.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    texts: int = 1
    note: str = ""

    @property
    def is_same(self) -> bool:
        """Whether nothing in it differs."""
        return not any(row.mark for row in self.rows)


_SIDES = ("before", "after", "")
_MARKS: Mapping[str, Mark] = {"failed": "bad", "not decided": "changed", "passed": "good"}


def sections_of(diff: ProgramDiff, verdicts: Sequence[Verdict]) -> list[Section]:
    """The tables of a comparison, with what is equal.

    Args:
        diff: the comparison.
        verdicts: on the rules.
    """
    sections = []
    if verdicts:
        rows = [Row((v.outcome, v.rule, v.told), _MARKS[v.outcome]) for v in verdicts]
        sections.append(Section("rules", ("", "must not be", ""), rows, texts=3))
    sections.append(_contract(diff))
    sections.append(_amounts("sizes", diff.sizes))
    for method in diff.methods:
        sections += _method(method)
    return sections


def differences_of(sections: Sequence[Section]) -> tuple[list[Section], list[str]]:
    """What differs, with the rows that do; and what is the same, in words.

    Args:
        sections: of `sections_of`.
    """
    differing = [section for section in sections if not section.is_same or not section.columns]
    for section in differing:
        section.rows = [row for row in section.rows if row.mark]
    same: dict[str, list[str]] = {}
    for section in sections:
        if section not in differing:
            method, _, title = section.title.rpartition(": ")
            same.setdefault(method, []).append(title)
    whole = {method for method in same if method} - {
        section.title.rpartition(": ")[0] for section in differing
    }
    texts = []
    for method, titles in same.items():
        listed = ", ".join(titles)
        texts.append(f"all of {method}" if method in whole else f"{method}: {listed}")
    return differing, [text.removeprefix(": ") for text in texts]


def _contract(diff: ProgramDiff) -> Section:
    rows = [Row((n, signature, ABSENT), "changed") for n, signature in diff.removed.items()]
    rows += [Row((n, ABSENT, signature), "changed") for n, signature in diff.added.items()]
    for method in diff.methods:
        if method.name != method.after_name:
            rows.append(Row(("method", method.name, method.after_name), "changed"))
        for text in method.contract:
            cells = (f"{method.name}: {text.name}", text.before or ABSENT, text.after or ABSENT)
            rows.append(Row(cells, "changed"))
    weak = ", ".join(dict.fromkeys(method.weak for method in diff.methods if method.weak))
    note = f"no contract in {weak}: dtypes and bounds of tensors are compared" if weak else ""
    return Section("contract", ("", "before", "after"), rows, 3, note)


def _amounts(title: str, amounts: Iterable[Amount]) -> Section:
    rows = []
    for amount in amounts:
        cells = (
            amount.name,
            amount_text(amount.before, "bytes"),
            amount_text(amount.after, "bytes"),
            change_text(amount.before, amount.after),
        )
        rows.append(Row(cells, "" if amount.before == amount.after else "changed"))
    return Section(title, ("", *_SIDES), rows)


def _method(method: MethodDiff) -> Iterator[Section]:
    name = method.name
    yield _amounts(f"{name}: memory", method.memory)
    yield _operators(method)
    yield _delegation(method)
    if method.placements:
        yield _placements(method)
    if method.run is not None:
        yield from _run(name, method.run)


def _operators(method: MethodDiff) -> Section:
    rows = []
    for operator in method.operators:
        cells = (
            *(operator.name, operator.dtype, operator.place),
            *(str(operator.before or ABSENT), str(operator.after or ABSENT)),
        )
        rows.append(Row(cells, "" if operator.before == operator.after else "changed"))
    calls = [o for o in method.operators if not o.is_node]
    one, other = sum(o.before for o in calls), sum(o.after for o in calls)
    columns = ("operator", "writes", "in", "before", "after")
    note = f"instructions that call something: {one} → {other}"
    return Section(f"{method.name}: operators", columns, rows, 3, note)


def _placements(method: MethodDiff) -> Section:
    rows = []
    for placement in method.placements:
        counts = map(_counts, (placement.before, placement.after))
        mark: Mark = "" if placement.kind == "same" else "changed"
        rows.append(Row((placement.op, placement.kind, *counts), mark))
    columns = ("operator of the model", "", "before", "after")
    return Section(f"{method.name}: where operators run", columns, rows, 4)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{place} {count}" for place, count in sorted(counts.items())) or ABSENT


def _delegation(method: MethodDiff) -> Section:
    one, other = method.delegation
    rows = [
        _pair("delegates", _counts(one.partitions), _counts(other.partitions)),
        _pair("share of the estimated work", _share(one), _share(other)),
    ]
    for why in dict.fromkeys([*one.stayed, *other.stayed]):
        counts = [str(side.stayed.get(why, ABSENT)) for side in method.delegation]
        rows.append(_pair(f"stayed: {why}", *counts))
    return Section(f"{method.name}: delegation", ("", "before", "after"), rows)


def _pair(name: str, before: str, after: str) -> Row:
    return Row((name, before, after), "" if before == after else "changed")


def _share(side: Delegation) -> str:
    return "not known" if side.share is None else amount_text(side.share, "share")


def _run(name: str, run: RunDiff) -> Iterator[Section]:
    if run.outputs:
        yield _outputs(name, run)
    if run.latency is not None:
        whole = _time("a run", run.latency)
        rows = [Row(whole.cells, whole.mark or "told")]
        rows += [_time(change.name, change) for change in run.kinds]
        columns = ("", *_SIDES, "at 95 %")
        notes = [f"medians of {run.runs} runs by turns", run.kinds_note]
        yield Section(f"{name}: time", columns, rows, 1, "; ".join(filter(None, notes)))
    if run.note:
        yield Section(f"{name}: runs", note=run.note)


def _time(name: str, change: Change) -> Row:
    interval = f"{ratio_text(change.low)} to {ratio_text(change.high)}"
    both = not math.isnan(change.ratio)
    cells = (
        name,
        amount_text(change.before, "time"),
        amount_text(change.after, "time"),
        ratio_text(change.ratio) if both else "gone" if math.isnan(change.after) else "new",
        interval if both else "",
    )
    if not both or not change.is_certain:
        return Row(cells, "" if both else "changed")
    return Row(cells, "bad" if change.ratio > 1 else "good")


def _outputs(name: str, run: RunDiff) -> Section:
    rows = [_output(output) for output in run.outputs]
    first = run.first_departing
    note = f"inputs: {run.inputs}"
    if first is not None:
        note = f"the first that departs by more than roundings is {first.name}; {note}"
    columns = ("output", "type", "greatest error", "relative", "SNR", "cosine", "where")
    return Section(f"{name}: outputs", columns, rows, 2, note)


def _output(output: OutputDiff) -> Row:
    types = dict.fromkeys((output.before or ABSENT, output.after or ABSENT))
    cells = (output.name, " → ".join(types))
    if math.isnan(output.max_error):
        told = "cannot be compared" if output.departs else "equal"
        return Row((*cells, told, "", "", "", ""), "changed" if output.departs else "")
    if output.max_error == 0:
        return Row((*cells, "equal", "", "", "", ""), "told" if len(types) > 1 else "")
    where = f"[{', '.join(map(str, output.where))}]" if output.where else ""
    figures = (f"{output.max_error:.3g}", f"{output.relative:.3g}")
    sqnr = amount_text(output.sqnr, "decibels")
    mark: Mark = "changed" if output.departs else "told"
    return Row((*cells, *figures, sqnr, f"{output.cosine:.6f}", where), mark)
