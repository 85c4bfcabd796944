"""Structured output: the time of masks, and of compiling schemas, beside llguidance.

Masks are timed for each token of texts that satisfy the grammars: once with a new grammar, whose
masks are made on the way, and again with the same one. Each figure is the least of several takes,
each with a grammar compiled anew, so that what else the machine does counts little. Vocabularies
are the most frequent pieces of the standard library's sources, cut as a pre-tokeniser cuts them.
"corpus" are the schemas of the tests, with texts drawn from their masks. A second table has what is
hard for masks: searches within bounds, and classes with counts one after the other.

    python -m benchmarks grammar --tokens 128000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python" / "llm" / "grammar"))

from patterns import REGEXES, drawn_regex, strings  # noqa: E402
from schemas import WRITTEN, drawn  # noqa: E402

from rushlight.errors import Error  # noqa: E402
from rushlight.llm.grammar import Grammar, State, Vocabulary  # noqa: E402

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
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city", "days"],
                "additionalProperties": False,
            },
        },
    }
    for name in ("get_weather", "get_forecast", "search")
]

# Parts of a field of a tool, as people write them.
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"type": "string", "description": "what to look for", "minLength": 1, "maxLength": 200},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "uri"},
    {"type": "string", "enum": ["asc", "desc", "relevance"]},
    {"type": "integer", "minimum": 1, "maximum": 100},
    {"type": "array", "items": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}, "maxItems": 10},
    {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "string", "pattern": "@"},
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
)
_PATTERNS = (
    "b",
    "t$",
    "^x",
    "^[a-z]+$",
    "^\\w+$",
    "^[A-Z][a-z]* [A-Z][a-z]*$",
    "^.{1,80}$",
    "^\\S+$",
    "error|warning: .*timeout",
    "^[a-z0-9]+(-[a-z0-9]+)*$",
    "^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(-[0-9A-Za-z.-]+)?$",
    "^https?://[\\w.-]+(:\\d+)?(/[^\\s?#]*)?(\\?[^\\s#]*)?(#\\S*)?$",
    "^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$",
    "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
)
_FORMATS = "date date-time time duration email hostname ipv4 ipv6 uuid uri".split()
_REGEXES = (
    r"(#{1,6} [^\n]+\n+([^#\n][^\n]*\n)*)+",
    r"(\|( [^|\n]* \|)+\n){2,20}",
    r"SELECT [\w, ]+ FROM \w+( WHERE \w+ (=|<|>|LIKE) ('[^']*'|\d+))?( LIMIT \d{1,4})?;",
    r"<(\w+)( \w+=\"[^\"]*\")*>[^<>]*</\w+>",
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z (INFO|WARN|ERROR) [^\n]{1,200}\n){1,50}",
    r"[^\n]{1,80}(\n[^\n]{1,80}){2}",
)


class Case(NamedTuple):
    """A grammar and a text: its schema, regular expression or tools."""

    kind: str
    source: Any
    white_space: str
    text: str | None


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


def _arguments(count: int) -> dict[str, Any]:
    """A tool's parameters."""
    fields = {f"argument_{i}": _ARGUMENTS[i % len(_ARGUMENTS)] for i in range(count)}
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields)[::2],
        "additionalProperties": False,
    }


def cases(chance: random.Random) -> dict[str, list[Case]]:
    """By name."""
    names = [f"field_{i}" for i in range(20)]
    value = {name: _FIELDS[i % 10][1](chance) for i, name in enumerate(names)}
    schema = {
        "type": "object",
        "properties": {name: _FIELDS[i % 10][0] for i, name in enumerate(names)},
        "required": names,
        "additionalProperties": False,
    }
    compact, prose = (
        json.dumps(value, separators=(",", ":")),
        " ".join(chance.choices(_WORDS, k=60)),
    )
    function = '{"name":"get_weather","arguments":{"city":"Oslo","days":3}}'
    call = f"<tool_call>\n{function}\n</tool_call>"
    words = [f"{chance.choice(_WORDS)}-{chance.randrange(10**5)}" for _ in range(500)]
    corpus = [*WRITTEN, *(drawn(random.Random(seed))[0] for seed in range(60))]
    return {
        "20 fields": [Case("schema", schema, "compact", compact)],
        "20 fields, flexible": [Case("schema", schema, "flexible", json.dumps(value, indent=2))],
        "any JSON": [Case("schema", True, "compact", compact)],
        "corpus": [Case("schema", schema, "compact", None) for schema in corpus],
        "arguments of tools": [
            Case("schema", _arguments(count), white_space, None)
            for count in (20, 50)
            for white_space in ("compact", "flexible")
        ],
        "an enum of 500": [Case("schema", {"enum": words}, "compact", None)],
        "patterns": [
            Case("schema", {"type": "string", "pattern": pattern}, "compact", None)
            for pattern in _PATTERNS
        ],
        "patterns of keys": [
            Case("schema", {"type": "object", "patternProperties": keys}, "compact", None)
            for keys in ({"y$": {}}, {"^x_": {"type": "integer"}, "y$": {"type": "null"}})
        ],
        "formats": [
            Case("schema", {"type": "string", "format": name}, "compact", None) for name in _FORMATS
        ],
        "regex: any text": [Case("regex", r"(.|\n)*", "", prose)],
        "regex: words": [Case("regex", r"([a-z]+ )*[a-z]+", "", prose)],
        "regex: address": [
            Case("regex", r"[\w.-]+@[\w-]+(\.[\w-]+)+", "", "jane.doe-1@mail.example.org")
        ],
        "large regexes": [Case("regex", regex, "", None) for regex in _REGEXES],
        "tools: auto": [Case("tools", "auto", "compact", "I will look. " + call)],
        "tools: required": [Case("tools", "required", "compact", call)],
    }


