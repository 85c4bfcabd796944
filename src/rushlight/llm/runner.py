"""Language models that run: `Runner` and `Session`."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rushlight import _core
from rushlight.errors import RunError
from rushlight.llm.grammar import Vocabulary
from rushlight.llm.options import (
    read_adapter,
    read_integer,
    read_options,
    read_tokens,
    refuse,
    with_tokens,
)
from rushlight.llm.prompts import chat_arguments, is_conversation, json_of
from rushlight.llm.reply import Piece, Reply, Stream, Token, finished
from rushlight.llm.structured import Structured
from rushlight.llm.template import opens_reasoning
from rushlight.runtime.failures import run_errors
from rushlight.runtime.trace import Recording

_MOST = (1 << 31) - 1
_TAIL = 16  # tokens that "<think>" and white space have at most

OnPiece = Callable[[Piece], object]


class _Generates(ABC):
    """What `Runner` and `Session` have in common: generations."""

    @abstractmethod
    def _model(self) -> Runner:
        """The runner of the model."""

    @abstractmethod
    def _encode(self, prompt: str) -> list[int]:
        """The tokens of a prompt of text."""

    @abstractmethod
    def _launch(
        self, tokens: list[int], options: _core.LlmOptions, replaces: bool
    ) -> _core.LlmGeneration:
        """Start a generation after a prompt, which may replace what was said before."""

    def _start(self, prompt: Any, given: dict[str, Any]) -> tuple[_core.LlmGeneration, int]:
        chat = chat_arguments(prompt, given)
        model = self._model()
        is_chat = is_conversation(prompt)
        if is_chat:
            tokens = model.encode_chat(prompt, **chat)
        else:
            is_text = isinstance(prompt, str)
            tokens = self._encode(prompt) if is_text else read_tokens("prompt", prompt)
        model.structured.read(
            given, chat["tools"], lambda: model.reasoning(tokens) if is_chat else "none"
        )
        options = read_options(model._handle.defaults(), with_tokens(given, model._handle))
        if is_chat and options.shift and given.get("keep") is None:
            options.keep = model.system_tokens(prompt, tokens, chat)
        with run_errors():
            return self._launch(tokens, options, replaces=is_chat), options.n

    def generate(
        self, prompt: Any = "", *, on_piece: OnPiece | None = None, **options: Any
    ) -> Reply:
        """Generate what follows a prompt.

        Args:
            prompt: a text; messages, as dicts with "role" and "content"; or token ids in a list,
                an array or a tensor.
            on_piece: called with each `Piece` as it is made.
            options: docs/llm/runner.md lists them.

        Raises:
            RunError: an option or the prompt is refused, or the model failed.
        """
        core, choices = self._start(prompt, options)
        return finished(core, choices, on_piece)

    def stream(self, prompt: Any = "", **options: Any) -> Stream:
        """Start what `generate` does; iterate over the result.

        Args:
            prompt: as for `generate`.
            options: as for `generate`.

        Raises:
            RunError: an option or the prompt is refused.
        """
        return Stream(*self._start(prompt, options))


class Runner(_Generates):
    """A language model that `rushlight.llm.load` loaded. Many threads may use it.

    Attributes:
        vocabulary_size: how many tokens there are.
        context: the greatest number of tokens of a text.
        cache_type: what keys and values are stored in.
        cache_limit: the most bytes that the cache takes.
        has_chat: whether it has a chat template.
        load_seconds: how long loading took.
        has_text: whether the program has a tokenizer; without one there are only token ids.
        reply_format: how the model writes reasoning and calls of tools, for
            `rushlight.llm.template.parse_reply`; "" without a chat template.
        structured: makes grammars of `response_format` and `tools`.
        hidden: the elements of an embedding; 0 for a program that has no method `embed`.
        is_encoder: whether the program does nothing but `embed`.
    """

    def __init__(self, core: _core.LlmRunner, load_seconds: float) -> None:
        self._handle: _core.LlmRunner = core
        self.load_seconds = load_seconds
        facts = core.facts()
        self.vocabulary_size: int = facts["vocabulary"]
        self.context: int = facts["context"]
        self.cache_type: str = facts["cache_type"]
        self.cache_limit: int = facts["cache_limit"]
        self.has_chat: bool = facts["has_chat"]
        self.has_text: bool = facts["has_text"]
        self.reply_format: str = facts["reply_format"]
        self.structured = Structured(core, self.reply_format)
        self.hidden: int = facts["hidden"]
        self.is_encoder: bool = self.cache_type == "none"

    @property
    def trace(self) -> Recording:
        """What was recorded of the steps, if the program was loaded with `trace`."""
        return Recording(self._handle)

    def _model(self) -> Runner:
        return self

    def _encode(self, prompt: str) -> list[int]:
        return self.encode(prompt)

    def _launch(
        self, tokens: list[int], options: _core.LlmOptions, replaces: bool
    ) -> _core.LlmGeneration:
        return self._handle.generate(tokens, options)

    def system_tokens(
        self, messages: Sequence[Any], tokens: Sequence[int], variables: Mapping[str, Any]
    ) -> int:
        """How many of a conversation's first tokens are the system prompt, with the tools; they are
        what stays when the context is full.

        Args:
            messages: the conversation.
            tokens: what `encode_chat` made of it.
            variables: what `encode_chat` was given besides.
        """
        system = [message for message in messages[:1] if message.get("role") == "system"]
        if not system:
            return 0
        try:
            head = self.encode_chat(system, **{**variables, "add_generation_prompt": False})
        except RunError:  # the template wants more than a system prompt
            return 0
        pairs = enumerate(zip(head, tokens, strict=False))
        return next((i for i, (a, b) in pairs if a != b), min(len(head), len(tokens)))

    def reasoning(self, prompt: Sequence[int]) -> str:
        """Whether a reply may begin with reasoning: "none", "optional", or "open" if the prompt
        has opened it; for `Grammar.from_json_schema`, `rushlight.llm.template.parse_reply`.

        Args:
            prompt: the tokens of a conversation.
        """
        if not self._handle.facts()["reasons"]:
            return "none"
        tail = self.decode(prompt[-_TAIL:], special=True)
        if opens_reasoning(tail):
            return "open"
        return "none" if tail.rstrip().endswith("</think>") else "optional"

    def session(self, *, adapter: _core.LlmAdapter | None = None) -> Session:
        """A text that is kept: generations are added to it.

        Args:
            adapter: from `load_adapter`: what it is computed with.

        Raises:
            RunError: the adapter is of another model.
        """
        session = Session(self, self._handle.session())
        if adapter is not None:
            session.adapter = adapter
        return session

    def load_adapter(self, path: str | os.PathLike[str]) -> _core.LlmAdapter:
        """An adapter (LoRA) for sessions and generations, mapped. Its memory is given back when
        nothing uses it any more.

        Args:
            path: a file that `rushlight.llm.adapter` wrote for this program.

        Raises:
            RunError: the file cannot be read, is damaged, or is of another model; or the program
                takes no adapters.
        """
        with run_errors():
            return self._handle.load_adapter(_path(path))

    def restore(
        self, path: str | os.PathLike[str], *, adapter: _core.LlmAdapter | None = None
    ) -> Session:
        """A session that `Session.save` wrote.

        Args:
            path: the file.
            adapter: what the session was computed with; None for the model alone.

        Raises:
            RunError: the file cannot be read, is damaged, or is of another model, adapter or cache.
        """
        with run_errors():
            return Session(self, self._handle.restore(_path(path), _given(adapter)))

    def encode(
        self, text: str, *, add_special: bool = True, parse_special: bool = True
    ) -> list[int]:
        """The tokens of a text.

        Args:
            text: the text.
            add_special: add the tokens that begin a text.
            parse_special: the text of a special token is that token; False takes it as text.

        Raises:
            RunError: the program has no tokenizer.
        """
        data = text.encode("utf-8", "surrogatepass")
        with run_errors():
            return self._handle.encode(data, add_special, parse_special)

    def encode_chat(
        self,
        /,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> list[int]:
        """The tokens of a conversation, by the model's chat template. What messages say never
        becomes special tokens.

        Args:
            messages: dicts with "role" and "content".
            tools: descriptions of functions, for templates that take them.
            add_generation_prompt: end with the beginning of the model's reply.
            variables: what else the template reads, such as enable_thinking.

        Raises:
            RunError: the program has no chat template, or the template refuses the conversation.
        """
        document = {"messages": list(messages), "add_generation_prompt": add_generation_prompt}
        if tools is not None:
            document["tools"] = list(tools)
        data = json_of({**document, **variables})
        with run_errors():
            return self._handle.encode_chat(data.encode("utf-8", "replace"))

    def decode(self, tokens: Any, *, special: bool = False) -> str:
        """The text of tokens.

        Args:
            tokens: token ids.
            special: with the texts of special tokens.

        Raises:
            RunError: the program has no tokenizer.
        """
        with run_errors():
            return self._handle.decode(read_tokens("tokens", tokens), not special)

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to a text; of a special token its text.

        Args:
            token: its number.

        Raises:
            RunError: the program has no tokenizer.
        """
        with run_errors():
            return self._handle.piece(read_integer("token", token, -_MOST, _MOST, "a token id"))

    def score(self, tokens: Any, *, adapter: _core.LlmAdapter | None = None) -> list[float]:
        """The log probability of each token but the first, after those before it.

        Args:
            tokens: token ids, as many as the context has at most.
            adapter: from `load_adapter`; None for the model alone.

        Raises:
            RunError: there are too few or too many, or the model failed.
        """
        return [token.logprob for token in self.logprobs(tokens, adapter=adapter)]

    def logprobs(
        self, tokens: Any, *, top: int = 0, adapter: _core.LlmAdapter | None = None
    ) -> list[Token]:
        """Each token but the first, with its log probability after those before it.

        Args:
            tokens: token ids, as many as the context has at most.
            top: how many of the most probable tokens to list beside each, up to 20.
            adapter: from `load_adapter`; None for the model alone.

        Raises:
            RunError: there are too few or too many, or the model failed.
        """
        most = read_integer("top", top, 0, 20, "an integer from 0 to 20")
        with run_errors():
            scored = self._handle.score(read_tokens("tokens", tokens), most, _given(adapter))
        return [Token(id, logprob, tuple(others)) for id, logprob, others in scored]

    def embed(
        self,
        texts: Sequence[str] | Sequence[Sequence[int]],
        *,
        normalize: bool = True,
        truncate: bool = False,
        adapter: _core.LlmAdapter | None = None,
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Vectors of texts, which are near each other for texts of like meaning.

        Args:
            texts: texts, or their token ids. To texts the tokens that begin and end each are
                added, and special tokens in them are text.
            normalize: scale each vector to the length 1.
            truncate: cut texts of more tokens than the context has; otherwise they are refused.
            adapter: from `load_adapter`; None for the model alone.

        Returns:
            float32 [texts, `hidden`].

        Raises:
            RunError: a text is refused, the program does not embed, or the model failed.
        """
        for name, value in (("normalize", normalize), ("truncate", truncate)):
            if not isinstance(value, bool):
                raise refuse(f"{name}={value!r}: give True or False")
        if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
            raise refuse(f"texts={texts!r}: give a list of texts, or of lists of token ids")
        with run_errors():
            if texts and isinstance(texts[0], str):
                data = [_bytes_of(i, text) for i, text in enumerate(texts)]
                return self._handle.embed_texts(data, normalize, truncate, _given(adapter))
            tokens = [read_tokens(f"texts[{i}]", text) for i, text in enumerate(texts)]
            return self._handle.embed_tokens(tokens, normalize, truncate, _given(adapter))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens, for grammars.

        Raises:
            RunError: the program has no tokenizer.
        """
        with run_errors():
            return Vocabulary.from_core(self._handle.vocabulary())

    @property
    def cache_bytes(self) -> int:
        """Bytes that the cache takes now."""
        return self._handle.cache_bytes()


class Session(_Generates):
    """One text, to which prompts and what the model generates are added. It generates one text at a
    time; `fork` it for others. An empty prompt goes on with the text as it is; messages replace it,
    and the cache of what stays the same is kept."""

    def __init__(self, runner: Runner, core: _core.LlmSession) -> None:
        self._runner = runner
        self._handle: _core.LlmSession = core

    def _model(self) -> Runner:
        return self._runner

    def _encode(self, prompt: str) -> list[int]:
        return self._runner.encode(prompt, add_special=not self.tokens) if prompt else []

    def _launch(
        self, tokens: list[int], options: _core.LlmOptions, replaces: bool
    ) -> _core.LlmGeneration:
        generate = self._handle.generate_after if replaces else self._handle.generate
        return generate(tokens, options)

    @property
    def text(self) -> str:
        """The text, without special tokens.

        Raises:
            RunError: the program has no tokenizer, or a text is being generated.
        """
        return self._runner.decode(self.tokens)

    @property
    def tokens(self) -> list[int]:
        """The tokens of the text. Assigning others keeps the cache of what both begin with."""
        with run_errors():
            return self._handle.tokens()

    @tokens.setter
    def tokens(self, tokens: Any) -> None:
        with run_errors():
            self._handle.set_tokens(read_tokens("tokens", tokens))

    @property
    def cached(self) -> int:
        """How many tokens have their keys and values in the cache."""
        return self._handle.cached()

    @property
    def adapter(self) -> _core.LlmAdapter | None:
        """What the text is computed with; None for the model alone. It can be changed while there
        are no tokens."""
        return self._handle.adapter()

    @adapter.setter
    def adapter(self, adapter: _core.LlmAdapter | None) -> None:
        with run_errors():
            self._handle.set_adapter(_given(adapter))

    def rewind(self, count: int) -> None:
        """Drop the last `count` tokens.

        Raises:
            RunError: there are fewer, or a text is being generated.
        """
        count = read_integer("count", count, 0, _MOST, "how many tokens to drop")
        with run_errors():
            self._handle.rewind(count)

    def fork(self) -> Session:
        """A session with the same text. Both share its cache.

        Raises:
            RunError: a text is being generated.
        """
        with run_errors():
            return Session(self._runner, self._handle.fork())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text and its cache to a file, for `Runner.restore` with the same program.

        Raises:
            RunError: the file cannot be written; what was there before is unchanged.
        """
        with run_errors():
            self._handle.save(_path(path))


def _bytes_of(i: int, text: object) -> bytes:
    if not isinstance(text, str):
        raise refuse(f"texts[{i}]={text!r}: give texts alone, or lists of token ids alone")
    return text.encode("utf-8", "surrogatepass")


def _given(adapter: Any) -> _core.LlmAdapter | None:
    return None if adapter is None else read_adapter(adapter)


def _path(path: str | os.PathLike[str]) -> bytes:
    data = os.fsencode(path)
    if b"\0" in data:
        raise refuse(f"{os.fsdecode(path)!r}: a path has no NUL character")
    return data
