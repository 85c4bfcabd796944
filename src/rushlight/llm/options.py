"""The options of a generation: what callers write, checked and made into what the runner takes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight import _core
from rushlight.errors import Code, RunError
from rushlight.llm.grammar import Grammar
from rushlight.runtime.failures import run_errors

_FLOATS = (
    "temperature",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "dry_multiplier",
    "dry_base",
)
_MOST_COUNT = (1 << 31) - 1
_COUNTS = ("top_k", "max_tokens", "n", "keep", "guesses", "dry_allowed_length", "dry_range")
_RANGES = {  # of counts; the others have 0 to _MOST_COUNT
    "max_tokens": (1, _MOST_COUNT),
    "n": (1, _core.LlmOptions.most_n),
    "guesses": (0, _core.LlmOptions.most_guesses),
}
_FLAGS = ("ignore_eos", "echo", "special")
_TOKENS = ("stop_tokens", "dry_breakers")
# Filters, which say nothing if the most probable token is taken anyway.
_FILTERS = ("top_k", "top_p", "min_p", "typical_p")
_LEAST_TEMPERATURE = 1e-6  # below it the most probable token is taken
# What other libraries call it, or why there is none.
_ADVICE = {
    "max_new_tokens": "write max_tokens=",
    "n_predict": "write max_tokens=",
    "max_completion_tokens": "write max_tokens=",
    "max_length": "write max_tokens=, which counts the output alone",
    "do_sample": "temperature=0 takes the most probable token, another temperature samples",
    "typical": "write typical_p=",
    "repeat_penalty": "write repetition_penalty=",
    "num_return_sequences": "write n=",
    "eos_token_id": "write stop_tokens=",
    "stop_token_ids": "write stop_tokens=",
    "stop_strings": "write stop=",
    "skip_special_tokens": "write special=True for the text of special tokens",
    "num_beams": "there is no beam search",
    "mirostat": "there is no such sampling: use min_p= or typical_p=",
}


def refuse(message: str) -> RunError:
    """An error for an argument that is not as it must be."""
    return RunError(message, code=Code.INVALID_ARGUMENT)


def read_options(defaults: _core.LlmOptions, given: Mapping[str, Any]) -> _core.LlmOptions:
    """The model's defaults with the options that a caller gave.

    Args:
        defaults: of the model; not changed.
        given: by name; None stands for the default.

    Raises:
        RunError: an option is not known, has a wrong type, or contradicts another.
    """
    options = defaults.copy()
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if name not in _READERS:
            advice = _ADVICE.get(name, f"there are {', '.join(sorted(_READERS))}")
            raise refuse(f"there is no option {name!r}: {advice}")
        read_option(options, name, value)
    _check_together(options, given)
    if "seed" not in given:
        options.seed = secrets.randbits(64)
    return options


def read_option(options: _core.LlmOptions, name: str, value: Any) -> None:
    """Set one option.

    Args:
        options: changed.
        name: of the option, which there is.
        value: what was given for it.

    Raises:
        RunError: the value has a wrong type.
    """
    _READERS[name](options, name, value)


def with_tokens(given: Mapping[str, Any], runner: _core.LlmRunner) -> dict[str, Any]:
    """The options with token ids where `logit_bias` and `dry_breakers` name tokens by their text.

    Args:
        given: as for `read_options`.
        runner: has the tokenizer.

    Raises:
        RunError: no token, or more than one, has a text.
    """
    options = dict(given)
    bias, breakers = options.get("logit_bias"), options.get("dry_breakers")
    if isinstance(bias, Mapping) and any(isinstance(token, str) for token in bias):
        _need_tokenizer("logit_bias", runner)
        items = [(_token_of(token, runner), value) for token, value in bias.items()]
        options["logit_bias"] = _as_bias(bias, items)
    if isinstance(breakers, Sequence) and not isinstance(breakers, str | bytes):
        if any(isinstance(item, str) for item in breakers):
            _need_tokenizer("dry_breakers", runner)
        found = [_breakers_of(item, runner) for item in breakers]
        options["dry_breakers"] = [token for tokens in found for token in tokens]
    return options


def _need_tokenizer(name: str, runner: _core.LlmRunner) -> None:
    if not runner.facts()["has_text"]:
        raise refuse(
            f"{name} names a token by its text, and the program has no tokenizer: use token ids"
        )


def _as_bias(given: Mapping[Any, Any], items: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The dict of these items, each of which is another token."""
    bias = dict(items)
    if len(bias) < len(items):
        raise _wrong("logit_bias", dict(given), "each token once: a text and an id are the same")
    return bias


def _token_of(token: Any, runner: _core.LlmRunner) -> Any:
    """The token that a text is."""
    if not isinstance(token, str):
        return token
    with run_errors():
        tokens = runner.encode(token.encode("utf-8", "surrogatepass"), False, True)
    if len(tokens) != 1:
        raise refuse(
            f"logit_bias: {token!r} is {len(tokens)} tokens, {tokens}: give a text that is one, "
            f"or token ids"
        )
    return tokens[0]


def _breakers_of(item: Any, runner: _core.LlmRunner) -> list[Any]:
    """The tokens that have a text in them."""
    if not isinstance(item, str):
        return [item]
    if not item:
        raise refuse("dry_breakers has an empty text: leave it out")
    with run_errors():
        tokens = runner.tokens_with(item.encode("utf-8", "surrogatepass"))
    if not tokens:
        raise refuse(f"dry_breakers: no token has {item!r} in it: give a shorter text")
    return list(tokens)


