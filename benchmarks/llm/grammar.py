"""Structured output: the time of masks, and of compiling schemas, beside llguidance.

Masks are timed for each token of texts that satisfy the schemas: once with a new grammar, whose
masks are made on the way, and again with the same one. Vocabularies are the most frequent pieces of
the standard library's sources, cut as a pre-tokeniser cuts them.

    python -m benchmarks grammar --tokens 128000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from rushlight.llm.grammar import Grammar, State, Vocabulary

_PIECE = re.compile(r" ?[A-Za-z]+|[^A-Za-z0-9\s]+[\r\n]*| ?[^A-Za-z0-9\s]+|\d{1,3}|\s+")
_WORDS = "the quick brown fox jumps over a lazy dog and runs away from here to there".split()

_FIELDS: tuple[tuple[dict[str, Any], Callable[[random.Random], Any]], ...] = (
    ({"type": "string"}, lambda c: " ".join(c.choices(_WORDS, k=12))),
    ({"type": "integer"}, lambda c: c.randrange(10**6)),
    ({"type": "string", "maxLength": 40}, lambda c: " ".join(c.choices(_WORDS, k=5))[:40]),
    (
        {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        lambda c: [" ".join(c.choices(_WORDS, k=3)) for _ in range(3)],
    ),
    ({"enum": ["red", "green", "blue"]}, lambda c: c.choice(["red", "green"])),
    ({"type": "number"}, lambda c: round(c.random() * 1000, 3)),
    ({"type": "boolean"}, lambda c: True),
    ({"type": "string", "pattern": "^[A-Z]{2}-\\d{4}$"}, lambda c: f"AB-{c.randrange(1000, 9999)}"),
    ({"type": "string", "format": "date-time"}, lambda c: "2024-02-29T12:30:00Z"),
    (
        {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}}]},
        lambda c: [c.randrange(1000) for _ in range(4)],
    ),
)


def pieces(count: int) -> list[bytes]:
    """All bytes, frequent pieces of text, and an end token, which is the last."""
    counts: Counter[str] = Counter()
    for path in sorted(Path(os.__file__).parent.rglob("*.py")):
        counts.update(p for p in _PIECE.findall(path.read_text("utf-8", "replace")) if len(p) < 25)
    tokens = dict.fromkeys(bytes([byte]) for byte in range(256))
    frequent = [text for text, _ in counts.most_common(count)]
    tokens.update(dict.fromkeys(text.encode() for text in frequent))
    for first in frequent[:2000]:  # pairs, where there are too few pieces
        if len(tokens) >= count:
            break
        tokens.update(dict.fromkeys((first + second).encode() for second in frequent[:200]))
    return [*list(tokens)[: count - 1], b"</s>"]


def encoder(tokens: list[bytes]) -> Callable[[bytes], list[int]]:
    """Takes the longest token at each place."""
    numbers = {piece: i for i, piece in enumerate(tokens)}
    longest = max(map(len, tokens))

    def encode(text: bytes) -> list[int]:
        tokens_of_text, at = [], 0
        while at < len(text):
            sizes = range(min(longest, len(text) - at), 0, -1)
            size = next(n for n in sizes if text[at : at + n] in numbers)
            tokens_of_text.append(numbers[text[at : at + size]])
            at += size
        return tokens_of_text

    return encode


def cases(chance: random.Random) -> dict[str, tuple[Any, str, str]]:
    """By name: the schema, its white space and a text."""
    names = [f"field_{i}" for i in range(20)]
    value = {name: _FIELDS[i % 10][1](chance) for i, name in enumerate(names)}
    schema = {
        "type": "object",
        "properties": {name: _FIELDS[i % 10][0] for i, name in enumerate(names)},
        "required": names,
        "additionalProperties": False,
    }
    return {
        "20 fields": (schema, "compact", json.dumps(value, separators=(",", ":"))),
        "20 fields, flexible": (schema, "flexible", json.dumps(value, indent=2)),
        "any JSON": (True, "compact", json.dumps(value, separators=(",", ":"))),
    }


def ours(vocabulary: Vocabulary, schema: Any, white_space: str, tokens: list[int]) -> list[Any]:
    """[seconds to compile, seconds of masks with a new grammar, seconds of masks again]."""
    start = time.thread_time()
    grammar = Grammar.from_json_schema(schema, vocabulary, white_space=white_space)
    figures: list[Any] = [time.thread_time() - start]
    words = np.zeros(grammar._core.mask_words(), np.uint32)
    for _ in range(2):
        state, seconds = State(grammar), []
        for token in tokens:
            start = time.thread_time()
            state._core.mask(words)
            seconds.append(time.thread_time() - start)
            assert state.accept(token)
        figures.append(seconds)
    return figures


@cache
def _peer(count: int) -> Any:
    from llguidance import LLTokenizer, TokenizerWrapper

    tokens = pieces(count)
    encode = encoder(tokens)

    class Tokens:
        eos_token_id, bos_token_id, special_token_ids = len(tokens) - 1, None, [len(tokens) - 1]

        def __init__(self) -> None:
            self.tokens = tokens

        def __call__(self, text: str | bytes) -> list[int]:
            return encode(text.encode() if isinstance(text, str) else text)

    return LLTokenizer(TokenizerWrapper(Tokens()), n_vocab=len(tokens), eos_token=len(tokens) - 1)


def theirs(count: int, schema: Any, white_space: str, tokens: list[int]) -> list[Any]:
    """As `ours`, of llguidance."""
    from llguidance import LLMatcher
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    options: dict[str, Any] = {"whitespace_flexible": white_space == "flexible"}
    if white_space == "compact":
        options |= {"item_separator": ",", "key_separator": ":"}
    tokenizer = _peer(count)
    start = time.thread_time()
    text = json.dumps({} if schema is True else schema)
    grammar = LLMatcher.grammar_from_json_schema(text, defaults=options)
    matcher = LLMatcher(tokenizer, grammar)
    figures: list[Any] = [time.thread_time() - start]
    words = allocate_token_bitmask(1, count)
    for _ in range(2):
        seconds = []
        for token in tokens:
            start = time.thread_time()
            fill_next_token_bitmask(matcher, words, 0)
            seconds.append(time.thread_time() - start)
            assert matcher.consume_token(token)
        matcher.reset()
        figures.append(seconds)
    return figures


def _row(name: str, side: str, figures: list[Any]) -> list[str]:
    row = [name, side, f"{figures[0] * 1e3:.2f}"]
    for seconds in figures[1:]:
        micros = np.array(seconds) * 1e6
        row += [f"{micros.mean():.1f}", f"{np.percentile(micros, 99):.0f}", f"{micros.max():.0f}"]
    return row


def main() -> None:
    """Print a table for each size of vocabulary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="*", default=[32000, 128000])
    for count in parser.parse_args().tokens:
        tokens = pieces(count)
        vocabulary = Vocabulary(tokens, ends=[len(tokens) - 1])
        encode = encoder(tokens)
        heads = ["compile ms", "new: mean µs", "p99", "max", "again: mean µs", "p99", "max"]
        table = Table("schema", "", *heads, title=f"{len(tokens)} tokens, CPU time")
        for name, (schema, white_space, text) in cases(random.Random(3)).items():
            written = encode(text.encode())
            table.add_row(*_row(name, "ours", ours(vocabulary, schema, white_space, written)))
            peer = theirs(len(tokens), schema, white_space, written)
            table.add_row(*_row("", "llguidance", peer))
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
