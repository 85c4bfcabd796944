"""Regular expressions as grammars; the oracle is Python's `re`."""

from __future__ import annotations

import random
import re
import time

import numpy as np
import pytest
from walks import END, PIECES, small_vocabulary, walk

from rushlight import Error
from rushlight.llm.grammar import Grammar, State, Vocabulary

PATTERNS = (
    r"[a-z]{2,5}\d+",
    r"(foo|ab*)+-?1",
    r"日+本?.x",
    r"^a|b$",
    r"(a|aa){3,9}",
    r"[^\W\d]{1,3}(, [a-z]+)*",
    r".{0,3}",
    r"\d{3}-\d{4}",
    r"(?:\w+ ){2}end$",
    r"(?P<year>\d{4})-[01]\d",
    r"[\u00e0-\u00ff]+|\x41\.[^\n]",
    r"[😀-😂]{2}",
    r"",
    r"(|a)(b|)c*?",
)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return small_vocabulary()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_walks_match(pattern: str, vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_regex(pattern, vocabulary)
    chance = random.Random(pattern)
    texts = [walk(grammar, PIECES, chance, longest=30) for _ in range(20)]
    ended = [text for text in texts if text is not None]
    assert ended
    for text in ended:
        assert re.fullmatch(pattern, text.decode(), re.ASCII), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_accepted_matches(pattern: str, vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_regex(pattern, vocabulary)
    chance = random.Random(pattern)
    texts = [
        "",
        "a",
        "b",
        "ab12",
        "fooab-1",
        "日本bx",
        "aaaa",
        "123-4567",
        "x y end",
        "2024-11",
        "A.b",
    ]
    texts += ["".join(chance.choices("ab1-c日 éfo", k=chance.randrange(6))) for _ in range(200)]
    for text in texts:
        state = State(grammar)
        accepted = (not text or state.accept_text(text.encode())) and state.can_end()
        assert accepted == bool(re.fullmatch(pattern, text, re.ASCII)), text


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a{1000000000}", "more than 200000 states: use smaller counts"),
        ("((a{0,1000}){0,1000}){0,1000}", "more than 200000 states"),
        ("(a|b)*a(a|b){20}", "more than 20000 states"),
        ("a{3,2}", "lower bound is above"),
        ("a{99999999999999999999}", "count above 1000000000"),
        ("x(?=a)", "looks ahead, which is not supported"),
        ("(?<!a)x", "looks behind, which is not supported"),
        (r"(a)\1", "refers back to a group"),
        (r"\bword\b", "word boundaries are not supported"),
        (r"\p{L}", "classes of Unicode are not supported"),
        ("(?i)a", "flags in a group"),
        ("(" * 1000 + ")" * 1000, "more than 100 deep"),
        ("(((", "'(' without a ')'"),
        ("a)", "')' without a '('"),
        ("[b-a]", "ends are exchanged"),
        ("[]a]", "empty '[]'"),
        ("[a", "'[' without a ']'"),
        ("*", "repeats nothing"),
        ("a**", "repeats a repetition"),
        ("\\", "ends in '\\'"),
        (r"\q", "unknown escape"),
        (r"\ud800", "no character"),
        ("a^b", "no text matches"),
        ("a" * 70000, "longer than 65536 bytes"),
    ],
)
def test_what_cannot_be_is_refused_soon(pattern: str, reason: str, vocabulary: Vocabulary) -> None:
    start = time.process_time()
    with pytest.raises(Error, match=re.escape(reason)):
        Grammar.from_regex(pattern, vocabulary)
    assert time.process_time() - start < 20


def test_counts_beyond_a_repetition_of_nothing_end(vocabulary: Vocabulary) -> None:
    state = State(Grammar.from_regex("(){1000000000}", vocabulary))
    assert state.can_end() and state.must_end()


def test_forced_tokens_stop_where_tokens_could_change(vocabulary: Vocabulary) -> None:
    state = State(Grammar.from_regex(r'\{"name": "[a-z]+", "age": \d\}', vocabulary))
    assert state.forced_text() == b'{"name": "'
    # '"' alone is followed by letters, and no token has both.
    assert b"".join(PIECES[t] for t in state.forced()) == b'{"name": "'
    state = State(Grammar.from_regex(r"x12(3|4)", vocabulary))
    assert state.forced_text() == b"x12"
    assert b"".join(PIECES[t] for t in state.forced()) == b"x"  # as '123' is one token


def test_forced_tokens_after_a_token_within_the_text(vocabulary: Vocabulary) -> None:
    state = State(Grammar.from_regex(r'\{"name": true\}', vocabulary))
    assert state.accept(PIECES.index(b'{"')) and state.accept(PIECES.index(b"n"))
    for token in state.forced():
        assert state.accept(token)
    assert state.must_end() and not state.forced()
    assert np.flatnonzero(state.mask()).tolist() == [END]
    assert state.accept(END) and state.has_ended()
    assert not state.mask().any() and not state.accept(END) and not state.accept_text(b"a")


def test_tokenizer_writes_forced_text() -> None:
    seen = []

    def encode(text: bytes) -> list[int]:
        seen.append(text)
        return [PIECES.index(bytes([byte])) for byte in text]

    grammar = Grammar.from_regex("true|x", Vocabulary(PIECES, ends=[END], encode=encode))
    state = State(grammar)
    assert state.forced() == []
    assert state.accept_text(b"t")
    assert [PIECES[t] for t in state.forced()] == [b"r", b"u", b"e"]
    assert seen == [b"rue"]
    # One that fails, or writes another text, is not used.
    for wrong in (lambda text: 1 / 0, lambda text: [1, 2], lambda text: [-5]):
        state = State(Grammar.from_regex("true", Vocabulary(PIECES, ends=[END], encode=wrong)))
        assert [PIECES[t] for t in state.forced()] == [b"true"]


def test_rewind_and_fork(vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_regex(r"[ab]*c\d{3}", vocabulary)
    state = State(grammar, history=5)
    masks = []
    for letter in b"abbac123":
        masks.append(state.mask())
        assert state.accept(PIECES.index(bytes([letter])))
    fork = state.fork()
    assert state.can_end() and state.accept(END)
    assert state.rewind(1) and state.can_end()
    assert state.rewind(4)
    assert (state.mask() == masks[4]).all()
    assert not state.rewind(1)  # the history is at its end
    assert fork.can_end()
    assert fork.rewind(0) and not fork.rewind(6) and fork.can_end()
    assert fork.rewind(5) and (fork.mask() == masks[3]).all()


def test_special_tokens_are_no_text() -> None:
    pieces = [b"</s>", b"<tool>", b"a", b"<", b"tool>", b"\xff", b"a\xff"]
    vocabulary = Vocabulary(pieces, special=[1], ends=[0])
    state = State(Grammar.from_regex(r"a*(<tool>)?", vocabulary))
    assert np.flatnonzero(state.mask()).tolist() == [0, 2, 3]


def test_wrong_vocabularies() -> None:
    with pytest.raises(Error, match="vocabulary of 0 tokens"):
        Vocabulary([])
    with pytest.raises(Error, match="end token 7 is not in the vocabulary of 1 tokens"):
        Vocabulary([b"a"], ends=[7])
    with pytest.raises(Error, match="special token -1"):
        Vocabulary([b"a"], special=[-1])
