"""What answers of chat and text completions have in common."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

from rushlight.llm.reply import Statistics
from rushlight.llm.serve.sampling import Streaming

# OpenAI's words for why a text ended. It has none for a text that was broken off: an error says it.
FINISH = {
    "": None,
    "stop": "stop",
    "length": "length",
    "context": "length",
    "cancelled": None,
    "error": None,
}


class Answers:
    """The answers to one request: whole, or as events.

    Args:
        prefix: how their id begins.
        whole: OpenAI's name for a whole answer.
        event: and for an event.
        model: the model's id.
        streaming: what the client wants.

    Attributes:
        prompt_tokens: tokens of the prompts.
        output_tokens: what was generated until now.
    """

    def __init__(
        self, prefix: str, whole: str, event: str, model: str, streaming: Streaming
    ) -> None:
        self.prompt_tokens = 0
        self.output_tokens = 0
        self._streaming = streaming
        self._names = {"whole": whole, "event": event}
        self._heading = {
            "id": f"{prefix}-{secrets.token_hex(12)}",
            "object": "",
            "created": int(time.time()),
            "model": model,
        }

    def event(self, choice: dict[str, Any]) -> dict[str, Any]:
        """An event of a stream.

        Args:
            choice: what is new.
        """
        event = {**self._heading, "object": self._names["event"], "choices": [choice]}
        if self._streaming.usage_always:
            event["usage"] = _usage(self.prompt_tokens, self.output_tokens)
        elif self._streaming.usage:
            event["usage"] = None
        return event

    def last_event(self, statistics: Sequence[Statistics]) -> dict[str, Any]:
        """The event that counts tokens.

        Args:
            statistics: of the request's streams.
        """
        heading = {**self._heading, "object": self._names["event"]}
        return {**heading, "choices": [], "usage": _usage_of(statistics)}

    def whole(
        self, choices: list[dict[str, Any]], statistics: Sequence[Statistics]
    ) -> dict[str, Any]:
        """The answer to a request that wants no stream.

        Args:
            choices: the texts.
            statistics: of the request's streams.
        """
        heading = {**self._heading, "object": self._names["whole"]}
        return {**heading, "choices": choices, "usage": _usage_of(statistics)}


def _usage(prompt: int, output: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
    }


def _usage_of(statistics: Sequence[Statistics]) -> dict[str, Any]:
    prompt = sum(figures.prompt_tokens for figures in statistics)
    output = sum(figures.output_tokens for figures in statistics)
    # Each of several texts for a prompt counts what it found.
    reused = min(prompt, sum(figures.reused_tokens for figures in statistics))
    return {**_usage(prompt, output), "prompt_tokens_details": {"cached_tokens": reused}}
