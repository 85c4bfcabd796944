"""Sessions in orders of use that are drawn: every text is what it is alone.

A text depends on its tokens, its options and its adapter, not on what is in the cache, what is
computed beside it or what was cancelled before. So the oracle is a session of another runner, with
room for all, to which the same tokens are given at once.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from peft_folders import Folder
from tiny_model import VOCABULARY, make_model, make_tokenizer, save

import rushlight.llm
from rushlight.errors import RunError
from rushlight.llm.grammar import Grammar
from rushlight.llm.reply import Stream
from rushlight.llm.runner import Runner, Session
from shared_files import SharedFiles

PAGE = 4096  # bytes, of 64 tokens of the tiny model
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["lamp", "light"]}, "n": {"type": "array", "maxItems": 3}},
    "required": ["kind", "n"],
}


@dataclass
class _Text:
    """A session, what it must have, and the stream that is open with what it will have given."""

    session: Session
    tokens: list[int]
    adapter: Any
    stream: Stream | None = None
    wanted: list[int] | None = None
    wanted_without_stop: list[int] | None = None


class _Orders:
    """Draws what is done next with some sessions of a runner."""

    def __init__(self, runner: Runner, oracle: Runner, adapters: Any, folder: Path, seed: str):
        self.chance = random.Random(seed)
        self.runner, self.oracle, self.folder = runner, oracle, folder
        self.adapters = adapters
        self.grammars = {
            who: [
                Grammar.from_regex("[a-z ]{3,30}", who.vocabulary),
                Grammar.from_json_schema(SCHEMA, who.vocabulary),
            ]
            for who in (runner, oracle)
        }
        self.shared = self.prompt(70)  # the beginning of many texts
        self.texts: list[_Text] = []
        self.most = runner.cache_limit // PAGE * 64 - 1
        self.saved = 0

    def prompt(self, most: int) -> list[int]:
        return [
            self.chance.randrange(2, VOCABULARY - 40) for _ in range(self.chance.randint(1, most))
        ]

    def options(self, room: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Options of a generation, for the runner and for the oracle."""
        chance = self.chance
        given: dict[str, Any] = {"max_tokens": chance.randint(1, min(40, room))}
        if chance.random() < 0.5:
            given.update(temperature=1.3, seed=chance.randrange(1000), top_k=40)
        else:
            given["temperature"] = 0
        if chance.random() < 0.3:
            given["stop"] = [chance.choice("aeilo"), "lamp"]
        if chance.random() < 0.2:
            given["logprobs"] = 3
        if chance.random() < 0.3:
            given["ignore_eos"] = True
        if chance.random() < 0.2:
            given["repetition_penalty"] = 1.2
        ours, theirs = dict(given), {**given, "guesses": 0}
        if chance.random() < 0.3:
            number = chance.randrange(2)
            ours["grammar"] = self.grammars[self.runner][number]
            theirs["grammar"] = self.grammars[self.oracle][number]
        if chance.random() < 0.3:
            ours["guesses"] = chance.randint(0, 8)
        return ours, theirs

    def adapter_of(self, number: int, who: Runner) -> Any:
        return self.adapters[who][number]

    def alone(self, text: _Text, prompt: list[int], options: dict[str, Any]) -> list[int]:
        """The tokens that the session has after a generation."""
        session = self.oracle.session(adapter=self.adapter_of(text.adapter, self.oracle))
        session.generate([*text.tokens, *prompt], **options)
        return session.tokens

    def check(self, text: _Text) -> None:
        assert text.session.tokens == text.tokens
        assert text.session.adapter == self.adapter_of(text.adapter, self.runner)

    # --- what may be done ------------------------------------------------------------------------

    def begin(self) -> None:
        if len(self.texts) == 6:
            del self.texts[self.chance.randrange(6)]  # also while it is generated
        number = self.chance.randrange(3)
        session = self.runner.session(adapter=self.adapter_of(number, self.runner))
        text = _Text(session, [], number)
        if self.chance.random() < 0.7:
            text.tokens = self.shared[: self.chance.randint(1, len(self.shared))]
            session.tokens = text.tokens
        self.texts.append(text)

    def generate(self, text: _Text) -> None:
        prompt = self.prompt(90)
        room = self.most - len(text.tokens) - len(prompt)
        if room < 1:
            return self.rewind(text)
        ours, theirs = self.options(room)
        wanted = self.alone(text, prompt, theirs)
        if self.chance.random() < 0.5:
            text.stream, text.wanted = text.session.stream(prompt, **ours), wanted
            text.wanted_without_stop = self.alone(text, prompt, {**theirs, "stop": []})
            text.tokens = [*text.tokens, *prompt]
            return None
        text.session.generate(prompt, **ours)
        text.tokens = wanted
        return self.check(text)

    def read(self, text: _Text) -> None:
        """Read some pieces, or to the end; or cancel it, perhaps before its prompt was read."""
        assert text.stream is not None and text.wanted is not None
        for _ in itertools.islice(text.stream, self.chance.randrange(12)):
            pass
        try:
            text.session.fork()
        except RunError as error:
            assert "the session is generating" in str(error)
        if self.chance.random() < 0.6:
            return
        is_cut = self.chance.random() < 0.5
        if is_cut and self.chance.random() < 0.5:
            text.stream.close()
        else:
            if is_cut:
                text.stream.cancel()
            text.stream.reply()
        tokens = text.session.tokens
        # What is cut may end within a stop string.
        is_begun = is_cut and tokens == (text.wanted_without_stop or [])[: len(tokens)]
        assert tokens == text.wanted or is_begun
        assert tokens[: len(text.tokens)] == text.tokens
        text.stream, text.tokens = None, tokens

    def fork(self, text: _Text) -> None:
        if len(self.texts) < 6:
            self.texts.append(_Text(text.session.fork(), list(text.tokens), text.adapter))

    def rewind(self, text: _Text) -> None:
        count = self.chance.randint(0, len(text.tokens))
        text.session.rewind(count)
        text.tokens = text.tokens[: len(text.tokens) - count]

    def restore(self, text: _Text) -> None:
        self.saved += 1
        path = self.folder / f"{self.saved % 3}.session"
        text.session.save(path)
        if self.chance.random() < 0.5:
            self.texts.remove(text)
        if len(self.texts) < 6:
            adapter = self.adapter_of(text.adapter, self.runner)
            session = self.runner.restore(path, adapter=adapter)
            self.texts.append(_Text(session, list(text.tokens), text.adapter))

    def replace(self, text: _Text) -> None:
        kept = self.chance.randint(0, len(text.tokens))
        text.tokens = [*text.tokens[:kept], *self.prompt(20)][: self.most]
        text.session.tokens = text.tokens

    def several(self) -> None:
        """Several texts of a prompt, without a session."""
        prompt = [*self.shared, *self.prompt(9)][: self.most - 1]
        ours, theirs = self.options(self.most - len(prompt))
        number, n = self.chance.randrange(3), self.chance.randint(1, 4)
        replies = [
            who.generate(prompt, n=n, adapter=self.adapter_of(number, who), **options)
            for who, options in ((self.runner, ours), (self.oracle, theirs))
        ]
        told = [
            [
                (choice.token_ids, choice.text, choice.finish, choice.stopped_by)
                for choice in one.choices
            ]
            for one in replies
        ]
        assert told[0] == told[1]

    def embed(self) -> None:
        texts = [self.prompt(min(40, self.most)) for _ in range(self.chance.randint(1, 3))]
        number = self.chance.randrange(3)
        wanted = self.oracle.embed(texts, adapter=self.adapter_of(number, self.oracle))
        try:
            got = self.runner.embed(texts, adapter=self.adapter_of(number, self.runner))
        except RunError as error:  # texts that are generated keep their pages
            assert "has no room in the cache" in str(error)
            assert any(text.stream is not None for text in self.texts)
        else:
            assert (got == wanted).all()

    def step(self) -> None:
        resting = [text for text in self.texts if text.stream is None]
        choices: list[Callable[[], None]] = [self.begin, self.several, self.embed]
        for text in resting:
            acts = (self.generate, self.generate, self.generate, self.fork, self.rewind)
            for act in (*acts, self.restore, self.replace):
                choices.append(lambda act=act, text=text: act(text))  # type: ignore[misc]
        for text in self.texts:
            if text.stream is not None:
                choices += [lambda text=text: self.read(text)] * 6  # type: ignore[misc]
        self.chance.choice(choices)()
        assert self.runner.cache_bytes <= self.runner.cache_limit
        for text in self.texts:
            if text.stream is None:
                self.check(text)


