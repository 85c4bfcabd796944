"""Shared by the benchmark scripts: options, prepared models, peers, tables."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rushlight.files import write_text
from rushlight.peers.side import Side

ROOT = Path(__file__).resolve().parent.parent
EXECUTORCH_SIDE = ROOT / "tests" / "peer" / "executorch_side.py"
RUSHLIGHT_SIDE = ROOT / "benchmarks" / "sides" / "rushlight_side.py"

SEVEN = ("mobilenet_v2", "resnet50", "vit_b16", "minilm", "gpt2", "lstm2", "unet")


def parser(
    description: str | None, *, models: Sequence[str], repeat: int
) -> argparse.ArgumentParser:
    """A command line with the options that all benchmarks have."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if models:
        options.add_argument(
            "--models",
            type=lambda text: text.split(","),
            default=list(models),
            help="names from benchmarks/models.py, with commas (default: %(default)s)",
        )
    options.add_argument(
        "--repeat", type=int, default=repeat, help="measurements (default: %(default)s)"
    )
    options.add_argument(
        "--executorch",
        default=str(ROOT / ".venv-executorch" / "bin" / "python"),
        metavar="PYTHON",
        help="Python with ExecuTorch to measure beside us (`make peer` makes the default one)",
    )
    options.add_argument(
        "--work", type=Path, help="folder to keep programs in, for the next benchmark to use"
    )
    options.add_argument("--json", type=Path, help="write the figures to this file, too")
    return options


@dataclass(frozen=True)
class Sides:
    """The processes that are compared; each has one thread."""

    rushlight: Side
    executorch: Side


def start_rushlight() -> Side:
    """A process of ours."""
    return Side(sys.executable, RUSHLIGHT_SIDE)


def start_executorch(python: str) -> Side:
    """A process of real ExecuTorch."""
    if not Path(python).exists():
        sys.exit(f"{python} is missing: `make peer` makes it, --executorch names another")
    return Side(python, EXECUTORCH_SIDE)


@contextmanager
def both_sides(python: str) -> Iterator[Sides]:
    """Both processes, warmed up, so that the imports of an export are done."""
    with start_rushlight() as ours, start_executorch(python) as theirs:
        yield Sides(ours, theirs)


class Workshop:
    """Models made ready once: traced, with inputs and eager outputs, lowered by either side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def traced(self, name: str) -> str:
        """The model's file of ``torch.export.save``."""
        import models
        import torch

        path = self.folder / f"{name}.pt2"
        if not path.exists():
            torch.export.save(models.build(name).export(), path)
        return str(path)

    def data(self, name: str) -> str:
        """The .npz with the model's inputs and eager outputs."""
        import models

        path = self.folder / f"{name}.npz"
        if not path.exists():
            models.build(name).save_example(path)
        return str(path)

    def program(self, name: str, side: Side, by: str, **options: bool) -> str:
        """The .pte that `side` makes of the model with these options; `by` is the side's name."""
        path = self.folder / f"{name}.{by}.pte"
        if not path.exists():
            side.call("export", program=self.traced(name), pte=str(path), **options)
        return str(path)


@contextmanager
def workshop(folder: Path | None) -> Iterator[Workshop]:
    """A workshop in this folder, or in one that is removed at the end."""
    if folder is not None:
        yield Workshop(folder)
        return
    with tempfile.TemporaryDirectory(prefix="rushlight-bench-") as temporary:
        yield Workshop(Path(temporary))


def median(values: Iterable[float]) -> float:
    """The median."""
    return statistics.median(values)


def ratio(ours: float, theirs: float) -> str:
    """Ours as a share of theirs, for a table."""
    if not theirs:
        return "-"
    share = ours / theirs
    return f"{share:.2f}x" if share >= 0.095 else f"{share:.1g}x"


def table_of(title: str, columns: Sequence[str]) -> Table:
    """An empty table; the first column holds names, the others figures."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    return table


def print_table(table: Table) -> None:
    """Print it."""
    # A file or a pipe has no width of its own; a table must not be cut there.
    width = None if sys.stdout.isatty() else 120
    Console(width=width).print(table)


class Report:
    """Rows that are printed as a table at the end, and written as JSON if asked for."""

    def __init__(self, title: str, columns: Sequence[str]) -> None:
        self._columns = columns
        self._rows: list[dict[str, Any]] = []
        self._table = table_of(title, columns)

    def add(self, *cells: str, **figures: Any) -> None:
        """Add a row of `cells`, with the figures behind it; says so on standard error."""
        print("  ".join(cells), file=sys.stderr, flush=True)
        self._table.add_row(*cells)
        self._rows.append(figures or dict(zip(self._columns, cells, strict=True)))

    def finish(self, path: Path | None) -> None:
        """Print the table; write the figures to `path`."""
        print_table(self._table)
        if path is not None:
            write_text(path, json.dumps(self._rows, indent=1) + "\n")
