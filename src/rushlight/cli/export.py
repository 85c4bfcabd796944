"""`rushlight export`: a model in a Python file, or a saved ExportedProgram, becomes a program."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import TracebackOption, console, help_text, reports_errors

if TYPE_CHECKING:
    from rich.console import Console

    from rushlight.api import Program

NAME = "export"
HELP = help_text(
    "Turn a PyTorch model into a program (.pte), checked against PyTorch. MODEL is "
    "FILE.py:NAME or PACKAGE.MODULE:NAME, where NAME is a function that returns, or an attribute "
    "that is, a model, (model, args) or (model, args, kwargs) with example inputs; or a .pt2 file "
    "that torch.export.save wrote. Models are exported in eval mode.",
    (
        "rushlight export model.py:build -o model.pte",
        'rushlight export model.py:build -o model.pte --dynamic "x:0=1..8"',
        "rushlight export model.py:build -o model.pte --backend demo --backend portable",
        "rushlight export model.pt2 -o model.pte --no-verify",
        "rushlight export model.py:build --backend cpu --quantize int8 --calibrate model.py:data",
    ),
)

OutputOption = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE.pte", help="Default: the model's name with .pte."),
]
BackendsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="Where it runs; default: portable. Several make a fat program with a form for "
        "each, in order of preference.",
    ),
]
DynamicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dynamic",
        metavar="INPUT:DIM=MIN..MAX",
        help="A size that may vary. With the same NAME in INPUT:DIM=NAME:MIN..MAX sizes are "
        "equal. Give it once for each size.",
    ),
]
QuantizeOption = Annotated[
    str | None,
    typer.Option(
        "--quantize", metavar="RECIPE", help="Quantise it; `rushlight recipes` lists how."
    ),
]
CalibrateOption = Annotated[
    str | None,
    typer.Option(
        "--calibrate",
        metavar="DATA",
        help="FILE.py:NAME of a function that returns, or an attribute that is, an iterable "
        "of inputs like the real ones: tuples of arguments. For recipes that need data.",
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option("--verify/--no-verify", help="Run the program and compare it with PyTorch."),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse what leaves over 1 % of its cost to slow kernels."),
]

DebugOption = Annotated[
    str,
    typer.Option(
        "--debug",
        metavar="lines|full|none",
        help="How much the file tells of the Python lines that it came from: as much as fits in "
        "2 % of it or 16 KiB, all, or nothing.",
    ),
]

RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--etrecord",
        metavar="FILE.etrecord",
        help="Also write a record of the export, for the Inspector of traces.",
    ),
]

_COUNT = re.compile(r": \d+ of \d+$")


@reports_errors
def main(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="model.py:build, or model.pt2")],
    output: OutputOption = None,
    backend: BackendsOption = None,
    dynamic: DynamicOption = None,
    quantize: QuantizeOption = None,
    calibrate: CalibrateOption = None,
    verify: VerifyOption = True,
    strict: StrictOption = False,
    debug: DebugOption = "lines",
    etrecord: RecordOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    with Stages(console(stderr=True)) as stages:
        stages("import PyTorch")
        from rushlight.api import export
        from rushlight.cli.target import default_output, read_data, read_target
        from rushlight.serialize.file import check_program_path

        path = output or default_output(model)
        check_program_path(path)  # now, and not after an export of minutes
        stages("read the model")
        target = read_target(model)
        shapes = target.dynamic_shapes(dynamic or [])
        program = export(
            target.model,
            target.args,
            target.kwargs,
            dynamic_shapes=shapes,
            backend=_backend(backend),
            quantize=quantize,
            calibrate=None if calibrate is None else read_data(calibrate),
            verify=verify,
            strict=strict,
            debug=debug,
            etrecord=etrecord,
            progress=stages,
        )
        stages("write")
        program.save(path, quiet=True)
    print_report(program, path)


def print_report(program: Program, path: str) -> None:
    """Print what an exported program has become.

    Args:
        program: the program.
        path: where it was written.
    """
    from rushlight.inspect import report_of

    report = report_of(path, debug=program.manager.debug_map)
    console().print(dataclasses.replace(report, quantization=program.quantization))


def _backend(names: list[str] | None) -> str | list[str]:
    """One name is where the program runs; several are the forms of a fat program."""
    if not names:
        return "portable"
    return names if len(names) > 1 else names[0]


class Stages:
    """Shows what is being done: a spinner where there is a terminal, then a line with its time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("") if console.is_terminal else None
        self._stage = ""
        self._start = 0.0

    def __enter__(self) -> Stages:
        if self._status is not None:
            self._status.start()
        return self

    def __call__(self, stage: str) -> None:
        """Ends the stage before and begins `stage`; "name: 3 of 9" goes on with "name: 2 of 9"."""
        if _COUNT.sub("", stage) == _COUNT.sub("", self._stage) and _COUNT.search(stage):
            self._stage = stage
            if self._status is not None:
                self._status.update(stage)
            return
        self._finish("green", "✓")
        self._stage, self._start = stage, time.monotonic()
        if self._status is not None:
            self._status.update(stage)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
        self._finish("green" if error is None else "red", "✓" if error is None else "✗")

    def _finish(self, style: str, mark: str) -> None:
        from rich.text import Text

        if self._stage:
            seconds = f"  {time.monotonic() - self._start:.1f} s"
            line = Text.assemble((mark, style), f" {self._stage}", (seconds, "dim"))
            self._console.print(line)
        self._stage = ""
