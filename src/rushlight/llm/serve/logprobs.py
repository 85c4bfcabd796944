"""Log probabilities of tokens, in the two forms that OpenAI's API has for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from rushlight.llm.reply import Token
from rushlight.llm.runner import Runner


def chat_logprobs(runner: Runner, tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Those of chat completions.

    Args:
        runner: has the texts of tokens.
        tokens: what was generated.
    """
    return [
        {
            **_told(runner, token.id, token.logprob),
            "top_logprobs": [_told(runner, id, logprob) for id, logprob in token.top],
        }
        for token in tokens
    ]


def _told(runner: Runner, token: int, logprob: float) -> dict[str, Any]:
    data = runner.piece(token)
    return {
        "token": data.decode(errors="replace"),
        "logprob": _finite(logprob),
        "bytes": list(data),
    }


def text_logprobs(
    runner: Runner, tokens: Sequence[Token], offset: int
) -> tuple[dict[str, Any], int]:
    """Those of text completions, and how many characters come before the next ones.

    Args:
        runner: has the texts of tokens.
        tokens: what was generated.
        offset: how many characters came before.

    A first token, before which there is nothing, has NaN, and OpenAI's API null.
    """
    texts = [runner.piece(token.id).decode(errors="replace") for token in tokens]
    offsets = list(accumulate(_lengths(runner, tokens, texts), initial=offset))
    told = {
        "tokens": texts,
        "token_logprobs": [_finite(token.logprob) for token in tokens],
        "top_logprobs": [
            None
            if math.isnan(token.logprob)
            else {
                runner.piece(id).decode(errors="replace"): _finite(logprob)
                for id, logprob in token.top
            }
            for token in tokens
        ],
        "text_offset": offsets[:-1],
    }
    return told, offsets[-1]


def _lengths(runner: Runner, tokens: Sequence[Token], texts: Sequence[str]) -> Iterator[int]:
    """The characters that tokens have in the text, in which there are no special tokens."""
    for token, text in zip(tokens, texts, strict=True):
        yield len(text) if runner.decode([token.id]) else 0


def _finite(logprob: float) -> float | None:
    """JSON has no infinity: OpenAI's API has -9999 for what cannot come."""
    return None if math.isnan(logprob) else max(logprob, -9999.0)
