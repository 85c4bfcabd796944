"""Options of sampling do what transformers' do: the distributions that tokens are drawn from."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LogitsProcessorList
from transformers.generation import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from rushlight import _core
from rushlight.errors import RunError
from rushlight.llm.options import read_options

# In the order in which both apply them.
ORACLES: dict[str, Any] = {
    "repetition_penalty": RepetitionPenaltyLogitsProcessor,
    "temperature": TemperatureLogitsWarper,
    "top_k": TopKLogitsWarper,
    "top_p": TopPLogitsWarper,
    "min_p": MinPLogitsWarper,
    "typical_p": TypicalLogitsWarper,
}
CASES: list[dict[str, Any]] = [
    {"temperature": 0.6},
    {"temperature": 1.7},
    {"top_k": 1},
    {"top_k": 40},
    {"top_k": 700},
    {"top_p": 0.1},
    {"top_p": 0.9},
    {"top_p": 0.9999},
    {"min_p": 0.05},
    {"typical_p": 0.2},
    {"typical_p": 0.95},
    {"repetition_penalty": 1.3},
    {"temperature": 0.7, "top_k": 50, "top_p": 0.9},
    {"temperature": 1.5, "top_p": 0.95, "min_p": 0.02},
    {"repetition_penalty": 1.1, "temperature": 0.8, "top_k": 200, "typical_p": 0.7},
    {"temperature": 2.0, "top_k": 500, "top_p": 0.8, "min_p": 0.01, "typical_p": 0.9},
]
KINDS = {"peaked": 6.0, "usual": 2.5, "flat": 0.02}


def _options(**given: Any) -> _core.LlmOptions:
    return read_options(_core.LlmOptions(), given)


def _sample(
    logits: np.ndarray,
    options: _core.LlmOptions,
    history: list[int] | None = None,
    *,
    prompt: int = 0,
    index: int = 0,
    mask: bytes | None = None,
) -> tuple[int, dict[int, float]]:
    """The token, and the probabilities that it was drawn with."""
    data = logits.astype(np.float32).tobytes()
    token, tokens, weights = _core.llm_sample(data, options, history or [], prompt, 0, index, mask)
    total = sum(weights)
    return token, {t: w / total for t, w in zip(tokens, weights, strict=True)}


def _logits(kind: str, count: int = 1000) -> np.ndarray:
    return np.random.default_rng(len(kind)).normal(0, KINDS[kind], count).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", CASES, ids=str)
def test_filters_equal_transformers(given: dict[str, Any], kind: str) -> None:
    logits, history = _logits(kind), [3, 9, 9, 500, 731]
    oracle = LogitsProcessorList([ORACLES[n](given[n]) for n in ORACLES if n in given])
    scores = oracle(torch.tensor([history]), torch.from_numpy(logits.copy())[None])
    wanted = scores.softmax(-1)[0].numpy()
    _, got = _sample(logits, _options(**given), history)
    kept = set(np.flatnonzero(np.isfinite(scores[0].numpy())).tolist())
    # Sums in another order may decide otherwise on a token at the edge.
    edge = max((wanted[t] for t in kept ^ set(got)), default=0.0)
    assert len(kept ^ set(got)) <= 1 and edge <= 1.01 * min(wanted[list(kept)])
    for token in kept & set(got):
        assert got[token] == pytest.approx(wanted[token], rel=1e-3, abs=1e-7 + 2 * edge)


def test_top_k_is_of_what_a_mask_allows() -> None:
    bits = np.zeros(64, np.uint8)
    bits[[3, 40, 63]] = 1
    mask = np.packbits(bits, bitorder="little").tobytes()
    for k, kept in ((40, {3, 40, 63}), (1, {63})):
        _, got = _sample(np.arange(64.0), _options(top_k=k), mask=mask)
        assert set(got) == kept


def test_penalties_of_the_output() -> None:
    logits = _logits("usual")
    history = [5, 5, 7, 7, 7, 8]
    given = {"presence_penalty": 0.5, "frequency_penalty": 0.25, "logit_bias": {8: -math.inf, 9: 2}}
    _, got = _sample(logits, _options(**given, temperature=1), history, prompt=2)
    changed = logits.astype(np.float64)
    changed[7] -= 0.5 + 3 * 0.25
    changed[9] += 2
    changed[8] = -math.inf
    wanted = np.exp(changed - changed.max())
    wanted /= wanted.sum()
    assert 8 not in got
    for token, p in got.items():
        assert p == pytest.approx(wanted[token], rel=1e-4)


def _dry(history: list[int], multiplier: float, base: float, allowed: int) -> dict[int, float]:
    """What DRY subtracts, by its definition."""
    losses: dict[int, float] = {}
    for i in range(1, len(history)):
        length = 0
        while length < i and history[i - 1 - length] == history[-1 - length]:
            length += 1
        if length >= allowed and length > 0:
            loss = multiplier * base ** (length - allowed)
            losses[history[i]] = max(losses.get(history[i], 0.0), loss)
    return losses


@pytest.mark.parametrize("seed", range(20))
def test_dry_by_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    history = rng.integers(0, 4, 60).tolist()
    logits = np.zeros(6, np.float32)
    given = {"dry_multiplier": 0.3, "dry_base": 1.2, "dry_allowed_length": 2, "temperature": 1}
    _, got = _sample(logits, _options(**given), history)
    losses = _dry(history, 0.3, 1.2, 2)
    weights = {t: math.exp(-losses.get(t, 0.0)) for t in range(6)}
    for token, p in got.items():
        assert p == pytest.approx(weights[token] / sum(weights.values()), rel=1e-4)


def test_dry_stops_at_breakers() -> None:
    history = [1, 2, 3, 0, 1, 2]
    given = {"dry_multiplier": 1.0, "dry_allowed_length": 1, "temperature": 1}
    _, plain = _sample(np.zeros(5), _options(**given), history)
    _, broken = _sample(np.zeros(5), _options(**given, dry_breakers=[2]), history)
    assert plain[3] < plain[4] and broken[3] == pytest.approx(broken[4])


def test_a_mask_and_greedy() -> None:
    logits = _logits("usual", 100)
    allowed = [4, 50, 99]
    bits = np.zeros(128, bool)
    bits[allowed] = True
    mask = np.packbits(bits, bitorder="little").tobytes()
    best = max(allowed, key=lambda t: logits[t])
    assert _sample(logits, _options(temperature=0), mask=mask)[0] == best
    assert set(_sample(logits, _options(temperature=1), mask=mask)[1]) == set(allowed)
    with pytest.raises(_core.Failure, match="no token may come next"):
        _sample(logits, _options(temperature=1), mask=bytes(16))


@pytest.mark.parametrize("temperature", [0, 1e-45, 1e-38, 9e-7])
def test_the_least_temperatures_take_the_most_probable(temperature: float) -> None:
    logits = _logits("peaked")
    for seed in range(3):
        token, _ = _sample(logits, _options(temperature=temperature, seed=seed))
        assert token == np.argmax(logits)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite(bad: float) -> None:
    logits = _logits("usual")
    logits[17] = bad
    with pytest.raises(_core.Failure, match="NaN or infinite"):
        _sample(logits, _options(temperature=1))


def test_drawn_tokens_follow_the_distribution() -> None:
    logits = np.log(np.array([0.4, 0.3, 0.2, 0.08, 0.02]))
    options = _options(temperature=1, seed=123)
    draws = 20000
    counts = Counter(_sample(logits, options, index=i)[0] for i in range(draws))
    wanted = np.exp(logits) * draws
    chi_square = sum((counts[t] - wanted[t]) ** 2 / wanted[t] for t in range(5))
    assert chi_square < 18.5  # 4 degrees of freedom, p = 0.001


def test_the_generator_is_philox() -> None:
    """The numbers of Philox4x32-10, as NumPy has it, at a counter and a key."""
    logits = np.zeros(1 << 16, np.float32)
    for seed, index in ((0, 0), (7, 1), ((1 << 64) - 1, 12345)):
        token, _ = _sample(logits, _options(temperature=1, seed=seed), index=index)
        block = _philox((index & 0xFFFFFFFF, index >> 32, 0, 0), seed)
        assert token == (block[1] << 32 | block[0]) >> 48


def _philox(counter: tuple[int, int, int, int], key: int) -> tuple[int, int, int, int]:
    """Philox4x32-10 as its paper defines it."""
    x0, x1, x2, x3 = counter
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * x0, 0xCD9E8D57 * x2
        x0, x1, x2, x3 = (b >> 32) ^ x1 ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ x3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return x0, x1, x2, x3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"top_p": 0}, "top_p"),
        ({"min_p": 1.5}, "min_p"),
        ({"typical_p": -1}, "typical_p"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"repetition_penalty": 1e-45}, "repetition_penalty .* at least 1e-06"),
        ({"temperature": math.nan}, "temperature"),
        ({"dry_multiplier": 1, "dry_base": 0.5}, "dry_base"),
        ({"logit_bias": {1: math.nan}}, "logit_bias"),
    ],
)
def test_values_out_of_range(given: dict[str, Any], told: str) -> None:
    with pytest.raises(_core.Failure, match=told):
        _sample(_logits("usual"), _options(**given))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"beams": 2}, "there is no option 'beams'"),
        ({"num_beams": 2}, "there is no beam search"),
        ({"top_k": 1.5}, "top_k=1.5"),
        ({"top_k": -1}, "top_k=-1"),
        ({"n": 0}, "n=0: give an integer from 1 to 128"),
        ({"n": 129}, "n=129: give an integer from 1 to 128"),
        ({"guesses": 9}, "guesses=9: give an integer from 0 to 8"),
        ({"max_tokens": 0}, "max_tokens=0: give an integer from 1 to"),
        ({"temperature": "hot"}, "temperature='hot'"),
        ({"temperature": 0, "min_p": 0.1}, "temperature=0 takes.*min_p= has no effect"),
        ({"temperature": 1e-7, "top_k": 3}, "temperature=1e-07 takes.*top_k= has no effect"),
        ({"dry_base": 1.5}, "without dry_multiplier="),
        ({"seed": -1}, "seed=-1"),
        ({"stop": 5}, "stop=5"),
        ({"stop": b""}, "stop=b''"),
        ({"stop": ["the", "\ud800"]}, "stop=.*without halves of surrogate pairs"),
        ({"stop": bytearray()}, "stop=bytearray"),
        ({"temperature": 10**400}, "temperature=.*none beyond 1e308"),
        ({"logit_bias": {1: -(10**400)}}, "logit_bias=.*none beyond 1e308"),
        ({"logit_bias": {"a": 1}}, "logit_bias="),
        ({"logprobs": 21}, "logprobs=21"),
        ({"echo": 1}, "echo=1"),
        ({"logit_bias": [1]}, "logit_bias="),
        ({"context_full": "drop"}, "context_full='drop'"),
    ],
)
def test_options_that_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(RunError, match=told):
        _options(**given)
