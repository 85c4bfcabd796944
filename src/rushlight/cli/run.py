"""`rushlight run`: a program on inputs from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

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
)
from rushlight.errors import Code, RunError
from rushlight.files import replacing

if TYPE_CHECKING:
    from rich.table import Table

NAME = "run"
HELP = help_text(
    "Run a program and show what it returns. Needs no PyTorch.",
    (
        "rushlight run model.pte --input x.npy",
        "rushlight run model.pte --input x=x.npy --output y.npz",
        "rushlight run model.pte --input inputs.npz --method forward",
        "rushlight run model.pte --random",
    ),
)

InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "--inputs",
        "-i",
        metavar="[NAME=]FILE",
        help="A .npy file for the next input or the one called NAME, or a .npz file with inputs "
        "by name. Give it once for each file.",
    ),
]
RandomOption = Annotated[
    bool, typer.Option("--random", help="Make up the inputs that are not given.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Of the random inputs.")]


@reports_errors
def main(
    model: ModelArgument,
    inputs: InputOption = None,
    method: MethodOption = "forward",
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the results: .npz, or .npy if there is one.",
        ),
    ] = None,
    random: RandomOption = False,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    backend: FormOption = None,
    data: DataOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.cli.inputs import complete, named_outputs, read_inputs
    from rushlight.runtime.load import load

    module = load(model, threads=threads, backend=backend, data=data)
    chosen = module[method]
    values = read_inputs(inputs or [], chosen.contract.inputs)
    flat = complete(chosen, values, random=random, seed=seed)
    args, kwargs = chosen.contract.in_spec.unflatten(iter(flat))
    results = named_outputs(chosen, chosen.call(args, kwargs))
    out = console()
    for form in module.forms:
        out.print(f"form {form.form}: {'used, ' if form.chosen else ''}{form.why}", markup=False)
    out.print(_table(results))
    if output is not None:
        _save(output, results)
        out.print(f"wrote {output}", markup=False)


def _table(results: Mapping[str, Any]) -> Table:
    """Names, types and a few figures of the results."""
    from rich.text import Text

    from rushlight.inspect.text import table_of

    columns = ("result", "type", "min", "mean", "max", "first values")
    table = table_of("", *columns, right=(2, 3, 4), drop=(5, 3))
    for name, value in results.items():
        table.add_row(Text(name), *(Text(cell) for cell in _row(value)))
    return table


def _row(value: Any) -> tuple[str, str, str, str, str]:
    import numpy as np

    if not isinstance(value, np.ndarray):
        return type(value).__name__, "", "", "", repr(value)
    kind = f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    first = ", ".join(_number(x) for x in value.reshape(-1)[:4]) + (" …" if value.size > 4 else "")
    if value.size == 0 or value.dtype == np.bool_:
        return kind, "", "", "", first
    wide = value.astype(np.complex128 if np.iscomplexobj(value) else np.float64)
    if np.iscomplexobj(value):
        return kind, "", _number(wide.mean()), "", first
    return kind, _number(wide.min()), _number(wide.mean()), _number(wide.max()), first


def _number(value: Any) -> str:
    import numpy as np

    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _save(path: str, results: Mapping[str, Any]) -> None:
    import numpy as np

    try:
        if path.endswith(".npy") and len(results) == 1:
            with replacing(path) as file:
                np.save(file, np.asarray(next(iter(results.values()))))
        elif path.endswith(".npz"):
            with replacing(path) as file:
                arrays: dict[str, Any] = {n: np.asarray(value) for n, value in results.items()}
                np.savez(file, **arrays)
        else:
            raise RunError(
                f"cannot write {len(results)} results to {path!r}: give a name that ends in .npz, "
                f"or in .npy for a single one",
                code=Code.INVALID_ARGUMENT,
            )
    except OSError as error:
        raise RunError(
            f"cannot write {path!r}: {error.strerror}; check the path", code=Code.ACCESS_FAILED
        ) from error
