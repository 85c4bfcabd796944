"""`rushlight accuracy`: what quantization costs each layer, or how far each can go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rushlight.cli.common import (
    TracebackOption,
    console,
    help_text,
    reports_errors,
    write_output,
)
from rushlight.errors import Code, ExportError

if TYPE_CHECKING:
    from rushlight.accuracy import Budgeted
    from rushlight.cli.export import Stages
    from rushlight.cli.target import Target

NAME = "accuracy"
HELP = help_text(
    "Tell what quantization costs: run a model (FILE.py:NAME, as `rushlight export` takes it) in "
    "float and quantised, and compare the values of each layer, the one that loses most first. "
    "With --metric and --max-drop, first find the precision of each layer: the smallest mix whose "
    "metric stays within the budget.",
    (
        "rushlight accuracy model.py:build --quantize int8 --calibrate model.py:data",
        "rushlight accuracy model.py:build --quantize int8-dynamic --inputs model.py:data "
        "--html loss.html",
        "rushlight accuracy model.py:build --calibrate model.py:data --metric model.py:score "
        "--max-drop 0.01 -o model.pte",
    ),
)
_DATA = "FILE.py:NAME of a function that returns, or an attribute that is, an iterable of inputs"


Recipe = Annotated[
    str | None,
    typer.Option(
        "--quantize", metavar="RECIPE", help="Default: int8. `rushlight recipes` lists all."
    ),
]
Calibration = Annotated[
    str | None,
    typer.Option("--calibrate", metavar="DATA", help=f"{_DATA}, to find ranges with."),
]
Inputs = Annotated[
    str | None,
    typer.Option(
        "--inputs", metavar="DATA", help=f"{_DATA}, to compare on. Default: --calibrate's."
    ),
]
BackendName = Annotated[
    str, typer.Option("--backend", metavar="NAME", help="What the quantised model runs on.")
]
Dynamic = Annotated[
    list[str] | None,
    typer.Option(
        "--dynamic", metavar="INPUT:DIM=MIN..MAX", help="A size that may vary in the inputs."
    ),
]
Score = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="FUNCTION",
        help="FILE.py:NAME of a function that takes a model and returns a number, greater for a "
        "better one.",
    ),
]
MaxDrop = Annotated[
    float | None,
    typer.Option("--max-drop", metavar="NUMBER", help="How far the metric may fall."),
]
Choices = Annotated[
    list[str] | None,
    typer.Option(
        "--recipe", metavar="RECIPE", help="With a metric: one to choose, the lowest first."
    ),
]
Workers = Annotated[
    int, typer.Option("--workers", metavar="N", help="With a metric: trials at a time.", min=1)
]
Resume = Annotated[
    str | None,
    typer.Option("--resume", metavar="FILE", help="With a metric: keeps finished trials."),
]
Page = Annotated[
    Path | None, typer.Option("--html", metavar="FILE.html", help="Write all as a page, too.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE.pte", help="Write the quantised program."),
]


@reports_errors
def main(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="model.py:build, or model.pt2")],
    quantize: Recipe = None,
    calibrate: Calibration = None,
    inputs: Inputs = None,
    backend: BackendName = "cpu",
    dynamic: Dynamic = None,
    metric: Score = None,
    max_drop: MaxDrop = None,
    recipes: Choices = None,
    workers: Workers = 1,
    resume: Resume = None,
    html: Page = None,
    output: Output = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.cli.export import Stages

    with Stages(console(stderr=True)) as stages:
        stages("import PyTorch")
        from rushlight.accuracy import compare
        from rushlight.api import export
        from rushlight.cli.target import read_data, read_target
        from rushlight.serialize.file import check_program_path

        if output is not None:
            check_program_path(output)
        stages("read the model")
        target = read_target(model)
        shapes = target.dynamic_shapes(dynamic or [])
        ranges = None if calibrate is None else list(read_data(calibrate))
        data: Any = ranges if inputs is None else list(read_data(inputs))
        if data is None:
            raise _wrong("give --inputs, or --calibrate: the layers are compared on some inputs")
        search = None
        if metric is None and max_drop is None:
            program = _by_recipe(target, quantize or "int8", ranges, shapes, stages)
        elif metric is None or max_drop is None or quantize is not None:
            raise _wrong("a search takes both --metric and --max-drop, and --recipe, no --quantize")
        else:
            options = {"recipes": recipes, "backend": backend, "workers": workers, "resume": resume}
            search = _within(target, ranges or data, metric, max_drop, shapes, stages, options)
            program = search.program
        stages("compare the layers")
        report = compare(target.model, program, data, backend=backend, dynamic_shapes=shapes)
        if output is not None:
            stages("export")
            export(program, backend=backend).save(output, quiet=True)
    if search is not None:
        console().print(search)
    console().print(report)
    if html is not None:
        write_output(html, report.html())


def _by_recipe(target: Target, recipe: str, data: Any, shapes: Any, stages: Stages) -> Any:
    from rushlight.quantization import quantize

    return quantize(
        target.model, target.args, target.kwargs, calibrate=data, recipe=recipe,
        dynamic_shapes=shapes, progress=stages,
    )  # fmt: skip


def _within(
    target: Target,
    data: Any,
    metric: str,
    max_drop: float,
    shapes: Any,
    stages: Stages,
    options: dict[str, Any],
) -> Budgeted:
    from rushlight.accuracy import quantize_within
    from rushlight.cli.target import read_object

    return quantize_within(
        target.model, data, read_object(metric), max_drop,
        dynamic_shapes=shapes, progress=stages, **options,
    )  # fmt: skip


def _wrong(why: str) -> ExportError:
    return ExportError(why, code=Code.INVALID_ARGUMENT)
