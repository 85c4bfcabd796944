"""Masks beside those of llguidance, on written and drawn schemas.

Each kind of difference is listed with its reason. Tokens that only we allow are judged besides: the
text goes on to an end that the validator must accept.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
from numpy.typing import NDArray
from schemas import WRITTEN, drawn
from walks import END, PIECES, small_vocabulary

from rushlight.llm.grammar import Grammar, State

WHITE_SPACE: dict[str, dict[str, Any]] = {
    "compact": {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"},
    "spaced": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    "flexible": {"whitespace_flexible": True, "whitespace_pattern": r"[\x20\x0A\x0D\x09]*"},
}
# What llguidance refuses, and we do not.
REFUSED = (
    "are not disjoint",  # patterns of properties that overlap
    "propertyNames",
    "min/maxProperties only supported",
    "Failed to generate regex for float range",
)
# (reason, whether a token is of this kind: text before it, the token, the schema)
Reason = tuple[str, Callable[[bytes, bytes, str], bool]]
ONLY_OURS: tuple[Reason, ...] = (
    ("DEL may stand in a JSON string", lambda text, piece, schema: b"\x7f" in piece),
    (
        "a multiple may end in zeros, as a number within bounds, and zero may have a sign",
        lambda text, piece, schema: (
            re.search(rb"-0?$|\.\d*$", text + piece[:1]) is not None
            and ("multipleOf" in schema or "imum" in schema)
        ),
    ),
    ("OpenAPI's 'nullable' counts", lambda text, piece, schema: '"nullable"' in schema),
    (
        "an IPv6 address may end in an IPv4 one; the path of a URI may have any of its characters",
        lambda text, piece, schema: '"ipv6"' in schema or '"uri"' in schema,
    ),
    (
        "any character may be escaped, also by surrogates",
        lambda text, piece, schema: b"\\" in text[-12:] + piece,
    ),
)
ONLY_THEIRS: tuple[Reason, ...] = (
    (
        "strings with a pattern and keys besides named ones have one way to write each character",
        lambda text, piece, schema: b"\\" in text[-5:] + piece,
    ),
    (
        "times have upper-case letters, no leap second, at most 9 digits after the point",
        lambda text, piece, schema: '"time"' in schema or '"date-time"' in schema,
    ),
    (
        "a URI has no address in brackets, and something after its scheme",
        lambda text, piece, schema: '"uri"' in schema,
    ),
    (
        "hosts of e-mail addresses are names with a point",
        lambda text, piece, schema: '"email"' in schema,
    ),
)


class _Tokens:
    eos_token_id, bos_token_id, tokens, special_token_ids = END, None, PIECES, [END]

    def __call__(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [PIECES.index(bytes([byte])) for byte in data]


TOKENIZER = LLTokenizer(TokenizerWrapper(_Tokens()), n_vocab=len(PIECES), eos_token=END)
FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER


def _mask(matcher: LLMatcher) -> NDArray[np.bool_]:
    words = allocate_token_bitmask(1, len(PIECES))
    fill_next_token_bitmask(matcher, words, 0)
    bits = np.unpackbits(words[0].view(np.uint8), bitorder="little")[: len(PIECES)]
    return bits.astype(np.bool_)


def _completed(state: State, text: bytes, chance: random.Random) -> bytes | None:
    """The text with tokens drawn until it ends; None if that takes long."""
    for _ in range(60):
        if state.can_end():
            return text
        mask = state.mask()
        quick = [t for t in np.flatnonzero(mask) if PIECES[t][:1] in b'"]}0123456789e']
        token = int(chance.choice(quick or np.flatnonzero(mask)))
        assert state.accept(token)
        text += PIECES[token]
    return None


def _judge(schema: Any, state: State, text: bytes, token: int, chance: random.Random) -> None:
    fork = state.fork()
    assert fork.accept(token)
    whole = text if token == END else _completed(fork, text + PIECES[token], chance)
    if whole is not None and not (isinstance(schema, dict) and schema.get("nullable")):
        validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
        validator.validate(json.loads(whole))


def _compare(schema: Any, white_space: str, chance: random.Random, vocabulary: Any) -> int:
    options = WHITE_SPACE[white_space]
    grammar = Grammar.from_json_schema(schema, vocabulary, white_space=white_space)
    theirs = LLMatcher.grammar_from_json_schema(
        json.dumps({} if schema is True else schema), defaults=options
    )
    error = LLMatcher.validate_grammar(theirs, TOKENIZER)
    if error:
        assert any(reason in error for reason in REFUSED), (schema, error)
        return 0
    text_of_schema, compared = json.dumps(schema), 0
    for _ in range(4):
        state, matcher, text = State(grammar), LLMatcher(TOKENIZER, theirs), b""
        for _ in range(30):
            mine, other = state.mask(), _mask(matcher)
            compared += 1
            # Where the text is forced, llguidance allows its canonical token alone.
            forced = int(other.sum()) == 1 or bool(state.forced_text())
            for token in np.flatnonzero(mine != other):
                reasons = ONLY_OURS if mine[token] else ONLY_THEIRS
                where = (schema, white_space, text, PIECES[token], bool(mine[token]))
                is_known = any(holds(text, PIECES[token], text_of_schema) for _, holds in reasons)
                assert is_known or (forced and mine[token]), where
                if mine[token] and chance.random() < 0.2:
                    _judge(schema, state, text, int(token), chance)
            both = np.flatnonzero(mine & other)
            token = int(chance.choice(both)) if len(both) else END
            if token == END:
                break
            assert state.accept(token) and matcher.consume_token(token)
            text += PIECES[token]
    return compared


@pytest.mark.parametrize("white_space", WHITE_SPACE)
@pytest.mark.parametrize("schema", WRITTEN, ids=lambda schema: json.dumps(schema)[:60])
def test_written_schemas(schema: Any, white_space: str) -> None:
    _compare(schema, white_space, random.Random(white_space), small_vocabulary())


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_drawn_schemas(first: int) -> None:
    compared, vocabulary = 0, small_vocabulary()
    for seed in range(first, first + 20):
        chance = random.Random(seed)
        schema, _ = drawn(chance)
        compared += _compare(schema, list(WHITE_SPACE)[seed % 3], chance, vocabulary)
    assert compared > 300
