"""The runtimes of language models that are compared, and what their benchmarks have in common."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import environments
import forms
import shapes
from environments import MissingError
from forms import Forms

from rushlight.files import write_text
from rushlight.peers.side import Side, SideError

SIDE = forms.ROOT / "benchmarks" / "sides" / "llm_side.py"


@dataclass(frozen=True)
class Engine:
    """A way to run a model.

    Attributes:
        title: its name in tables.
        runtime: a key of `RUNTIMES` in `llm_side.py`, and of its environment.
        form: the file that it runs.
        options: of opening.
    """

    title: str
    runtime: str
    form: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether it is no peer."""
        return self.runtime == "rushlight"

    def start(self) -> Side:
        """A process for it.

        Raises:
            MissingError: its environment cannot be made.
        """
        name = "" if self.is_ours else self.runtime
        return Side(environments.python_of(name), SIDE, threads=2)


OURS = {
    "8da4w": Engine("8da4w", "rushlight", "8da4w.pte"),
    "8da4w-int8kv": Engine("8da4w, int8 cache", "rushlight", "8da4w.pte", {"kv": "int8"}),
    "int8": Engine("int8", "rushlight", "int8.pte"),
}
PEERS = {
    "llamacpp": Engine("llama.cpp Q4_0", "llamacpp", "q4_0.gguf"),
    "llamacpp-q8": Engine("llama.cpp Q8_0", "llamacpp", "q8_0.gguf"),
    "executorch": Engine("ExecuTorch 8da4w", "executorch", "executorch.pte"),
    "openvino": Engine("OpenVINO Q4_0", "openvino", "q4_0.gguf"),
    "onnxruntime": Engine("ONNX Runtime int4", "onnxruntime", "onnxruntime"),
}


def parser(
    description: str | None, models: Sequence[str] = tuple(shapes.SHAPES)
) -> argparse.ArgumentParser:
    """A command line with the options that all these benchmarks have.

    Args:
        description: of the benchmark.
        models: its own, if others are not asked for.
    """
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_names(options, "--models", list(shapes.SHAPES), list(models), "shapes")
    add_names(options, "--forms", list(OURS), list(OURS), "forms of ours")
    add_names(options, "--peers", list(PEERS), list(PEERS), "who to measure beside")
    options.add_argument(
        "--threads",
        type=lambda text: [int(n) for n in text.split(",")],
        default=[1, 2],
        help="numbers of threads, with commas (default: 1,2)",
    )
    options.add_argument("--repeat", type=int, default=3, help="turns (default: %(default)s)")
    options.add_argument("--layers", type=int, help="of the models; default: their own")
    options.add_argument(
        "--work", type=Path, default=forms.FOLDER, help="where models are kept (%(default)s)"
    )
    options.add_argument("--json", type=Path, help="folder to write the figures to, too")
    return options


def add_names(
    options: argparse.ArgumentParser, option: str, known: list[str], default: list[str], what: str
) -> None:
    def read(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r}: there are {', '.join(known)}")
        return names

    options.add_argument(
        option,
        type=read,
        default=default,
        help=f"{what}, with commas (default: {','.join(default)})",
    )


def chosen(arguments: argparse.Namespace) -> dict[str, Engine]:
    """The engines that are asked for, ours first."""
    return {
        **{name: OURS[name] for name in arguments.forms},
        **{name: PEERS[name] for name in arguments.peers},
    }


@contextmanager
def opened(
    engines: dict[str, Engine], model: Forms, threads: int, missing: dict[str, str]
) -> Iterator[dict[str, Side]]:
    """A process for each engine, with the model open.

    Args:
        engines: by name; those that cannot be measured are left out.
        model: its files.
        threads: of each.
        missing: gets the reasons of those that are left out, by title; those in it are.
    """
    with ExitStack() as stack:
        sides = {}
        for name, engine in engines.items():
            if engine.title in missing:
                continue
            try:
                file = str(model.file(engine.form))
                forms.evict(Path(file))
                side = stack.enter_context(engine.start())
                side.call(
                    "open",
                    runtime=engine.runtime,
                    file=file,
                    threads=threads,
                    context=forms.CONTEXT,
                    **engine.options,
                )
                sides[name] = side
            except MissingError as error:
                missing[engine.title] = str(error)
            except SideError as error:
                missing[engine.title] = error.reason
        yield sides


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    line = ["-" * width + ("" if i == 0 else ":") for i, width in enumerate(widths)]
    print(f"\n### {title}\n")
    for row in (heads, line, *rows):
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width + (row is not line))
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print(f"| {' | '.join(cells)} |")
    print(flush=True)


def show_missing(model: Forms, missing: dict[str, str]) -> None:
    """Print who was left out for a model, and why."""
    for title, reason in missing.items():
        print(f"{title} is left out for {model.folder.name}: {reason}\n")


def write_figures(folder: Path | None, name: str, figures: Any) -> None:
    """Write figures as JSON, if there is a folder for them."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{name}.json", json.dumps(figures, indent=1) + "\n")


def say(text: str) -> None:
    """Print progress on standard error."""
    print(text, file=sys.stderr, flush=True)
