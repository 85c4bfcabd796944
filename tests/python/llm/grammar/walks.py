"""Vocabularies for tests of grammars, and random walks through their masks."""

from __future__ import annotations

import random

import numpy as np

from rushlight.llm.grammar import Grammar, State, Vocabulary

END = 0
WORDS = (
    'ab abc foo bar 12 123 -1 日 日本 a1 zz é ß 😀 the name age true false null {} [] {" "} "] '
    '": ," ", ": " [{ }] }, ], [[ 0. .5 e+ 10 \\n \\u \\" .com @ :// \\\\ -- 20 2024- T12: Z'
).split()
PIECES = [
    b"</s>",
    *(bytes([byte]) for byte in range(256)),
    *(word.encode() for word in WORDS),
    b" the",
    b' "',
    b"  ",
    b"\n ",
    b"aa" * 20,
    b"\xe6\x97",  # the beginning of a character
    b"a\xf0\x9f",
]


def small_vocabulary() -> Vocabulary:
    """All bytes, and tokens that cross the borders of words, of JSON's parts and of characters."""
    return Vocabulary(PIECES, ends=[END])


def walk(
    grammar: Grammar, pieces: list[bytes], chance: random.Random, *, longest: int = 80
) -> bytes | None:
    """A text of tokens drawn from the masks; None if it did not end within `longest` tokens.

    On the way, masks are compared with what is accepted, and nothing may be a dead end.
    """
    state = State(grammar)
    text = b""
    for i in range(longest):
        mask = state.mask()
        allowed = np.flatnonzero(mask)
        assert len(allowed), f"a dead end after {text!r}"
        assert mask[END] == state.can_end()
        for token in (*chance.sample(range(len(pieces)), 4), int(chance.choice(allowed))):
            assert state.fork().accept(token) == mask[token], (text, pieces[token])
        if mask[END] and chance.random() < i / longest:
            return text
        token = int(chance.choice(allowed))
        if token == END:
            return text
        assert state.accept(token)
        text += pieces[token]
    return None