@pytest.fixture(scope="module")
def program(shared_files: SharedFiles) -> Path:
    """Of integers, whose products are exact: floats are summed in an order that depends on what is
    computed beside them."""

    def fill(folder: Path) -> None:
        options: dict[str, Any] = {"quantize": "int8", "embed": True, "adapters": 8}
        save(make_model(), make_tokenizer(), folder / "integers.pte", **options)

    return shared_files.folder("integers", fill) / "integers.pte"


@pytest.fixture(scope="module")
def adapters(program: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("adapters")
    paths = []
    for name in ("a", "b"):
        made = Folder(folder / name)
        if name == "b":
            made.add("model.layers.0.self_attn.o_proj")
            made.config["target_modules"] = ["q_proj", "o_proj"]
        paths.append(folder / f"{name}.ptd")
        rushlight.llm.adapter(made.write(), base=program, out=paths[-1])
    return paths


def _orders(program: Path, adapters: list[Path], folder: Path, pages: int, seed: str) -> _Orders:
    options: dict[str, Any] = {"prefill_rows": 24, "texts": 3} if pages % 2 else {}
    runner = rushlight.llm.load(program, threads=1, cache_limit=pages * PAGE, **options)
    oracle = rushlight.llm.load(program, threads=1)
    loaded = {who: [None, *map(who.load_adapter, adapters)] for who in (runner, oracle)}
    return _Orders(runner, oracle, loaded, folder, seed)


@pytest.mark.parametrize(
    ("pages", "steps"),
    [
        *((pages, 400) for pages in (1, 2, 5, 40)),
        *(pytest.param(pages, 20_000, marks=pytest.mark.full) for pages in (1, 2, 3, 5, 9, 40)),
    ],
)
def test_any_order(
    pages: int, steps: int, program: Path, adapters: list[Path], tmp_path: Path
) -> None:
    orders = _orders(program, adapters, tmp_path, pages, f"{pages} {steps}")
    for _ in range(steps):
        orders.step()


@pytest.mark.parametrize("steps", [200, pytest.param(8000, marks=pytest.mark.full)])
def test_two_threads(steps: int, program: Path, adapters: list[Path], tmp_path: Path) -> None:
    """Each has sessions of its own; the cache has room for the longest text of each."""
    first = _orders(program, adapters, tmp_path, 12, "first")
    second = _Orders(first.runner, first.oracle, first.adapters, tmp_path / "second", "second")
    second.folder.mkdir()
    first.most = second.most = 5 * 64 - 1
    faults: list[BaseException] = []

    def work(orders: _Orders) -> None:
        try:
            for _ in range(steps):
                orders.step()
        except BaseException as fault:
            faults.append(fault)
        finally:
            orders.texts.clear()  # what nobody reads holds pages

    threads = [threading.Thread(target=work, args=(orders,)) for orders in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
