"""Masks beside what is accepted token by token, which needs neither the tree of tokens nor what is
known of them: all tokens, where texts go on, and where they may end within a token."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from patterns import REGEXES as OTHER_REGEXES
from patterns import drawn_regex, strings

from rushlight.errors import Error
from rushlight.llm.grammar import Grammar, State, Vocabulary

_PARTS = (
    *'abtx019_-.<>/@ \n\t"\\{}[]:,é日😀\x7f\u2028\xa0',
    "the",
    "tool",
    "call",
    "AB",
    "\\n",
    "ß",
)
_KEYS = (*"abtxé", "the", "tool", "the tool", "ab", 'a"b', "bab", "tt", "t0", "x\n", "日", "")
REGEXES = (
    r"[^<]*",
    r"[^<]*<tool>[a-z]+",
    r"\w+@[\w.-]+",
    r"([a-z]+ )*[a-z]+",
    r"[^b]*b.*",
    r"(.|\n)*",
    r"x[^日]*日?",
    r"[\s\S]{2,9}",
    r"([^@ ]|@[^@ ])*@?( x)*",
    r"a\w*|b[^a]*",
    r"[^\n]{1,30}(\n[^\n]{1,9})*",
    r"[A-Z][a-z]* [A-Z]?[a-z]*",
    r"(the|tool) \S{1,40}.*ab",
    r"[a-z]{1,5}(-[a-z0-9]{2,70})+",
    r".{70}",
    r"\S\s[A-Za-z ]x.+",  # a space beyond ASCII after text of one character
)
SCHEMAS: tuple[Any, ...] = (
    {"type": "string", "pattern": "b"},
    {"type": "string", "pattern": "t$"},
    {"type": "string", "pattern": "^.{1,9}$"},
    {"type": "string", "pattern": "b|t.*tt", "maxLength": 7},
    {"type": "string", "pattern": "^(a{60}|t)a*$", "maxLength": 61},
    {"type": "string", "pattern": "tab", "maxLength": 9},
    {"type": "string", "pattern": "(at|日)t$", "maxLength": 6},
    {"type": "string", "pattern": "t.?a|0{2}", "maxLength": 34, "minLength": 3},
    {"type": "string", "pattern": "^\\S+$", "minLength": 2},
    {"type": "string", "format": "hostname"},
    {"type": "string", "minLength": 3, "maxLength": 12},
    {"type": "string", "minLength": 1, "maxLength": 100},
    {"type": "array", "items": {"type": "string", "maxLength": 4}},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}, "t$": {"type": "null"}}},
    {
        "type": "object",
        "properties": {"a": {}, "tool": {}},
        "additionalProperties": {"type": "null"},
    },
    {  # many places in fixed texts at a time
        "type": "object",
        "properties": {key: {"type": "integer"} for key in _KEYS},
        "required": ["ab"],
        "maxProperties": 3,
        "additionalProperties": False,
    },
    {"anyOf": [{"enum": ["the", "tool", "ab"]}, {"type": "string", "pattern": "^[a-z]+$"}]},
)


@cache
def _pieces() -> list[bytes]:
    """Also the same piece twice, and pieces that begin or end within a character.

    Three in four are plain text, as they are of most vocabularies; some are longer than what is
    taken at once.
    """
    draw = random.Random("pieces")
    drawn = ["".join(draw.choices(_PARTS, k=draw.choice((1, 2, 2, 3, 4, 6)))) for _ in range(400)]
    pieces = [text.encode() for text in drawn]
    cut = [piece[draw.randrange(len(piece)) :] for piece in pieces[:60]]
    cut += [piece[: draw.randrange(1, len(piece) + 1)] for piece in pieces[:60]]
    plain = {"".join(draw.choices("abtxe 019é日", k=draw.randint(1, 7))) for _ in range(2600)}
    long = ["a" * 31, "a" * 32, "a" * 33, "at" * 30, "é" * 32, " " * 66, "t" * 300, "@@ ", "a@@ x"]
    pieces += [text.encode() for text in (*sorted(plain), *long)]
    return [b"</s>", *(bytes([byte]) for byte in range(256)), *pieces, *cut, *pieces[:20]]


@cache
def _vocabulary() -> Vocabulary:
    return Vocabulary(_pieces(), ends=[0])


def _walk(grammar: Grammar, draw: random.Random) -> int:
    """Compares all masks of a text, by a third of the tokens each; how many there were."""
    state = State(grammar)
    for length in range(12):
        mask = state.mask()
        for token in range(draw.randrange(3), len(_pieces()), 3):
            assert state.fork().accept(token) == mask[token], _pieces()[token]
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


@pytest.mark.parametrize("bounds", [{"maxLength": 5}, {"minLength": 400}], ids=str)
def test_masks_after_an_escape(bounds: dict[str, int]) -> None:
    # So many that they are taken by their first byte.
    pieces = [*_pieces(), *(b"n" + piece for piece in _pieces()[257:1057])]
    vocabulary = Vocabulary(pieces, ends=[0])
    state = State(Grammar.from_json_schema({"type": "string", **bounds}, vocabulary))
    for byte in b'"\\':
        assert state.accept(1 + byte)
    allowed = [state.fork().accept(token) for token in range(len(pieces))]
    assert allowed == state.mask().tolist()


@pytest.mark.parametrize("family", ["qwen3", "llama", "mistral"])
def test_masks_of_text_before_calls(family: str) -> None:
    tools = [{"type": "function", "function": {"name": "tool"}}]
    draw = random.Random(family)
    grammars = [Grammar.from_tools(tools, _vocabulary(), family=family) for _ in range(4)]
    assert sum(_walk(grammar, draw) for grammar in grammars) > 8


def _check_other(grammar: Grammar, name: str) -> None:
    draw = random.Random(name)
    for _ in range(3):
        _walk(grammar, draw)


@pytest.mark.parametrize("pattern", OTHER_REGEXES[::6])
def test_masks_of_searches_and_counts(pattern: str) -> None:
    _check_other(Grammar.from_regex(pattern, _vocabulary()), pattern)


@pytest.mark.full
@pytest.mark.parametrize("pattern", OTHER_REGEXES)
def test_masks_of_all_searches_and_counts(pattern: str) -> None:
    _check_other(Grammar.from_regex(pattern, _vocabulary()), pattern)


@pytest.mark.full
@pytest.mark.parametrize("schema", strings(), ids=str)
def test_masks_of_patterns_of_strings(schema: dict[str, Any]) -> None:
    _check_other(Grammar.from_json_schema(schema, _vocabulary()), str(schema))


def _drawn(seed: int) -> Grammar | None:
    try:
        return Grammar.from_regex(drawn_regex(seed), _vocabulary())
    except Error:  # too many states
        return None


@pytest.mark.parametrize("first", [0, pytest.param(10, marks=pytest.mark.full)])
def test_masks_of_drawn_expressions(first: int) -> None:
    count = 10 if first == 0 else 300
    grammars = {seed: _drawn(seed) for seed in range(first, first + count)}
    for seed, grammar in grammars.items():
        if grammar is not None:
            _check_other(grammar, f"{seed}")
    assert sum(grammar is not None for grammar in grammars.values()) > count * 0.7
