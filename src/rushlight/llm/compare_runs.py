"""Two language models on the same tokens by turns: results and times, as `rushlight diff` shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.errors import RunError
from rushlight.inspect.diff.model import RunDiff
from rushlight.inspect.diff.runs import by_turns, outputs_between
from rushlight.inspect.trace.statistics import change_of_turns, median_interval
from rushlight.llm.runner import Runner

METHODS = ("step", "embed")
"""The methods of a language model that only its runner can call."""
TEXT = (
    "The old lighthouse stood at the end of the harbour, where the river meets the sea. Every "
    "evening the keeper climbed 199 steps, lit the lamp, and wrote down the weather: wind, waves "
    'and clouds. "A light that nobody sees," he said, "is still a light."'
)
_GENERATED = 16  # tokens that are timed

Calls = Sequence[Callable[[], object]]


def compare_runs(
    before: Runner, after: Runner, method: str, tokens: Sequence[int] | None, repeat: int
) -> RunDiff:
    """Give two models the same tokens.

    Of `step`, the log probability of each token after those before it is compared; of `embed`, the
    vector of the text.

    Args:
        before, after: the models.
        method: "step" or "embed".
        tokens: None: those of `TEXT`, by the tokenizer of each model, which are compared, too;
            models without a tokenizer get token ids in ascending order.
        repeat: how often each is timed, by turns.

    Raises:
        RunError: a model refuses the tokens, or fails.
    """
    runners = (before, after)
    ids, results = _tokens(runners, tokens)
    told = "given" if tokens is not None else "of a fixed text" if results[0] else "in order"
    made = RunDiff(f"{len(ids)} tokens {told}, by the runner of language models")
    names = ["tokens"] if results[0] else []
    calls: Calls = [_vector(r, ids) for r in runners]
    if method == "step":
        calls = [_logprobs(r, ids) for r in runners]
    names.append("log probabilities" if method == "step" else "embedding")
    for result, call in zip(results, calls, strict=True):
        result.append(call())
    made.outputs = list(outputs_between([names, names], results))
    one, other = by_turns(calls, repeat)
    made.latency, made.runs = change_of_turns("latency", one, other), repeat
    made.after_interval = median_interval(other)
    if method == "step":
        times = by_turns([_generation(r, ids[:1]) for r in runners], repeat)
        made.kinds = [change_of_turns(f"generating {_GENERATED} tokens", *times)]
    return made


def _tokens(
    runners: Sequence[Runner], tokens: Sequence[int] | None
) -> tuple[list[int], list[list[Any]]]:
    """The tokens for both models, and those that each model's tokenizer makes."""
    most = min(runner.context for runner in runners)
    if tokens is not None:
        return list(tokens), [[], []]
    if all(runner.has_text for runner in runners):
        both = [runner.encode(TEXT)[:most] for runner in runners]
        return both[0], [[np.asarray(one)] for one in both]
    count = min(64, most, *(runner.vocabulary_size for runner in runners))
    return list(range(count)), [[], []]


def _logprobs(runner: Runner, tokens: list[int]) -> Callable[[], Any]:
    return lambda: np.asarray(runner.score(tokens), np.float32)


def _vector(runner: Runner, tokens: list[int]) -> Callable[[], Any]:
    return lambda: runner.embed([tokens])


def _generation(runner: Runner, tokens: list[int]) -> Callable[[], object]:
    count = min(_GENERATED, runner.context - len(tokens))
    if count < 1:
        raise RunError(f"its context of {runner.context} tokens is too short to generate any")
    return lambda: runner.generate(tokens, max_tokens=count, temperature=0, ignore_eos=True)
