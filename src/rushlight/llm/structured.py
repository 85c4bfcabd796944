"""OpenAI's `response_format`, `tools` and `tool_choice` as grammars."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from rushlight import _core
from rushlight.llm.grammar import Grammar, ToolFormat, Vocabulary
from rushlight.llm.options import refuse
from rushlight.runtime.failures import run_errors

_FORMATS = ("text", "json_object", "json_schema")
_CHOICES = ("none", "auto", "required")
# What is kept of grammars: the newest one in any case.
_MOST_GRAMMARS = 16
_MOST_BYTES = 256 << 20
_CACHE_BYTES = 16 << 20  # for the masks of one
# How calls are written that each reply format reads.
_TOOL_FORMATS: dict[str, str | ToolFormat] = {
    "hermes": "qwen3",
    "llama": "llama",
    "mistral": "mistral",
    "phi": "phi4",
    "json": ToolFormat("", ""),
}


class Structured:
    """The grammars of a runner, each compiled once.

    Args:
        core: the runner.
        reply_format: how its model writes calls of tools; "" if it has no chat template.
    """

    def __init__(self, core: _core.LlmRunner, reply_format: str) -> None:
        self._core = core
        self._reply_format = reply_format
        self._lock = threading.Lock()
        self._grammars: OrderedDict[bytes, Grammar] = OrderedDict()

    def read(self, given: dict[str, Any], tools: Any, reasoning: Callable[[], str]) -> None:
        """Replace `response_format`, `tool_choice` and `parallel_tool_calls` by a grammar.

        Args:
            given: the options of a generation; changed.
            tools: descriptions of functions; None for none.
            reasoning: returns what may come before, as `Grammar.from_json_schema` takes it; called
                if there is a grammar.

        Raises:
            RunError: an option is not as it must be, or contradicts another.
        """
        names = ("response_format", "tool_choice", "parallel_tool_calls")
        form, choice, parallel = (given.pop(name, None) for name in names)
        calls = self._calls(tools, choice, parallel, reasoning)
        text = self._text(form, reasoning)
        if calls is None and text is None:
            return
        if calls is not None and text is not None:
            raise refuse(
                "response_format= and tools= say different things of the output: leave one out, or "
                "write tool_choice='none'"
            )
        if given.get("grammar") is not None:
            name = "tools=" if calls is not None else "response_format="
            raise refuse(f"grammar= and {name} say different things of the output: leave one out")
        if calls is not None and given.get("special") is None:
            given["special"] = True  # calls may stand between special tokens
        given["grammar"] = calls or text

    def _text(self, form: Any, reasoning: Callable[[], str]) -> Grammar | None:
        kind = form.get("type") if isinstance(form, Mapping) else form
        if form is not None and (not isinstance(form, Mapping) or kind not in _FORMATS):
            raise refuse(f"response_format={form!r}: give a dict whose 'type' is one of {_FORMATS}")
        if form is None or kind == "text":
            return None
        schema: Any = {"type": "object"}
        if kind == "json_schema":
            described = form.get("json_schema")
            schema = described.get("schema") if isinstance(described, Mapping) else None
            if not isinstance(schema, Mapping | bool):
                raise refuse(
                    "response_format= of type 'json_schema' needs "
                    "{'json_schema': {'schema': {...}}}"
                )
        before = reasoning()
        return self._compiled(
            ["schema", schema, before],
            lambda tokens: Grammar.from_json_schema(
                schema, tokens, reasoning=before, cache_bytes=_CACHE_BYTES
            ),
        )

    def _calls(
        self, tools: Any, choice: Any, parallel: Any, reasoning: Callable[[], str]
    ) -> Grammar | None:
        if not tools:
            for name, value in (("tool_choice", choice), ("parallel_tool_calls", parallel)):
                if value is not None and value != "none":
                    raise refuse(f"{name}={value!r} is for tools=: add them, or leave it out")
            return None
        choice = "auto" if choice is None else choice
        if not isinstance(choice, Mapping) and choice not in _CHOICES:
            raise refuse(f"tool_choice={choice!r}: give one of {_CHOICES}, or name a function")
        if parallel is not None and not isinstance(parallel, bool):
            raise refuse(f"parallel_tool_calls={parallel!r}: give True or False")
        if choice == "none":
            return None
        family = _TOOL_FORMATS.get(self._reply_format)
        if family is None:
            if choice == "auto":
                return None
            raise refuse(
                f"tool_choice={choice!r}: calls in the reply format {self._reply_format!r} cannot "
                f"be demanded; write tool_choice='auto'"
            )
        several = parallel is not False and self._reply_format != "json"
        before = reasoning()
        return self._compiled(
            ["tools", list(tools), choice, several, before],
            lambda tokens: Grammar.from_tools(
                tools,
                tokens,
                family=family,
                tool_choice=choice,
                parallel=several,
                reasoning=before,
                cache_bytes=_CACHE_BYTES,
            ),
        )

    def _compiled(self, key: Any, make: Callable[[Vocabulary], Grammar]) -> Grammar:
        try:
            digest = hashlib.sha256(json.dumps(key).encode()).digest()
        except (TypeError, ValueError, RecursionError) as error:
            raise refuse(f"a schema must be JSON: {error}") from None
        with self._lock:
            grammar = self._grammars.get(digest)
        if grammar is None:
            with run_errors():
                grammar = make(Vocabulary.from_core(self._core.vocabulary()))
        with self._lock:
            self._grammars[digest] = grammar
            self._grammars.move_to_end(digest)
            self._drop()
        return grammar

    def _drop(self) -> None:
        """Forget the grammars that were used least recently."""
        kept = sum(grammar.bytes for grammar in self._grammars.values())
        while len(self._grammars) > _MOST_GRAMMARS or (
            kept > _MOST_BYTES and len(self._grammars) > 1
        ):
            kept -= self._grammars.popitem(last=False)[1].bytes
