"""Masks beside what is accepted token by token, which needs neither the tree of tokens nor what is
known of them: all tokens, where texts go on, and where they may end within a token."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest

from rushlight.llm.grammar import Grammar, State, Vocabulary

_PARTS = (*'abtx019_-.<>/@ \n\t"\\{}[]:,é日😀\x7f', "the", "tool", "call", "AB", "\\n", "ß")
REGEXES = (
    r"[^<]*",
    r"[^<]*<tool>[a-z]+",
    r"\w+@[\w.-]+",
    r"([a-z]+ )*[a-z]+",
    r"[^b]*b.*",
    r"(.|\n)*",
    r"x[^日]*日?",
    r"[\s\S]{2,9}",
    r"a\w*|b[^a]*",
)
SCHEMAS: tuple[Any, ...] = (
    {"type": "string", "pattern": "b"},
    {"type": "string", "minLength": 3, "maxLength": 12},
    {"type": "array", "items": {"type": "string", "maxLength": 4}},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}, "t$": {"type": "null"}}},
    {
        "type": "object",
        "properties": {"a": {}, "tool": {}},
        "additionalProperties": {"type": "null"},
    },
    {"anyOf": [{"enum": ["the", "tool", "ab"]}, {"type": "string", "pattern": "^[a-z]+$"}]},
)


@cache
def _pieces() -> list[bytes]:
    """Also the same piece twice, and pieces that begin or end within a character."""
    draw = random.Random("pieces")
    drawn = ["".join(draw.choices(_PARTS, k=draw.choice((1, 2, 2, 3, 4, 6)))) for _ in range(500)]
    pieces = [text.encode() for text in drawn]
    cut = [piece[draw.randrange(len(piece)) :] for piece in pieces[:60]]
    cut += [piece[: draw.randrange(1, len(piece) + 1)] for piece in pieces[:60]]
    return [b"</s>", *(bytes([byte]) for byte in range(256)), *pieces, *cut, *pieces[:20]]


@cache
def _vocabulary() -> Vocabulary:
    return Vocabulary(_pieces(), ends=[0])


def _walk(grammar: Grammar, draw: random.Random) -> int:
    """Compares all masks of a text; how many there were."""
    state = State(grammar)
    for length in range(12):
        accepted = [state.fork().accept(token) for token in range(len(_pieces()))]
        mask = state.mask()
        differ = [_pieces()[token] for token in np.flatnonzero(mask != np.array(accepted))]
        assert not differ
        # The end is drawn seldom, long tokens more often than others.
        some = draw.choices([*np.flatnonzero(mask[1:]) + 1] or [0], k=3)
        token = int(max(some, key=lambda t: len(_pieces()[t])))
        if token == 0:
            return length
        assert state.accept(token)
    return 12


@pytest.mark.parametrize("pattern", REGEXES)
def test_masks_of_regular_expressions(pattern: str) -> None:
    draw = random.Random(pattern)
    lengths = [_walk(Grammar.from_regex(pattern, _vocabulary()), draw) for _ in range(4)]
    assert sum(lengths) > 8


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_masks_of_schemas(schema: Any) -> None:
    draw = random.Random(str(schema))
    lengths = [_walk(Grammar.from_json_schema(schema, _vocabulary()), draw) for _ in range(4)]
    assert sum(lengths) > 8


@pytest.mark.parametrize("family", ["qwen3", "llama", "mistral"])
def test_masks_of_text_before_calls(family: str) -> None:
    tools = [{"type": "function", "function": {"name": "tool"}}]
    draw = random.Random(family)
    grammars = [Grammar.from_tools(tools, _vocabulary(), family=family) for _ in range(4)]
    assert sum(_walk(grammar, draw) for grammar in grammars) > 8