def _check_together(options: _core.LlmOptions, given: Mapping[str, Any]) -> None:
    filters = [name for name in _FILTERS if name in given]
    if options.temperature < _LEAST_TEMPERATURE and filters:
        if "temperature" in given:
            raise refuse(
                f"temperature={given['temperature']} takes the most probable token, so "
                f"{filters[0]}= has no effect: leave one of them out"
            )
        options.temperature = 1.0  # who filters wants to sample
    if "keep" in given and not options.shift:
        raise refuse("keep= is for context_full='shift': add that, or leave keep= out")
    dry = [name for name in given if name.startswith("dry_") and name != "dry_multiplier"]
    if dry and options.dry_multiplier == 0:
        raise refuse(f"{dry[0]}= has no effect without dry_multiplier=: add it, 0.8 for example")


def _wrong(name: str, value: object, wanted: str) -> RunError:
    return refuse(f"{name}={value!r}: give {wanted}")


def _read_float(options: _core.LlmOptions, name: str, value: Any) -> None:
    setattr(options, name, _number(name, value, value, "a number"))


def _number(name: str, value: Any, part: Any, wanted: str) -> float:
    """A part of an option's value as a float."""
    if isinstance(part, bool) or not isinstance(part, int | float):
        raise _wrong(name, value, wanted)
    try:
        return float(part)
    except OverflowError:
        raise _wrong(name, value, f"{wanted}, none beyond 1e308") from None


def read_integer(name: str, value: Any, low: int, high: int, wanted: str) -> int:
    """An integer from `low` to `high`.

    Args:
        name: the argument's, for the error.
        value: what a caller gave.
        low, high: the least and the greatest.
        wanted: what to give, for the error.

    Raises:
        RunError: it is something else.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _wrong(name, value, wanted)
    number = int(value.__index__())
    if not low <= number <= high:
        raise _wrong(name, value, wanted)
    return number


def _read_count(options: _core.LlmOptions, name: str, value: Any) -> None:
    low, high = _RANGES.get(name, (0, _MOST_COUNT))
    wanted = f"an integer from {low} to {high}"
    setattr(options, name, read_integer(name, value, low, high, wanted))


def _read_flag(options: _core.LlmOptions, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    setattr(options, name, value)


def _read_tokens(options: _core.LlmOptions, name: str, value: Any) -> None:
    setattr(options, name, read_tokens(name, value))


def read_tokens(name: str, value: Any) -> list[int]:
    """Token ids from a list, an array or a tensor.

    Raises:
        RunError: it is something else.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise _wrong(name, value, "a list of token ids")
    most = (1 << 31) - 1
    return [read_integer(name, token, -most - 1, most, "a list of token ids") for token in value]


def _read_stop(options: _core.LlmOptions, name: str, value: Any) -> None:
    texts = [value] if isinstance(value, str) else value
    is_list = isinstance(texts, Sequence) and not isinstance(texts, bytes | bytearray)
    if not is_list or not all(isinstance(text, str) for text in texts):
        raise _wrong(name, value, "a text, or a list of texts")
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise _wrong(name, value, "texts without halves of surrogate pairs, which no output has")
    options.stop = list(texts)


def _read_seed(options: _core.LlmOptions, name: str, value: Any) -> None:
    options.seed = read_integer(name, value, 0, (1 << 64) - 1, "an integer from 0 to 2**64 - 1")


def _read_logprobs(options: _core.LlmOptions, name: str, value: Any) -> None:
    if isinstance(value, bool):
        options.logprobs = 0 if value else -1
        return
    wanted = "True, or how many alternatives to list, up to 20"
    options.logprobs = read_integer(name, value, 0, 20, wanted)


def _read_bias(options: _core.LlmOptions, name: str, value: Any) -> None:
    wanted = "a dict of token ids to numbers"
    if not isinstance(value, Mapping):
        raise _wrong(name, value, wanted)
    biases = []
    for token, bias in value.items():
        number = _number(name, value, bias, wanted)
        biases.append((read_integer(name, token, 0, _MOST_COUNT, wanted), number))
    options.set_logit_bias(biases)


def _read_full(options: _core.LlmOptions, name: str, value: Any) -> None:
    if value not in ("stop", "shift"):
        raise _wrong(name, value, "'stop' or 'shift'")
    options.shift = value == "shift"


def _read_grammar(options: _core.LlmOptions, name: str, value: Any) -> None:
    if not isinstance(value, Grammar):
        raise _wrong(name, value, "a rushlight.llm.grammar.Grammar over Runner.vocabulary")
    options.set_grammar(value._core)


def _read_adapter(options: _core.LlmOptions, name: str, value: Any) -> None:
    options.set_adapter(read_adapter(value))


def read_adapter(value: Any) -> _core.LlmAdapter:
    """An adapter that a caller gave.

    Args:
        value: what `Runner.load_adapter` returned.

    Raises:
        RunError: it is something else.
    """
    if not isinstance(value, _core.LlmAdapter):
        raise _wrong("adapter", value, "what Runner.load_adapter returned")
    return value


_READERS: dict[str, Callable[[_core.LlmOptions, str, Any], None]] = {
    **dict.fromkeys(_FLOATS, _read_float),
    **dict.fromkeys(_COUNTS, _read_count),
    **dict.fromkeys(_FLAGS, _read_flag),
    **dict.fromkeys(_TOKENS, _read_tokens),
    "stop": _read_stop,
    "seed": _read_seed,
    "logprobs": _read_logprobs,
    "logit_bias": _read_bias,
    "context_full": _read_full,
    "grammar": _read_grammar,
    "adapter": _read_adapter,
}