def hard(vocabulary: Vocabulary) -> dict[str, list[Case]]:
    """By name; without drawn expressions that need too many states."""
    kept = []
    for seed in range(60):
        case = Case("regex", drawn_regex(seed), "", None)
        with suppress(Error):
            _grammar(case, vocabulary)
            kept.append(case)
    return {
        "searches and counts": [Case("regex", regex, "", None) for regex in REGEXES],
        "patterns within bounds": [
            Case("schema", schema, "compact", None) for schema in strings()[::2]
        ],
        "drawn expressions": kept,
    }


def large() -> dict[str, Any]:
    """Schemas of growing sizes."""
    made: dict[str, Any] = {}
    for n in (30, 300, 3000):
        fields = {f"property_{i}": _FIELDS[i % 10][0] for i in range(n)}
        made[f"{n} properties"] = {"type": "object", "properties": fields, "required": list(fields)}
        made[f"{n} optional properties"] = {
            "type": "object",
            "properties": fields,
            "additionalProperties": False,
        }
        chain: dict[str, Any] = {
            f"d{i}": {"type": "object", "properties": {"next": {"$ref": f"#/$defs/d{i + 1}"}}}
            for i in range(n)
        }
        made[f"{n} references"] = {
            "$defs": {**chain, f"d{n}": {"type": "null"}},
            "$ref": "#/$defs/d0",
        }
        chance = random.Random(n)
        values = [f"{chance.choice(_WORDS)} {chance.randrange(10**9)}" for _ in range(10 * n)]
        made[f"an enum of {10 * n}"] = {"enum": values}
    return made


def _grammar(case: Case, vocabulary: Vocabulary) -> Grammar:
    if case.kind == "schema":
        return Grammar.from_json_schema(case.source, vocabulary, white_space=case.white_space)
    if case.kind == "regex":
        return Grammar.from_regex(case.source, vocabulary)
    return Grammar.from_tools(
        _TOOLS,
        vocabulary,
        family="qwen3",
        tool_choice=case.source,
        white_space=case.white_space,
    )


def _drawn(grammar: Grammar, tokens: list[bytes], chance: random.Random) -> list[int]:
    """Tokens of a text, half of them long ones."""
    state, made = State(grammar), []
    for _ in range(60):
        allowed = np.flatnonzero(state.mask())
        some = chance.sample(list(allowed), min(len(allowed), 8))
        token = int(max(some, key=lambda t: len(tokens[t])) if chance.random() < 0.5 else some[0])
        if token == len(tokens) - 1:
            break
        assert state.accept(token)
        made.append(token)
    return made


def _least(takes: list[list[Any]]) -> list[Any]:
    """Of several takes of the same figures."""
    masks = (np.min([take[at] for take in takes], axis=0) for at in (1, 2))
    return [min(take[0] for take in takes), *(list(least) for least in masks)]


def ours(vocabulary: Vocabulary, case: Case, tokens: list[int], takes: int) -> list[Any]:
    """[seconds to compile, seconds of masks with a new grammar, seconds of masks again]."""
    figures = []
    for _ in range(takes):
        start = time.thread_time()
        grammar = _grammar(case, vocabulary)
        figures.append([time.thread_time() - start])
        words = np.zeros(grammar._core.mask_words(), np.uint32)
        for _ in range(2):
            state, seconds = State(grammar), []
            for token in tokens:
                start = time.thread_time()
                state._core.mask(words)
                seconds.append(time.thread_time() - start)
                assert state.accept(token)
            figures[-1].append(seconds)
    return _least(figures)


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


def _their_grammar(case: Case) -> str:
    from llguidance import LLMatcher

    if case.kind == "regex":
        return LLMatcher.grammar_from_regex(case.source)
    options: dict[str, Any] = {"whitespace_flexible": case.white_space == "flexible"}
    if case.white_space == "compact":
        options |= {"item_separator": ",", "key_separator": ":"}
    text = json.dumps({} if case.source is True else case.source)
    return LLMatcher.grammar_from_json_schema(text, defaults=options)


def theirs(count: int, case: Case, tokens: list[int], takes: int) -> list[Any]:
    """As `ours`, of llguidance. Texts end where it takes them no further."""
    from llguidance import LLMatcher
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    tokenizer = _peer(count)
    words = allocate_token_bitmask(1, count)
    figures = []
    for _ in range(takes):
        start = time.thread_time()
        matcher = LLMatcher(tokenizer, _their_grammar(case))
        figures.append([time.thread_time() - start])
        for _ in range(2):
            seconds = []
            for token in tokens:
                start = time.thread_time()
                fill_next_token_bitmask(matcher, words, 0)
                seconds.append(time.thread_time() - start)
                if not matcher.consume_token(token):
                    break
            matcher.reset()
            figures[-1].append(seconds)
    return _least(figures)


