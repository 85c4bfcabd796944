"""The fields that chat and text completions have in common: from OpenAI's API to the options of
`Runner.generate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rushlight.llm.serve.errors import ApiError, bad
from rushlight.llm.serve.fields import Fields, shown

# Taken over as they are: `rushlight.llm.options` checks them.
_SAME = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop"),
    *("top_k", "min_p", "typical_p", "repetition_penalty", "ignore_eos", "stop_tokens"),
    *("dry_multiplier", "dry_base", "dry_allowed_length", "dry_range", "guesses"),
)
# They choose among tokens, and with temperature 0 there is no choice.
_FILTERS = ("top_k", "top_p", "min_p", "typical_p")
_MOST_CHOICES = 128


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


def read_model(fields: Fields, name: str) -> None:
    """Check that a request is for the model that there is.

    Args:
        fields: of the request.
        name: the model's.

    Raises:
        ApiError: it is for another one.
    """
    asked = fields.need("model", str)
    if asked != name:
        raise ApiError(
            404,
            f"there is no model {asked[:100]!r}: the server has {name!r}",
            param="model",
            code="model_not_found",
        )


def read_sampling(fields: Fields) -> dict[str, Any]:
    """The options of a generation.

    Args:
        fields: of the request; those of sampling are read.

    Raises:
        ApiError: a field is not as it must be.
    """
    options = {name: fields.take(name) for name in _SAME}
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
