"""`rushlight diff`: two versions of a program beside each other, and rules for what may change."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
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
    from rushlight.inspect.diff.model import MethodDiff, ProgramDiff
    from rushlight.inspect.diff.rules import Rule
    from rushlight.inspect.diff.verdicts import Verdict

NAME = "diff"
HELP = help_text(
    "Compare two programs: contract, sizes, memory plan, operators, delegation, and with --run or "
    "--input results and times on the same inputs. Each is a .pte or .bpte file, or a model, which "
    "is exported first. The exit code is 0 if no rule is broken, 1 if one is, 2 if the programs "
    "cannot be compared. Of two files, needs no PyTorch.",
    (
        "rushlight diff before.pte after.pte",
        "rushlight diff before.pte after.pte --run --html diff.html",
        'rushlight diff before.pte after.pte --input x.npy --fail-if "latency > 1.05x" '
        '--fail-if "accuracy < 40 dB"',
        "rushlight diff before.pte model.py:build --backend cpu --rules rules.txt",
    ),
)
_FILES = (".pte", ".bpte")

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="RULE",
        help='What must not be: "latency > 1.05x", "memory > 1.0x", "size > +100 KB", "accuracy < '
        '40 dB", "delegated < 95 %", "contract changed". Give it once for each rule.',
    ),
]
Rules = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help="A text file of rules, one a line; # comments."),
]
Backend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="What models are exported for (default: portable), and the form of fat programs.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="FILE.ptd",
        help="The data file, if the weights are in one; twice if each program has its own.",
    ),
]


@partial(reports_errors, status=2)
def main(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A file, or model.py:build.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The other.")],
    inputs: InputOption = None,
    run: Annotated[
        bool, typer.Option("--run", help="Run both; inputs that are not given are made up.")
    ] = False,
    fail_if: FailIf = None,
    rules: Rules = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", metavar="NAME", help="Run this one; all by default."),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Timed runs of each.")] = 40,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE.html", help="Write everything as a page.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON instead of tables.")
    ] = False,
    backend: Backend = None,
    data: Data = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.inspect.diff.compare import compare_files
    from rushlight.inspect.diff.verdicts import judge, needs_runs

    wanted = _rules(fail_if or [], rules)
    with tempfile.TemporaryDirectory(prefix="rushlight-diff-") as folder:
        files = (
            _file(before, Path(folder) / "before.pte", backend),
            _file(after, Path(folder) / "after.pte", backend),
        )
        diff = compare_files(*files, backend)
        diff.before, diff.after = (
            shown if model.endswith(_FILES) else model
            for model, shown in zip((before, after), (diff.before, diff.after), strict=True)
        )
        if run or inputs or method or needs_runs(wanted):
            from rushlight.cli.diff_runs import Runs

            runs = Runs(files, data or [], backend, threads, inputs or [], seed, repeat)
            for one in _chosen(diff.methods, method):
                one.run = runs.of(one)
        verdicts = judge(diff, wanted)
    if html is not None:
        from rushlight.inspect.diff.show import page

        write_output(html, page(diff, verdicts))
    _print(diff, verdicts, as_json)
    if any(verdict.outcome == "failed" for verdict in verdicts):
        raise typer.Exit(1)


def _print(diff: ProgramDiff, verdicts: Sequence[Verdict], as_json: bool) -> None:
    if as_json:
        told = {**diff.to_json(), "rules": [vars(verdict) for verdict in verdicts]}
        typer.echo(json.dumps(told, indent=1))
        return
    from rushlight.inspect.diff.show import terminal

    out = console()
    for part in terminal(diff, verdicts):
        out.print(part)


def _rules(texts: Sequence[str], file: Path | None) -> list[Rule]:
    from rushlight.inspect.diff.rules import parse_rule, parse_rules

    rules = []
    if file is not None:
        try:
            rules = parse_rules(file.read_text("utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
            raise RunError(
                f"--rules {str(file)!r} cannot be read: {reason}; give a text file of rules",
                code=Code.ACCESS_FAILED,
            ) from error
    return [*rules, *map(parse_rule, texts)]


def _file(model: str, made: Path, backend: str | None) -> Path:
    """The program file: the one that is named, or one that is exported of the model."""
    if model.endswith(_FILES):
        return Path(model)
    if ":" not in model and not model.endswith(".pt2"):
        raise RunError(
            f"{model!r} is no program and no model: give a .pte or .bpte file, or FILE.py:NAME",
            code=Code.INVALID_ARGUMENT,
        )
    from rushlight.cli.export import Stages

    with Stages(console(stderr=True)) as stages:
        stages("import PyTorch")
        from rushlight.api import export
        from rushlight.cli.target import read_target

        stages("read the model")
        target = read_target(model)
        stages(f"export {model}")
        program = export(
            target.model, target.args, target.kwargs, backend=backend or "portable", verify=False
        )
    program.save(made, quiet=True)
    return made


def _chosen(methods: Sequence[MethodDiff], name: str | None) -> Sequence[MethodDiff]:
    chosen = [m for m in methods if name in (None, m.name, m.after_name)]
    if not chosen and name is not None:
        known = ", ".join(m.name for m in methods) or "none"
        raise RunError(
            f"--method {name!r} is not in both programs; methods of both: {known}",
            code=Code.NOT_FOUND,
        )
    return chosen
