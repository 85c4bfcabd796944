"""Options that the commands for language models share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.errors import Code, RunError
from rushlight.files import open_file

if TYPE_CHECKING:
    from rushlight import _core
    from rushlight.llm.runner import Runner

KvOption = Annotated[
    str,
    typer.Option(
        "--kv", help="What keys and values are stored in: float32, float16, int8 (the default)."
    ),
]
CacheOption = Annotated[
    int | None, typer.Option("--cache-limit", help="The most bytes for keys and values.")
]
TemplateOption = Annotated[
    str | None,
    typer.Option(
        "--chat-template",
        metavar="PATH",
        help="Of a program without one: a file with a Jinja template.",
    ),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="PATH",
        help="Of a program without one: a folder, tokenizer.json or tokenizer.model.",
    ),
]
AdapterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--adapter",
        metavar="[NAME=]PATH",
        help="An adapter that rushlight llm adapter wrote; repeatable. Without a name it has the "
        "file's.",
    ),
]


def read_adapters(arguments: list[str] | None, runner: Runner) -> dict[str, _core.LlmAdapter]:
    """Load adapters by their names.

    Args:
        arguments: "name=path" or "path".
        runner: the model.

    Raises:
        RunError: two have one name, or a file is refused.
    """
    adapters = {}
    for one in arguments or []:
        name, equals, path = one.partition("=")
        name, path = (name, path) if equals else (Path(one).stem, one)
        if not name or name in adapters:
            raise RunError(
                f"--adapter {one}: give each a name of its own, as in NAME={path}",
                code=Code.INVALID_ARGUMENT,
            )
        adapters[name] = runner.load_adapter(path)
    return adapters


def load(
    model: str,
    threads: int | None,
    kv: str,
    cache_limit: int | None,
    tokenizer: str | None,
    chat_template: str | None,
) -> Runner:
    """A language model that text can be generated with.

    Args:
        model: the program's path.
        threads, kv, cache_limit, tokenizer: as for `rushlight.llm.load`.
        chat_template: the path of a template; None for the program's own.

    Raises:
        LoadError: the program cannot be loaded.
        RunError: the template cannot be read.
    """
    from rushlight.llm.loading import load

    return load(
        model,
        threads=threads,
        kv=kv,
        cache_limit=cache_limit,
        tokenizer=tokenizer,
        chat_template=read_template(chat_template),
    )


def read_template(path: str | None) -> str | None:
    """The text of a chat template.

    Args:
        path: of its file; None for none.

    Raises:
        RunError: it cannot be read.
    """
    if path is None:
        return None
    try:
        with open_file(path) as file:
            return file.read().decode()
    except (OSError, ValueError) as error:
        raise RunError(
            f"--chat-template: cannot read {path}: {error}", code=Code.ACCESS_FAILED
        ) from None
