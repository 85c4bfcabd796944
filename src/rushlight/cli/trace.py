"""`rushlight trace`: runs of a program as a timeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    DataOption,
    FormOption,
    MethodOption,
    ModelArgument,
    ThreadsOption,
    TracebackOption,
    console,
    help_text,
    reports_errors,
    write_output,
)
from rushlight.cli.run import InputOption, SeedOption
from rushlight.errors import Code, RunError

if TYPE_CHECKING:
    from rushlight.schema.etdump import ETDump

NAME = "trace"
HELP = help_text(
    "Run a program and write what it did and when: as JSON for ui.perfetto.dev and "
    "chrome://tracing, or as an ETDump. Needs no PyTorch; inputs that are not given are made up. "
    "Given an ETDump, also one of a phone, turn it into JSON.",
    (
        "rushlight trace model.pte -o trace.json",
        "rushlight trace model.pte -o trace.etdp --values all --repeat 20",
        "rushlight trace model.pte --etdump phone.etdp -o phone.json",
    ),
)
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="NAME.json or NAME.etdp.")
]
Dump = Annotated[
    Path | None,
    typer.Option("--etdump", metavar="FILE.etdp", help="Show this trace; nothing is run."),
]
Values = Annotated[
    str,
    typer.Option(
        "--values", metavar="none|outputs|all", help="The values that an ETDump has beside it."
    ),
]


@reports_errors
def main(
    model: ModelArgument,
    output: Output,
    inputs: InputOption = None,
    etdump: Dump = None,
    values: Values = "none",
    method: MethodOption = "forward",
    threads: ThreadsOption = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Runs.")] = 5,
    seed: SeedOption = 0,
    backend: FormOption = None,
    data: DataOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.cli.inputs import complete, read_inputs
    from rushlight.inspect.trace.etdump import read_etdump
    from rushlight.runtime.load import load
    from rushlight.runtime.trace import TraceOptions

    if output.suffix not in (".json", ".etdp") or (etdump is not None and output.suffix != ".json"):
        wanted = "NAME.json" if etdump is not None else "NAME.json or NAME.etdp"
        raise RunError(f"-o {output}: give {wanted}", code=Code.INVALID_ARGUMENT)
    if etdump is not None:
        _write_json(output, model, read_etdump(etdump))
        return
    options = TraceOptions(values=values)
    module = load(model, threads=threads, backend=backend, data=data, trace=options)
    chosen = module[method]
    flat = complete(
        chosen, read_inputs(inputs or [], chosen.contract.inputs), random=True, seed=seed
    )
    args, kwargs = chosen.contract.in_spec.unflatten(iter(flat))
    for _ in range(repeat):
        chosen.call(args, kwargs)
    if output.suffix == ".etdp":
        module.trace.save(output)
    else:
        _write_json(output, model, read_etdump(module.trace.to_bytes()[0]))
    events, lost = module.trace.dropped
    if events or lost:
        console(stderr=True).print(
            f"{events} events and {lost} values found no room: give a smaller --repeat"
        )


def _write_json(output: Path, model: str, dump: ETDump) -> None:
    from rushlight.inspect.program import report_of
    from rushlight.inspect.trace.chrome import chrome_trace
    from rushlight.inspect.trace.events import TimeScale, blocks_of
    from rushlight.inspect.trace.identity import mismatches_of
    from rushlight.inspect.trace.origins import ProgramOrigins
    from rushlight.runtime.source import map_file
    from rushlight.serialize.bundle import program_in

    origins = ProgramOrigins(program_in(map_file(model)))
    blocks = blocks_of(dump, None, TimeScale.NS, TimeScale.NS, None, None)
    mismatches = mismatches_of(blocks, origins)
    trace = chrome_trace(dump) if mismatches else chrome_trace(dump, origins, report_of(model))
    write_output(output, json.dumps(trace))
    for mismatch in mismatches:
        console(stderr=True).print(
            f"the trace is of another program than {model}: {mismatch}. Its events are written "
            "without lines and memory",
            style="yellow", markup=False, soft_wrap=True,
        )  # fmt: skip
