"""The report on quantization loss as one HTML page, without scripts or network access."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources

from rushlight.accuracy.layers import BINS, Layer, percent
from rushlight.quantization.loss import decibels

_STYLE = """
table { border-collapse: collapse; width: 100%; }
th, td { padding: 6px 12px; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: middle; }
th { font-size: 12px; color: var(--muted); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.share { display: inline-block; height: 8px; border-radius: 4px; background: var(--accent); }
svg { display: block; }
svg rect { fill: var(--pointwise); }
"""
_HEADINGS = ("layer", "operators", "blame", "", "SQNR", "max error", "of", "saturated",
             "differences", "Python")  # fmt: skip
_WIDTH, _HEIGHT = 5 * BINS, 36  # of a histogram, in pixels


def page(
    layers: Sequence[Layer],
    outputs: Sequence[float],
    inputs: int,
    backend: str,
    not_compared: Sequence[str],
) -> str:
    """The page as text, to be written as UTF-8; the arguments are a report's attributes."""
    shared = (resources.files("rushlight.inspect") / "page" / "page.css").read_text("utf-8")
    noise = ", ".join(decibels(sqnr) for sqnr in outputs)
    head = "".join(f"<th>{name}</th>" for name in _HEADINGS)
    rows = "\n".join(_row(layer) for layer in layers)
    rest = ""
    if not_compared:
        names = escape(", ".join(not_compared))
        rest = f'<p class="hint">The quantised graph has no {names}: not compared.</p>'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>What quantization costs · rushlight</title>
<style>{shared}{_STYLE}</style>
</head>
<body>
<main>
<h1>What quantization costs, by layer</h1>
<p>{inputs} inputs on {escape(backend)}; outputs: {noise}. The layer with the most
to blame is first: blame is the share of all noise that arises in a layer.</p>
{rest}
<div class="scroll"><table><thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
</main>
</body>
</html>
"""


def _row(layer: Layer) -> str:
    tap = layer.tap
    share = f'<span class="share" style="width:{layer.blame * 120:.0f}px"></span>'
    numbers = (
        decibels(layer.sqnr), f"{layer.max_error:.3g}", f"{layer.max_value:.3g}",
        percent(layer.saturation),
    )  # fmt: skip
    cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return (
        f'<tr><td class="mono">{escape(tap.module or tap.name)}</td>'
        f'<td class="mono">{escape(tap.op)}</td>'
        f'<td class="number">{percent(layer.blame)}</td><td>{share}</td>{cells}'
        f"<td>{_histogram(layer)}</td>"
        f'<td class="mono" title="{escape(str(tap.source))}">{escape(tap.source.brief)}</td></tr>'
    )


def _histogram(layer: Layer) -> str:
    most = max(layer.histogram, default=0)
    if not most:
        return ""
    bars = []
    for i, count in enumerate(layer.histogram):
        height = _HEIGHT * count / most
        bars.append(
            f'<rect x="{5 * i}" y="{_HEIGHT - height:.1f}" width="4" height="{height:.1f}"/>'
        )
    title = f"from {-layer.reach:.3g} to {layer.reach:.3g}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img"><title>{title}</title>'
        f"{''.join(bars)}</svg>"
    )
