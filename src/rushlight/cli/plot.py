"""The picture of `rushlight bench --compare --plot`: a bar for each row of the table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rushlight.errors import Code, RunError
from rushlight.files import replacing

if TYPE_CHECKING:
    from rushlight.peers.compare import Row

_KINDS = (".png", ".svg")
_WIDE = 30.0  # slowest to fastest: beyond this ratio the axis is logarithmic
_OURS, _THEIRS = "#d9822b", "#8a9ba8"


def check(path: str) -> None:
    """Check that a picture can be written.

    Raises:
        RunError: matplotlib is missing, or the name has another suffix or no folder.
    """
    if Path(path).suffix not in _KINDS:
        raise RunError(
            f"--plot {path!r}: give a name that ends in {' or '.join(_KINDS)}",
            code=Code.INVALID_ARGUMENT,
        )
    if not Path(path).resolve().parent.is_dir():
        raise RunError(
            f"--plot {path!r}: there is no such folder; check the path", code=Code.ACCESS_FAILED
        )
    if find_spec("matplotlib") is None:
        raise RunError(
            "--plot needs matplotlib, which is not installed: pip install 'rushlight[plot]'",
            code=Code.NOT_FOUND,
        )


def write(path: str, title: str, rows: Sequence[Row]) -> None:
    """Draw the timed rows as bars, with whiskers from the 10th to the 90th percentile.

    Raises:
        RunError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    medians = [1e3 * row.median for row in rows]
    cuts = [row.p10_p90 for row in rows]
    below = [max(m - 1e3 * low, 0) for m, (low, _) in zip(medians, cuts, strict=True)]
    above = [max(1e3 * high - m, 0) for m, (_, high) in zip(medians, cuts, strict=True)]
    figure = Figure(figsize=(8, 1.2 + 0.4 * len(rows)), layout="constrained")
    axes = figure.subplots()
    colors = [_OURS if row.title.startswith("Rushlight") else _THEIRS for row in rows]
    places = range(len(rows))
    axes.barh(places, medians, xerr=(below, above), color=colors, height=0.65, capsize=2)
    for place, ms, more in zip(places, medians, above, strict=True):
        axes.annotate(f" {ms:.3g}", (ms + more, place), va="center", fontsize=9)
    if max(medians) > _WIDE * min(medians):
        axes.set_xscale("log")
    axes.set_yticks(places, [row.title for row in rows])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("milliseconds a call: the median, 10th to 90th percentile")
    axes.set_title(title, loc="left", fontsize=10)
    try:
        with replacing(path) as file:
            figure.savefig(file, dpi=150, format=Path(path).suffix[1:])
    except OSError as error:
        raise RunError(
            f"cannot write {path!r}: {error.strerror}; check the path", code=Code.ACCESS_FAILED
        ) from error
