"""`rushlight llm serve`: OpenAI's API, and a chat page."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rushlight.cli.common import (
    ModelArgument,
    ThreadsOption,
    TracebackOption,
    help_text,
    reports_errors,
)
from rushlight.cli.llm import common
from rushlight.errors import Code, RunError

if TYPE_CHECKING:
    from rushlight.llm.runner import Runner
    from rushlight.llm.serve.settings import Settings

NAME = "serve"
HELP = help_text(
    "Serve a model over HTTP: OpenAI's API at /v1, and a page to chat with it at /. Only programs "
    "of this machine reach it, unless --host says otherwise.",
    (
        "rushlight llm serve m.pte",
        "rushlight llm serve m.pte --port 9000 --name my-model",
        "rushlight llm serve m.pte --adapter sql=sql.ptd",
        "RUSHLIGHT_API_KEY=secret rushlight llm serve m.pte --host 0.0.0.0",
    ),
)
_NEEDS = ("starlette", "uvicorn", "prometheus_client")


HostOption = Annotated[str, typer.Option("--host", help="The address to listen on.")]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any that is free.")
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="The model's id; the file's name by default.")
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar="RUSHLIGHT_API_KEY",
        help="What clients must send. Others on this machine see options: use the variable.",
    ),
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="A name that this machine has in URLs; repeatable."),
]
AllowOriginOption = Annotated[
    list[str] | None,
    typer.Option("--allow-origin", help="Another web page that may use the API; repeatable."),
]
ParallelOption = Annotated[
    int, typer.Option("--parallel", min=1, max=256, help="The most requests at once.")
]
QueueOption = Annotated[
    int, typer.Option("--queue", min=0, help="The most requests that wait; others are refused.")
]
TimeOption = Annotated[
    float, typer.Option("--time-limit", min=0.001, help="Seconds that a request may take.")
]
BodyOption = Annotated[
    int, typer.Option("--body-limit", min=1, help="The most bytes of a request.")
]


@reports_errors
def main(
    model: ModelArgument,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    name: NameOption = None,
    api_key: KeyOption = None,
    allow_host: AllowHostOption = None,
    allow_origin: AllowOriginOption = None,
    parallel: ParallelOption = 32,
    queue: QueueOption = 64,
    time_limit: TimeOption = 600.0,
    body_limit: BodyOption = 8 << 20,
    kv: common.KvOption = "auto",
    cache_limit: common.CacheOption = None,
    tokenizer: common.TokenizerOption = None,
    chat_template: common.TemplateOption = None,
    adapter: common.AdapterOption = None,
    threads: ThreadsOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    _check_packages()
    from rushlight.llm.serve import server
    from rushlight.llm.serve.settings import Settings

    settings = Settings(
        name=name or Path(model).stem,
        api_key=api_key,
        hosts=frozenset(one.lower() for one in [host, *(allow_host or [])]),
        origins=frozenset(one.rstrip("/").lower() for one in allow_origin or []),
        running=parallel,
        waiting=queue,
        body_bytes=body_limit,
        seconds=time_limit,
    )
    with server.listen(host, port) as sock:
        if not server.is_loopback(sock) and not api_key:
            raise RunError(
                f"--host {host}: other machines could use the model; set the environment variable "
                f"RUSHLIGHT_API_KEY, or leave --host out",
                code=Code.INVALID_ARGUMENT,
            )
        runner = common.load(model, threads, kv, cache_limit, tokenizer, chat_template)
        if not runner.has_text:
            raise RunError(
                f"{model} has no tokenizer, so that it can neither read nor write text: give one "
                f"with --tokenizer, or export the model with its tokenizer",
                code=Code.NOT_SUPPORTED,
            )
        settings = _with_adapters(settings, adapter, runner)
        typer.echo(f"{settings.name}: {server.address_of(sock)}  (Ctrl-C ends it)")
        server.serve(runner, settings, sock)


def _with_adapters(settings: Settings, arguments: list[str] | None, runner: Runner) -> Settings:
    """Settings with adapters, each of which has an id of its own."""
    adapters = common.read_adapters(arguments, runner)
    if settings.name in adapters:
        raise RunError(
            f"--adapter {settings.name}: that is the model's own id: give it another name",
            code=Code.INVALID_ARGUMENT,
        )
    return replace(settings, adapters=adapters)


def _check_packages() -> None:
    for package in _NEEDS:
        if importlib.util.find_spec(package) is None:
            raise RunError(
                f"a server needs {package}, which is not installed: pip install 'rushlight[serve]'",
                code=Code.NOT_FOUND,
            )
