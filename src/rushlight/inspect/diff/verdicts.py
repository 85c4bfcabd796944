"""Judges the rules of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rushlight.errors import Code, RunError
from rushlight.inspect.diff.compare import FILE, NEEDED
from rushlight.inspect.diff.model import MethodDiff, ProgramDiff
from rushlight.inspect.diff.rules import CONTRACT, SUBJECTS, Rule
from rushlight.inspect.diff.texts import amount_text, ratio_text

Outcome = Literal["passed", "failed", "not decided"]


@dataclass(frozen=True)
class Verdict:
    """What became of a rule.

    Attributes:
        rule: as it was written.
        outcome: "failed" also if there is nothing to judge it by.
        told: the numbers, or why there are none.
    """

    rule: str
    outcome: Outcome
    told: str


def judge(diff: ProgramDiff, rules: Iterable[Rule]) -> list[Verdict]:
    """The verdict on each rule, in order.

    Raises:
        RunError: a rule names a method that neither program has.
    """
    return [_judged(diff, rule) for rule in rules]


def needs_runs(rules: Iterable[Rule]) -> bool:
    """Whether any of the rules is about results or times."""
    return any(rule.subject in ("latency", "accuracy", "error") for rule in rules)


def _judged(diff: ProgramDiff, rule: Rule) -> Verdict:
    if rule.subject == CONTRACT:
        told = "changed" if diff.contract_changed else "is the same"
        return Verdict(rule.text, "failed" if diff.contract_changed else "passed", told)
    if not SUBJECTS[rule.subject].of_method:
        [size] = [amount for amount in diff.sizes if amount.name == FILE]
        return _compared(rule, "", size.before, size.after)
    verdicts = [_of_method(rule, method) for method in _methods(diff, rule)]
    if not verdicts:
        return Verdict(rule.text, "failed", f"there is nothing to judge: {_absent(diff, rule)}")
    return _together(rule, verdicts)


def _methods(diff: ProgramDiff, rule: Rule) -> list[MethodDiff]:
    chosen = [m for m in diff.methods if rule.method in ("", m.name, m.after_name)]
    if chosen or not rule.method or rule.method in {**diff.removed, **diff.added}:
        return chosen
    known = [*(m.name for m in diff.methods), *diff.removed, *diff.added]
    raise RunError(
        f"{rule.text!r}: neither program has a method {rule.method!r}; there are "
        f"{', '.join(known)}",
        code=Code.NOT_FOUND,
    )


def _absent(diff: ProgramDiff, rule: Rule) -> str:
    if not rule.method:
        return "the programs have no method of the same name"
    file = diff.before if rule.method in diff.removed else diff.after
    return f"only {file} has a method {rule.method!r}"


def _together(rule: Rule, verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of the verdicts on the methods."""
    order: Sequence[Outcome] = ("failed", "not decided", "passed")
    outcome = min((verdict.outcome for verdict in verdicts), key=order.index)
    told = [verdict.told for verdict in verdicts if verdict.outcome == outcome]
    return Verdict(rule.text, outcome, "; ".join(told))


def _of_method(rule: Rule, method: MethodDiff) -> Verdict:
    if rule.subject in ("latency", "accuracy", "error"):
        return _of_run(rule, method)
    before, after = _numbers(rule.subject, method)
    return _compared(rule, method.name, before, after)


def _numbers(subject: str, method: MethodDiff) -> tuple[float | None, float | None]:
    if subject == "memory":
        [amount] = [amount for amount in method.memory if amount.name == NEEDED]
        return amount.before, amount.after
    if subject == "operators":
        calls = [o for o in method.operators if not o.is_node]
        return sum(o.before for o in calls), sum(o.after for o in calls)
    before, after = method.delegation
    if subject == "partitions":
        return sum(before.partitions.values()), sum(after.partitions.values())
    return before.share, after.share


def _compared(rule: Rule, method: str, before: float | None, after: float | None) -> Verdict:
    where = f"{method}: " if method else ""
    if after is None or before is None:
        return Verdict(
            rule.text, "failed", f"{where}there is nothing to judge: a file does not tell it"
        )
    unit = SUBJECTS[rule.subject].unit
    told = f"{where}{amount_text(before, unit)} → {amount_text(after, unit)}"
    if before and unit != "share":
        told += f", {ratio_text(after / before)}"
    return Verdict(rule.text, "failed" if rule.is_broken_by(after, before) else "passed", told)


def _of_run(rule: Rule, method: MethodDiff) -> Verdict:
    run = method.run
    if run is None or (rule.subject != "latency" and not run.outputs):
        why = run.note if run is not None and run.note else "the method was not run"
        return Verdict(rule.text, "failed", f"{method.name}: there is nothing to judge: {why}")
    if rule.subject == "latency":
        return _latency(rule, method)
    worst = min if rule.subject == "accuracy" else max
    values = [o.sqnr if rule.subject == "accuracy" else o.max_error for o in run.outputs]
    if any(math.isnan(value) for value in values):
        names = ", ".join(o.name for o in run.outputs if math.isnan(o.max_error) and o.departs)
        if names:
            told = f"{method.name}: {names} cannot be compared: see the outputs"
            return Verdict(rule.text, "failed", told)
        values = [value for value in values if not math.isnan(value)]
    nothing = math.inf if rule.subject == "accuracy" else 0.0
    value = worst(values, default=nothing)
    text = amount_text(value, SUBJECTS[rule.subject].unit)
    outcome: Outcome = "failed" if rule.is_broken_by(value, 0) else "passed"
    return Verdict(rule.text, outcome, f"{method.name}: {text}")


def _latency(rule: Rule, method: MethodDiff) -> Verdict:
    """Decided only if the whole confidence interval is on one side of the limit."""
    run = method.run
    change = run.latency if run is not None else None
    if run is None or change is None or math.isnan(change.ratio):
        why = run.note if run is not None and run.note else "it was not timed"
        return Verdict(rule.text, "failed", f"{method.name}: there is nothing to judge: {why}")
    limit = rule.limit
    is_relative = limit.is_factor or limit.is_added
    interval = (change.low, change.high) if is_relative else run.after_interval
    scale = change.before if is_relative else 1.0
    broken = [rule.is_broken_by(end * scale, change.before) for end in interval]
    told = (
        f"{method.name}: {amount_text(change.before, 'time')} → "
        f"{amount_text(change.after, 'time')}, {ratio_text(change.ratio)} "
        f"({ratio_text(change.low)} to {ratio_text(change.high)} at 95 %, {run.runs} runs)"
    )
    if all(broken):
        return Verdict(rule.text, "failed", told)
    return Verdict(rule.text, "not decided" if any(broken) else "passed", told)
