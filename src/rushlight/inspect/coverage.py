"""What of a method went to which backend, what stayed and why: tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from rushlight.inspect.model import Covered, Method
from rushlight.inspect.text import MAX_ROWS, more, short_source, table_of


@dataclass(slots=True)
class Fallback:
    """Calls of one operator that stayed for the same reasons, or have the same note.

    Attributes:
        op: the operator.
        reasons: backend and why, in words.
        share: of the method's estimated cost.
        calls: those that it stands for, the most expensive first.
    """

    op: str
    reasons: str
    share: float = 0.0
    calls: list[Covered] = field(default_factory=list)


def shares(covered: Iterable[Covered]) -> dict[str, float]:
    """The share of the estimated cost by backend; "" is what stayed."""
    covered = list(covered)
    total = sum(c.cost for c in covered) or 1.0
    found: dict[str, float] = {}
    for one in covered:
        found[one.backend] = found.get(one.backend, 0.0) + one.cost / total
    return found


def fallbacks(covered: Iterable[Covered]) -> list[Fallback]:
    """What stayed, by operator and reasons, the greatest share first."""
    return _grouped(covered, lambda one: not one.backend)


def noted(covered: Iterable[Covered]) -> list[Fallback]:
    """What a backend took and says something of, by operator and note."""
    return _grouped(covered, lambda one: bool(one.backend and one.reasons))


def _grouped(covered: Iterable[Covered], is_meant: Callable[[Covered], bool]) -> list[Fallback]:
    covered = list(covered)
    total = sum(c.cost for c in covered) or 1.0
    found: dict[tuple[str, str], Fallback] = {}
    for one in sorted(covered, key=lambda c: -c.cost):
        if is_meant(one):
            why = "; ".join(f"{b}: {r}" for b, r in sorted(one.reasons.items()))
            entry = found.setdefault((one.op, why), Fallback(one.op, why))
            entry.share += one.cost / total
            entry.calls.append(one)
    return sorted(found.values(), key=lambda f: -f.share)


def coverage_tables(method: Method) -> RenderableType:
    """Shares by backend, then what stayed."""
    title = f"{method.name}: where it runs (shares of the estimated cost)"
    table = table_of(title, "backend", "parts", "operators", "share", right=(1, 2, 3))
    share = shares(method.coverage)
    for backend in sorted(share, key=lambda b: -share[b]):
        mine = [c for c in method.coverage if c.backend == backend]
        parts = len({c.part for c in mine}) if backend else ""
        name = Text(backend) if backend else Text("portable kernels", style="yellow")
        table.add_row(name, str(parts), f"{len(mine):,}", f"{share[backend]:.1%}")
    tables: list[RenderableType] = [table]
    for what, found in (("stayed", fallbacks), ("taken, but", noted)):
        entries = found(method.coverage)
        if entries:
            tables.append(_entries(what, entries))
    return Group(*tables)


def _entries(title: str, entries: list[Fallback]) -> RenderableType:
    left = table_of(title, "operator", "calls", "share", "why", "Python", right=(1, 2), drop=(4, 1))
    for entry in entries[:MAX_ROWS]:
        left.add_row(
            Text(entry.op),
            f"{len(entry.calls):,}",
            f"{entry.share:.1%}",
            Text(entry.reasons or "no partitioner gave a reason"),
            Text(
                short_source(entry.calls[0].source), style="dim", overflow="ellipsis", no_wrap=True
            ),
        )
    return more(left, min(len(entries), MAX_ROWS), len(entries))
