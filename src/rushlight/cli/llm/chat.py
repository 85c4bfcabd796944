"""`rushlight llm chat`: talk with a model."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rushlight.cli.common import (
    ModelArgument,
    ThreadsOption,
    TracebackOption,
    console,
    help_text,
    reports_errors,
)
from rushlight.cli.llm import common
from rushlight.errors import Code, Error, RunError
from rushlight.files import open_file, write_text

if TYPE_CHECKING:
    from rushlight import _core
    from rushlight.llm.reply import Statistics
    from rushlight.llm.runner import Runner, Session

NAME = "chat"
COMMANDS = """\
/rewind [N]   take back the last N questions and replies (1)
/fork NAME    keep the conversation as it is now under a name
/use NAME     go on with a conversation that was kept
/save FILE    write the conversation to FILE, and what was said to FILE.json
/restore FILE go on with a conversation from a file
/new          begin a new conversation
/adapter NAME begin a new conversation with an adapter; without a name, with the model alone
/help         this list
/exit         leave (also Ctrl-D); Ctrl-C ends a reply"""
HELP = help_text(
    "Talk with a model. Replies appear as they are written. A model without a chat template goes "
    "on with the text. Commands begin with a slash; /help lists them.",
    (
        "rushlight llm chat m.pte",
        "rushlight llm chat m.pte --adapter sql=sql.ptd",
        'rushlight llm chat m.pte --system "Answer in one sentence." --temperature 0.7',
    ),
)


@reports_errors
def main(
    model: ModelArgument,
    system: Annotated[str | None, typer.Option("--system", help="The system prompt.")] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="0 takes the most probable token.")
    ] = None,
    top_p: Annotated[float | None, typer.Option("--top-p")] = None,
    min_p: Annotated[float | None, typer.Option("--min-p")] = None,
    seed: Annotated[int | None, typer.Option("--seed")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="The most tokens of a reply.")
    ] = None,
    kv: common.KvOption = "auto",
    cache_limit: common.CacheOption = None,
    tokenizer: common.TokenizerOption = None,
    chat_template: common.TemplateOption = None,
    adapter: common.AdapterOption = None,
    threads: ThreadsOption = None,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    runner = common.load(model, threads, kv, cache_limit, tokenizer, chat_template)
    options = {
        "temperature": temperature,
        "top_p": top_p,
        "min_p": min_p,
        "seed": seed,
        "max_tokens": max_tokens,
    }
    talk = Talk(runner, system, options, common.read_adapters(adapter, runner))
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # of bytes that are not UTF-8
    is_terminal = sys.stdin.isatty()
    while True:
        if is_terminal:
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line or not talk.answer(line.rstrip("\n")):
            return


class Talk:
    """A conversation with its history, and those that were kept beside it.

    Args:
        runner: the model.
        system: the system prompt; None for none.
        options: of `Runner.generate`.
        adapters: by their names; the first conversation has the first one.
    """

    def __init__(
        self,
        runner: Runner,
        system: str | None,
        options: dict[str, Any],
        adapters: Mapping[str, _core.LlmAdapter],
    ) -> None:
        self._runner = runner
        self._options = options
        self._adapters = adapters
        self._adapter = next(iter(adapters.values()), None)
        self._system = [{"role": "system", "content": system}] if system is not None else []
        self._kept: dict[str, tuple[Session, list[Any]]] = {}
        self._begin()

    def _begin(self) -> None:
        self._session = self._runner.session(adapter=self._adapter)
        # Messages; without a chat template the numbers of tokens before each question.
        self._history: list[Any] = list(self._system) if self._runner.has_chat else []

    def answer(self, line: str) -> bool:
        """Answer a question, or obey a command; False if it is /exit.

        Args:
            line: what the user wrote.
        """
        word, _, rest = line.partition(" ")
        try:
            if word == "/exit":
                return False
            if word.startswith("/"):
                self._obey(word, rest.strip())
            elif line:
                self._reply(line)
        except Error as error:
            console(stderr=True).print(f"error: {error}", style="red", markup=False)
        return True

    def _obey(self, word: str, rest: str) -> None:
        out = console()
        if word == "/rewind":
            out.print(f"took back {self._rewind(int(rest) if rest.isdecimal() else 1)}")
        elif word == "/fork" and rest:
            self._kept[rest] = (self._session.fork(), list(self._history))
        elif word == "/use" and rest in self._kept:
            session, history = self._kept[rest]
            self._session, self._history = session.fork(), list(history)
            self._adapter = session.adapter
        elif word == "/use":
            out.print(f"there are {', '.join(self._kept) or 'none'}: /use NAME", markup=False)
        elif word == "/save" and rest:
            self._session.save(rest)
            _write_history(rest, self._history)
            out.print(f"wrote {rest}", markup=False)
        elif word == "/restore" and rest:
            session = self._runner.restore(rest, adapter=self._adapter)
            self._history = self._read_history(rest, session)
            self._session = session
            out.print(self._session.text, markup=False)
        elif word == "/new":
            self._begin()
        elif word == "/adapter" and (not rest or rest in self._adapters):
            self._adapter = self._adapters[rest] if rest else None
            self._begin()
        elif word == "/adapter":
            out.print(f"there are {', '.join(self._adapters) or 'none'}", markup=False)
        else:
            out.print(COMMANDS, markup=False)

    def _rewind(self, count: int) -> int:
        done = 0
        for _ in range(count):
            if self._runner.has_chat:
                if len(self._history) < len(self._system) + 2:
                    break
                del self._history[-2:]
            else:
                if not self._history:
                    break
                self._session.rewind(len(self._session.tokens) - self._history.pop())
            done += 1
        return done

    def _reply(self, question: str) -> None:
        if self._runner.has_chat:
            messages = [*self._history, {"role": "user", "content": question}]
            text = self._write(messages)
            self._history = [*messages, {"role": "assistant", "content": text}]
        else:
            before = len(self._session.tokens)
            self._write(question)
            self._history.append(before)

    def _write(self, prompt: Any) -> str:
        """Generate and print; Ctrl-C ends the reply, and what was written counts."""
        text = ""
        with self._session.stream(prompt, **self._options) as stream:
            try:
                for piece in stream:
                    text += piece.text
                    print(piece.text, end="", flush=True)
            except KeyboardInterrupt:
                pass
        print(flush=True)
        if sys.stdout.isatty():
            console(stderr=True).print(_figures(stream.statistics), style="dim")
        return text

    def _read_history(self, path: str, session: Session) -> list[Any]:
        """What was said in a session, from the file beside the session's."""
        try:
            with open_file(f"{path}.json") as file:
                history = json.loads(file.read())
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"cannot read {path}.json: {error}", code=Code.ACCESS_FAILED) from None
        is_right = _are_messages if self._runner.has_chat else _are_lengths
        if not isinstance(history, list) or not is_right(history, len(session.tokens)):
            raise RunError(
                f"{path}.json is not what was said in this session: give a file that /save wrote "
                f"with this model",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        return history


def _are_messages(history: list[Any], _: int) -> bool:
    """Whether a history is one of a model with a chat template."""
    return all(
        isinstance(message, dict)
        and set(message) == {"role", "content"}
        and all(isinstance(value, str) for value in message.values())
        for message in history
    )


def _are_lengths(history: list[Any], most: int) -> bool:
    """Whether a history has the lengths that a text of `most` tokens had before each question."""
    if not all(type(length) is int and 0 <= length <= most for length in history):
        return False
    return history == sorted(history)


def _write_history(path: str, history: list[Any]) -> None:
    """Write what was said beside the session's file."""
    try:
        write_text(f"{path}.json", json.dumps(history, ensure_ascii=False))
    except OSError as error:
        raise RunError(
            f"cannot write {path}.json: {error.strerror}", code=Code.ACCESS_FAILED
        ) from None


def _figures(statistics: Statistics) -> str:
    """What a reply cost, in a line."""
    parts = [
        f"{statistics.output_tokens} tokens",
        f"{statistics.decode_rate:.1f} tok/s",
        f"first after {statistics.first_token * 1e3:.0f} ms",
    ]
    if statistics.reused_tokens:
        parts.append(
            f"{statistics.reused_tokens} of {statistics.prompt_tokens} prompt tokens reused"
        )
    if statistics.guessed_tokens:
        parts.append(f"{statistics.accepted_tokens} of {statistics.guessed_tokens} guesses right")
    return ", ".join(parts)
