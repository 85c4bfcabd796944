"""The values of a run beside eager's, as a table in the terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from rushlight.debug.compare import Gap
from rushlight.debug.places import Array, Place
from rushlight.inspect.html import plain_page
from rushlight.inspect.text import MAX_ROWS, table_of
from rushlight.quantization.loss import decibels

BINS = 32
_SHOWN = " ▁▂▃▄▅▆▇█"
_TERMINAL_BINS = 12
_NAMED = 8  # nodes that were not compared
_NOTHING = "No value between operators could be compared; the outputs are eager's."
_RIGHT = "Every operator that was compared computes what eager does on its inputs."
_WIDTH, _HEIGHT = 5 * BINS, 36  # of a histogram, in pixels
_STYLE = """
table { border-collapse: collapse; width: 100%; }
th, td { padding: 6px 12px; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: middle; }
th { font-size: 12px; color: var(--muted); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.fault td { background: color-mix(in srgb, var(--accent) 20%, transparent); }
svg { display: block; }
.run { fill: var(--pointwise); opacity: .7; }
.eager { fill: none; stroke: currentColor; stroke-width: 1; }
"""
_HEADINGS = ("at", "value", "operators", "own error", "of", "own", "whole", "run and eager",
             "Python", "module")  # fmt: skip


def place_of(gap: Gap) -> str:
    """Where a value was computed: the instruction, and the place inside its delegate."""
    place = gap.place
    return f"{place.instruction}/{place.inside}" if place.inside else str(place.instruction)


def sentence(gap: Gap) -> str:
    """What is wrong with a value whose place is at fault."""
    where = f", at {gap.source}" if gap.source.file else ""
    module = f" in the module {' and '.join(gap.modules)}" if gap.modules else ""
    what = f"a fused operator of {gap.place.backend}" if gap.place.backend else "a kernel"
    return (
        f"The first value that departs is {gap.node} ({', '.join(gap.operators)}; {what}, "
        f"instruction {place_of(gap)}){module}{where}: on the run's own inputs {gap.reason}"
    )


def lines(
    gaps: Sequence[Gap], first: Gap | None, verdict: str, left: Sequence[Place]
) -> Iterator[RenderableType]:
    """The table, what departs first, and what was not compared."""
    table = table_of(
        "each value beside eager's: on its own inputs, and of the whole model",
        *("at", "value", "operators", "own error", "of", "own", "whole", "run | eager"),
        *("Python", "module"),
        right=(3, 4, 5, 6), drop=(4, 7, 9, 2, 6),
    )  # fmt: skip
    for gap in _rows(gaps, first):
        style = "bold red" if gap is first else ""
        shown, wanted = (_terminal(histogram) for histogram in histograms(gap, _TERMINAL_BINS))
        table.add_row(
            Text(place_of(gap), style),
            Text(gap.node, style),
            Text(", ".join(gap.operators)),
            f"{gap.own.max_error:.3g}",
            f"{gap.own.max_value:.3g}",
            decibels(gap.own.sqnr),
            decibels(gap.whole.sqnr),
            f"{shown}|{wanted}",
            Text(gap.source.brief),
            Text(", ".join(gap.modules)),
        )
    yield table
    if len(gaps) > MAX_ROWS:
        yield Text(f"  … {len(gaps) - MAX_ROWS} more values; --html has all", "dim")
    names = list(dict.fromkeys(name for place in left for name in place.names))
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield Text(f" not compared: {', '.join(names[:_NAMED])}{more}", "dim")
    told = verdict or (_RIGHT if gaps else _NOTHING)
    yield Text(f" {told}", "bold red" if verdict else "bold")


def _rows(gaps: Sequence[Gap], first: Gap | None) -> Sequence[Gap]:
    """The values that fit into a table: those before and after the first that departs."""
    if len(gaps) <= MAX_ROWS:
        return gaps
    middle = 0 if first is None else next(i for i, gap in enumerate(gaps) if gap is first)
    begin = max(0, min(middle - MAX_ROWS // 2, len(gaps) - MAX_ROWS))
    return gaps[begin : begin + MAX_ROWS]


def histograms(gap: Gap, bins: int) -> tuple[list[int], list[int]]:
    """How many elements of the run's value, and of eager's, are in each bin of their range."""
    both = [_finite(gap.value), _finite(gap.wanted)]
    low = min((float(array.min()) for array in both if array.size), default=0.0)
    high = max((float(array.max()) for array in both if array.size), default=0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    one, other = (np.histogram(array, bins, (low, high))[0].tolist() for array in both)
    return one, other


def _finite(array: Array) -> Array:
    flat = array.reshape(-1).astype(np.float64)
    return flat[np.isfinite(flat)]


def _terminal(counts: Sequence[int]) -> str:
    most = max(counts, default=0) or 1
    return "".join(_SHOWN[-(-count * (len(_SHOWN) - 1) // most)] for count in counts)


def page(gaps: Sequence[Gap], first: Gap | None, verdict: str) -> str:
    """All values as one page without scripts or network access, to be written as UTF-8."""
    head = "".join(f"<th>{name}</th>" for name in _HEADINGS)
    rows = "\n".join(_row(gap, gap is first) for gap in gaps)
    body = f"""<h1>Each value beside eager's</h1>
<p>{escape(verdict or (_RIGHT if gaps else _NOTHING))}</p>
<p class="hint">"own" compares a value with what eager computes from the run's own inputs of the
place, "whole" with eager's value in the whole model. Bars are the run's elements, the line is
eager's.</p>
<div class="scroll"><table><thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody></table></div>"""
    return plain_page("What departs from eager", body, _STYLE)


def _row(gap: Gap, is_first: bool) -> str:
    numbers = (
        f"{gap.own.max_error:.3g}", f"{gap.own.max_value:.3g}", decibels(gap.own.sqnr),
        decibels(gap.whole.sqnr),
    )  # fmt: skip
    cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return (
        f'<tr{" class=fault" if is_first else ""}><td class="number">{escape(place_of(gap))}</td>'
        f'<td class="mono">{escape(gap.node)}</td>'
        f'<td class="mono">{escape(", ".join(gap.operators))}</td>{cells}'
        f"<td>{_picture(gap)}</td>"
        f'<td class="mono" title="{escape(str(gap.source))}">{escape(gap.source.brief)}</td>'
        f'<td class="mono">{escape(", ".join(gap.modules))}</td></tr>'
    )


def _picture(gap: Gap) -> str:
    run, eager = histograms(gap, BINS)
    most = max(*run, *eager) or 1
    bars = "".join(
        f'<rect class="run" x="{5 * i}" y="{_HEIGHT * (1 - count / most):.1f}" width="4" '
        f'height="{_HEIGHT * count / most:.1f}"/>'
        for i, count in enumerate(run)
    )
    points = " ".join(
        f"{5 * i + 2},{_HEIGHT * (1 - count / most):.1f}" for i, count in enumerate(eager)
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img">{bars}'
        f'<polyline class="eager" points="{points}"/></svg>'
    )
