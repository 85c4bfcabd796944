"""The fields that chat and text completions have in common: from OpenAI's API to the options of
`Runner.generate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from rushlight._core import LlmOptions
from rushlight.llm.serve.errors import bad, json_bytes
from rushlight.llm.serve.fields import Fields, shown

T = TypeVar("T")
# Taken over as they are: `rushlight.llm.options` checks them.
_SAME = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop"),
    *("top_k", "min_p", "typical_p", "repetition_penalty", "ignore_eos", "stop_tokens"),
    *("dry_multiplier", "dry_base", "dry_allowed_length", "dry_range", "dry_breakers", "guesses"),
    *("context_full", "keep"),
)
# They choose among tokens, and with temperature 0 there is no choice.
_FILTERS = ("top_k", "top_p", "min_p", "typical_p")
_MOST_CHOICES = LlmOptions.most_n
_MOST_STOPS = 16
_MOST_STOP_CHARACTERS = 1000
_MOST_STOP_TOKENS = 1000
_MOST_BREAKERS = 16  # each of which is looked for in all tokens
_MOST_STRUCTURE_BYTES = 256 << 10


@dataclass(frozen=True)
class Streaming:
    """How a reply is sent.

    Attributes:
        events: as events while it is generated.
        usage: a last event with the count of tokens.
        usage_always: each event has the count up to it.
    """

    events: bool
    usage: bool
    usage_always: bool


def read_streaming(fields: Fields) -> Streaming:
    """How the client wants the reply.

    Args:
        fields: of the request.

    Raises:
        ApiError: a field is not as it must be.
    """
    events = fields.read("stream", bool, False)
    given = fields.read("stream_options", dict)
    if given is not None and not events:
        raise bad("stream_options", 'is for streams: add "stream": true, or leave it out')
    options = Fields(given or {}, "stream_options")
    usage = options.read("include_usage", bool, False)
    always = options.read("continuous_usage_stats", bool, False)
    options.only("include_obfuscation", (False,), "events have no padding: leave it out")
    options.finish()
    return Streaming(events, usage, always)


def read_sampling(fields: Fields) -> dict[str, Any]:
    """The options of a generation.

    Args:
        fields: of the request; those of sampling are read.

    Raises:
        ApiError: a field is not as it must be.
    """
    options = {name: fields.take(name) for name in _SAME}
    _check_stops(options["stop"], options["stop_tokens"])
    _check_length("dry_breakers", options["dry_breakers"], _MOST_BREAKERS, "breakers")
    if options["temperature"] == 0:
        options.update(dict.fromkeys(_FILTERS))
    options["n"] = fields.read("n", int, 1)
    if not 1 <= options["n"] <= _MOST_CHOICES:
        raise bad("n", f"is {options['n']}: give 1 to {_MOST_CHOICES}")
    options["max_tokens"] = _most_tokens(fields)
    options["logit_bias"] = _bias(fields.read("logit_bias", dict))
    # Labels, which change nothing.
    for name in ("user", "safety_identifier", "prompt_cache_key"):
        fields.read(name, str)
    fields.read("metadata", dict)
    fields.only("store", (False,), "nothing is stored: leave it out")
    fields.only("service_tier", ("auto", "default"), "there is one tier: leave it out")
    return {name: value for name, value in options.items() if value is not None}


def read_structure(fields: Fields, name: str, kind: type[T]) -> T | None:
    """A field that becomes a grammar.

    Args:
        fields: of the request.
        name: "response_format" or "tools".
        kind: dict or list.

    Raises:
        ApiError: it is something else, or too large.
    """
    value = fields.read(name, kind)
    try:
        size = len(json_bytes(value))
    except RecursionError:
        raise bad(name, "is nested too deep") from None
    if size > _MOST_STRUCTURE_BYTES:
        raise bad(name, f"has {size} bytes of JSON: give at most {_MOST_STRUCTURE_BYTES}")
    return value


def _check_stops(texts: Any, tokens: Any) -> None:
    """Limit what is looked for after each token; `Runner.generate` checks the types."""
    listed = texts if isinstance(texts, list) else [texts]
    _check_length("stop", listed, _MOST_STOPS, "texts")
    longest = max((len(text) for text in listed if isinstance(text, str)), default=0)
    if longest > _MOST_STOP_CHARACTERS:
        raise bad(
            "stop", f"has a text of {longest} characters: give at most {_MOST_STOP_CHARACTERS}"
        )
    _check_length("stop_tokens", tokens, _MOST_STOP_TOKENS, "tokens")


def _check_length(name: str, listed: Any, most: int, what: str) -> None:
    if isinstance(listed, list) and len(listed) > most:
        raise bad(name, f"has {len(listed)} {what}: give at most {most}")


def _most_tokens(fields: Fields) -> int | None:
    old, new = fields.read("max_tokens", int), fields.read("max_completion_tokens", int)
    if old is not None and new is not None and old != new:
        raise bad("max_tokens", f"is {old} and 'max_completion_tokens' {new}: leave one out")
    return new if old is None else old


def _bias(given: dict[str, Any] | None) -> dict[int, Any] | None:
    if given is None:
        return None
    biases = {}
    for token, bias in given.items():
        if not (token.isascii() and token.isdecimal() and len(token) < 12):
            raise bad("logit_bias", f"has the key {shown(token)}: give numbers of tokens")
        biases[int(token)] = bias
    return biases
