"""`rushlight debug`: the first value of a program that departs from eager."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rushlight.cli.common import (
    TracebackOption,
    console,
    help_text,
    reports_errors,
    write_output,
)
from rushlight.errors import Code, Error

NAME = "debug"
HELP = help_text(
    "Run a model (FILE.py:NAME, as `rushlight export` takes it) in eager and as a program, compare "
    "every value between its operators, also inside delegates, and name the first that departs. "
    "Each operator is compared with what eager computes from the run's own values before it, so "
    "that one fault is not blamed on all that follows. The exit code is 1 if a value departs.",
    (
        "rushlight debug model.py:build --backend cpu",
        "rushlight debug model.py:build --quantize int8 --calibrate model.py:data "
        "--html values.html --replay replay.py",
        "rushlight debug model.py:build --backend cpu --device-trace phone.etdp",
    ),
)
_NO_VALUES = "record the trace with --etdump-values all, and copy its values, too"
_DATA = "FILE.py:NAME of a function that returns, or an attribute that is, an iterable of inputs"


BackendName = Annotated[
    str, typer.Option("--backend", metavar="NAME", help="What the program runs on.")
]
Recipe = Annotated[
    str | None, typer.Option("--quantize", metavar="RECIPE", help="`rushlight recipes` lists all.")
]
Calibration = Annotated[
    str | None,
    typer.Option("--calibrate", metavar="DATA", help=f"{_DATA}, to find ranges with."),
]
Dynamic = Annotated[
    list[str] | None,
    typer.Option("--dynamic", metavar="INPUT:DIM=MIN..MAX", help="A size that may vary."),
]
DeviceTrace = Annotated[
    Path | None,
    typer.Option(
        "--device-trace",
        metavar="FILE.etdp",
        help="A trace of the same program on the same inputs, recorded elsewhere with all values; "
        "they are read from FILE.etdp.values.",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE.html", help="Write all values as a page, too."),
]
Replay = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="FILE.py",
        help="Write a script that runs the operator that departs alone.",
    ),
]


@reports_errors
def main(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="model.py:build, or model.pt2")],
    backend: BackendName = "cpu",
    quantize: Recipe = None,
    calibrate: Calibration = None,
    dynamic: Dynamic = None,
    device_trace: DeviceTrace = None,
    html: Page = None,
    replay: Replay = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.cli.export import Stages

    with Stages(console(stderr=True)) as stages:
        stages("import PyTorch")
        from rushlight.cli.target import read_data, read_target
        from rushlight.debug import debug
        from rushlight.debug.replay import write_replay

        stages("read the model")
        target = read_target(model)
        stages("compare the values")
        departures = debug(
            target.model,
            target.args,
            target.kwargs,
            backend=backend,
            quantize=quantize,
            calibrate=None if calibrate is None else read_data(calibrate),
            dynamic_shapes=target.dynamic_shapes(dynamic or []),
            trace=None if device_trace is None else _trace(device_trace),
        )
    console().print(departures)
    if html is not None:
        write_output(html, departures.html())
    if departures.first is not None and replay is not None:
        write_replay(departures, departures.first, replay, backend)
    if departures.verdict:
        raise typer.Exit(1)


def _trace(path: Path) -> tuple[bytes, bytes]:
    values = path.with_name(f"{path.name}.values")
    contents = []
    for file in (path, values):
        try:
            contents.append(file.read_bytes())
        except OSError as error:
            what = _NO_VALUES if file == values else "check the path"
            raise Error(
                f"{str(file)!r} cannot be read: {error.strerror}; {what}",
                code=Code.ACCESS_FAILED,
            ) from error
    return (contents[0], contents[1])