def _row(name: str, side: str, all_figures: list[list[Any]]) -> list[str]:
    row = [name, side, f"{sum(one[0] for one in all_figures) * 1e3:.2f}"]
    for at in (1, 2):
        micros = np.array([second for one in all_figures for second in one[at]]) * 1e6
        shown = (np.median(micros), micros.mean(), np.percentile(micros, 99), micros.max())
        row += [f"{figure:.1f}" for figure in shown]
    micros = np.array([second for one in all_figures for second in one[1]]) * 1e6
    return [*row, f"{(micros > 50).sum()} of {len(micros)}"]


def _masks(
    tokens: list[bytes],
    vocabulary: Vocabulary,
    groups: dict[str, list[Case]],
    only: str,
    takes: int,
) -> list[Table]:
    encode = encoder(tokens)
    parts = ("median µs", "mean", "p99", "max")
    heads = ["compile ms", *(f"{when}: {part}" for when in ("new", "again") for part in parts)]
    heads.append("new: over 50 µs")
    table = Table("grammar", "", *heads, title=f"{len(tokens)} tokens, CPU time")
    first_masks, all_ours, all_theirs = [], [], []
    for name, group in groups.items():
        if only not in name:
            continue
        chance, mine, others = random.Random(name), [], []
        for case in group:
            if case.text is None:
                written = _drawn(_grammar(case, vocabulary), tokens, chance)
            else:
                written = encode(case.text.encode())
            mine.append(ours(vocabulary, case, written, takes))
            for at, seconds in enumerate(mine[-1][1]):
                before = b"".join(tokens[token] for token in written[:at])
                first_masks.append((seconds * 1e6, name, str(case.source)[:60], repr(before)[-40:]))
            if case.kind != "tools":
                others.append(theirs(len(tokens), case, written, takes))
        table.add_row(*_row(name, "ours", mine))
        if others:
            table.add_row(*_row("", "llguidance", others))
        all_ours += mine
        all_theirs += others
    if all_ours:
        table.add_row(*_row("all", "ours", all_ours))
    if all_theirs:
        table.add_row(*_row("", "llguidance", all_theirs))
    worst = Table("µs", "grammar", "", "after", title="the worst first masks")
    for micros, *names in sorted(first_masks, reverse=True)[:20]:
        worst.add_row(f"{micros:.1f}", *map(escape, names))
    return [table, worst]


class Apart:
    """llguidance in a process of its own: large schemas may overflow its stack, which ends it."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def theirs(self, count: int, case: Case, tokens: list[int], takes: int) -> list[Any] | None:
        """As :func:`theirs`; None if the process crashed."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        try:
            return self._pool.submit(theirs, count, case, tokens, takes).result()
        except BrokenProcessPool:
            self.close()
            return None

    def close(self) -> None:
        """End the process; the next call starts another."""
        if self._pool is not None:
            self._pool.shutdown()
        self._pool = None


def _compiling(count: int, takes: int) -> Table:
    """Of large schemas: to compile them, and the first masks of a text, which llguidance leaves to
    them."""
    tokens = pieces(count)
    vocabulary = Vocabulary(tokens, ends=[len(tokens) - 1])
    table = Table("schema", "", "compile ms", "masks of 20 tokens ms", "max µs")
    peer = Apart()
    for name, schema in large().items():
        case = Case("schema", schema, "compact", None)
        written = _drawn(_grammar(case, vocabulary), tokens, random.Random(name))[:20]
        sides = (
            ("ours", ours(vocabulary, case, written, takes)),
            ("llguidance", peer.theirs(count, case, written, takes)),
        )
        for side, result in sides:
            shown = ["crashed", "", ""]
            if result is not None:
                compiled, masks, _ = result
                figures = compiled * 1e3, sum(masks) * 1e3, max(masks, default=0) * 1e6
                shown = [f"{figure:.2f}" for figure in figures]
            table.add_row(name if side == "ours" else "", side, *shown)
    peer.close()
    return table


def main() -> None:
    """Print a table for each size of vocabulary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="*", default=[32000, 128000])
    parser.add_argument("--only", default="", help="a part of the names of grammars")
    parser.add_argument("--takes", type=int, default=5, help="of each figure")
    arguments = parser.parse_args()
    console = Console(width=160)
    for count in arguments.tokens:
        tokens = pieces(count)
        vocabulary = Vocabulary(tokens, ends=[len(tokens) - 1])
        for groups in (cases(random.Random(3)), hard(vocabulary)):
            if any(arguments.only in name for name in groups):
                console.print(*_masks(tokens, vocabulary, groups, arguments.only, arguments.takes))
        if arguments.only in "compile":
            console.print(_compiling(count, arguments.takes))


if __name__ == "__main__":
    main()
