"""Shared by the commands: options, consoles, errors without tracebacks, texts of help pages."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from rushlight.errors import Code, Error
from rushlight.files import new_folder, write_text

if TYPE_CHECKING:
    from rich.console import Console

_PACKAGE = str(Path(__file__).resolve().parents[1])
F = TypeVar("F", bound=Callable[..., Any])

TracebackOption = Annotated[
    bool, typer.Option("--traceback", help="Show where in Rushlight's code an error was raised.")
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL.pte", help="The program file.")]
MethodOption = Annotated[
    str, typer.Option("--method", "-m", metavar="NAME", help="The method to run.")
]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", help="Threads that kernels may use; all cores by default."),
]
FormOption = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="The form of a fat program to use; the first that runs here by default.",
    ),
]
DataOption = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE.ptd", help="The data file, if the weights are in one."),
]

KernelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kernels",
        metavar="FILE.so",
        help="A library of kernels for operators of your own. Give it once for each file.",
    ),
]

# Advice that errors give in Python, and the command's option that does the same.
_OPTIONS = {
    "verify=False": "--no-verify",
    "backend='portable'": "--backend portable",
    "recipe='int8-dynamic'": "--quantize int8-dynamic",
    "calibrate=[(x,), ...]": "--calibrate FILE.py:NAME",
    "kernels=['libacme.so']": "--kernels libacme.so",
    "kernels=[...]": "--kernels FILE.so",
}
_HELP_WIDTH = 70  # columns of an example, without its prompt and backslash
_PIPE_WIDTH = 120  # columns if the output is not a terminal


def help_text(summary: str, examples: Sequence[str]) -> str:
    """The text of a command's help page: a summary, then examples that keep their line breaks."""
    lines = "\n".join(_example(example) for example in examples)
    return f"{summary}\n\n\b\nExamples:\n{lines}"


def _example(line: str) -> str:
    """An example command of a help page, broken into several lines if it is too long for one."""
    parts = textwrap.wrap(line, _HELP_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "  $ " + " \\\n      ".join(parts)


def console(*, stderr: bool = False) -> Console:
    """A console for standard output or error. Its width is the terminal's, or COLUMNS if that is
    set; output to a file or a pipe is wide enough for tables."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False)


def write_output(path: str | os.PathLike[str], text: str) -> None:
    """Write what a command makes, such as a page.

    Raises:
        Error: the file cannot be written; says why.
    """
    try:
        write_text(path, text)
    except OSError as error:
        raise Error(
            f"cannot write {os.fspath(path)!r}: {error.strerror}; check the path",
            code=Code.ACCESS_FAILED,
        ) from error


def write_package(target: Path, files: Mapping[str, str]) -> None:
    """Write the folder of a new package, all of it or nothing.

    Args:
        target: the folder, which is not there yet.
        files: the text of each file by its path in the folder.

    Raises:
        Error: the folder is there already, or cannot be written.
    """
    if target.exists():
        raise Error(
            f"{target} is there already: give another name or --dir", code=Code.INVALID_ARGUMENT
        )
    try:
        with new_folder(target) as made:
            for path, text in files.items():
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Error(f"{target} cannot be written: {error}", code=Code.ACCESS_FAILED) from error


def _in_options(message: str) -> str:
    """The message, with advice in Python replaced by options of the command line."""
    for argument, option in _OPTIONS.items():
        message = message.replace(argument, option)
    return message


def _tell(message: str, style: str) -> None:
    from rich.text import Text

    out = console(stderr=True)
    # In a pipe a line is not broken, so that it can be searched.
    out.print(Text(message, style=style), soft_wrap=not out.is_terminal)


@contextmanager
def _warnings_as_messages() -> Iterator[None]:
    """Show warnings of this package without the line of Python that they came from."""
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if filename.startswith(_PACKAGE):
            _tell(f"warning: {_in_options(str(message))}", "yellow")
        else:
            before(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def reports_errors(command: F, *, status: int = 1) -> F:
    """Makes a command print a `rushlight.Error` as one message and exit with a code, and warnings
    of this package as messages."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            with _warnings_as_messages():
                return command(*args, **kwargs)
        except Error as error:
            if kwargs.get("traceback"):
                raise
            _tell(f"error: {_in_options(str(error))}", "red")
            raise typer.Exit(status) from None

    return wrapped  # type: ignore[return-value]


def takes_kernels(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the option `--kernels`, whose libraries it can use while it runs."""

    @reports_errors
    @functools.wraps(command)
    def wrapped(*args: Any, kernels: list[str] | None = None, **kwargs: Any) -> Any:
        from rushlight.runtime.registries import lent_kernels

        with lent_kernels(kernels or []):
            return command(*args, **kwargs)

    own = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(
        "kernels", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=KernelsOption
    )
    signature = own.replace(parameters=[*own.parameters.values(), option])
    setattr(wrapped, "__signature__", signature)  # noqa: B010
    wrapped.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return wrapped
