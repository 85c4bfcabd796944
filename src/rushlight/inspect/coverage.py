"""Tables of the nodes that each backend took from a method, and why the others stayed."""

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
        reasons: each backend with its reason, in words.
        share: the share of the method's estimated cost.
        calls: the calls, the most expensive first.
    """

    op: str
    reasons: str
    share: float = 0.0
    calls: list[Covered] = field(default_factory=list)


def shares(covered: Iterable[Covered]) -> dict[str, float]:
    """The share of the estimated cost by backend; "" stands for the portable kernels."""
    covered = list(covered)
    total = sum(c.cost for c in covered) or 1.0
    by_backend: dict[str, float] = {}
    for one in covered:
        by_backend[one.backend] = by_backend.get(one.backend, 0.0) + one.cost / total
    return by_backend


def fallbacks(covered: Iterable[Covered]) -> list[Fallback]:
    """Calls that no backend took, by operator and reasons, the greatest share first."""
    return _grouped(covered, lambda one: not one.backend)


def noted(covered: Iterable[Covered]) -> list[Fallback]:
    """Calls that a backend took with a note, by operator and note."""
    return _grouped(covered, lambda one: bool(one.backend and one.reasons))


def _grouped(covered: Iterable[Covered], is_meant: Callable[[Covered], bool]) -> list[Fallback]:
    covered = list(covered)
    total = sum(c.cost for c in covered) or 1.0
    groups: dict[tuple[str, str], Fallback] = {}
    for one in sorted(covered, key=lambda c: -c.cost):
        if is_meant(one):
            why = "; ".join(f"{b}: {r}" for b, r in sorted(one.reasons.items()))
            entry = groups.setdefault((one.op, why), Fallback(one.op, why))
            entry.share += one.cost / total
            entry.calls.append(one)
    return sorted(groups.values(), key=lambda f: -f.share)


def coverage_tables(method: Method) -> RenderableType:
    """A table of shares by backend, then tables of calls that stayed or have notes."""
    title = f"{method.name}: where it runs (shares of the estimated cost)"
    table = table_of(title, "backend", "parts", "operators", "share", right=(1, 2, 3))
    share = shares(method.coverage)
    for backend in sorted(share, key=lambda b: -share[b]):
        mine = [c for c in method.coverage if c.backend == backend]
        parts = len({c.part for c in mine}) if backend else ""
        name = Text(backend) if backend else Text("portable kernels", style="yellow")
        table.add_row(name, str(parts), f"{len(mine):,}", f"{share[backend]:.1%}")
    tables: list[RenderableType] = [table]
    for what, grouped in (("stayed", fallbacks), ("taken, but", noted)):
        entries = grouped(method.coverage)
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
