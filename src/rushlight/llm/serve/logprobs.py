"""Log probabilities of tokens, in the two forms that OpenAI's API has for them."""

from __future__ import annotations

from collections.abc import Sequence
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


def text_logprobs(runner: Runner, tokens: Sequence[Token], offset: int) -> dict[str, Any]:
    """Those of text completions.

    Args:
        runner: has the texts of tokens.
        tokens: what was generated.
        offset: how many characters came before.
    """
    texts = [runner.piece(token.id).decode(errors="replace") for token in tokens]
    offsets = list(accumulate((len(text) for text in texts[:-1]), initial=offset))
    return {
        "tokens": texts,
        "token_logprobs": [_finite(token.logprob) for token in tokens],
        "top_logprobs": [
            {
                runner.piece(id).decode(errors="replace"): _finite(logprob)
                for id, logprob in token.top
            }
            for token in tokens
        ],
        "text_offset": offsets[: len(texts)],
    }


def _finite(logprob: float) -> float:
    """JSON has no infinity: OpenAI's API has -9999 for what cannot come."""
    return max(logprob, -9999.0)
