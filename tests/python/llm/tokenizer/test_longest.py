"""Tokens of BPE found by the longest ones, without merges: the same as the merges give."""

from __future__ import annotations

import random
import struct

import pytest
import tokenizer_corpus as corpus
from tokenizers import Tokenizer as Peer
from tokenizers import decoders, models, pre_tokenizers, trainers

from rushlight.errors import LoadError
from rushlight.llm.tokenizer import Tokenizer, compile
from rushlight.llm.tokenizer.byte_level import CHARACTERS
from rushlight.llm.tokenizer.merges import _merged, derived
from rushlight.llm.tokenizer.table import Section
from rushlight.llm.tokenizer.tries import token_trie

TRIE = (Section.TOKEN_UNITS, Section.UNIT_TOKENS, Section.HALVES)
# Characters that share bytes, so that merges of parts of two of them come about.
SHARED = [chr(0x4E00 + 64 * i + j) for i in range(8) for j in (0, 1, 2)] + list("aàá😀😁")


def _sections(table: bytes) -> dict[int, int]:
    """Where the head of each section stands."""
    (sections,) = struct.unpack_from("<I", table, 8)
    heads = (16 + 24 * i for i in range(sections))
    return {struct.unpack_from("<I", table, head)[0]: head for head in heads}


def _without_trie(table: bytes) -> bytes:
    """The table as if its tokens were found by merges alone."""
    changed, heads = bytearray(table), _sections(table)
    for section in TRIE:
        struct.pack_into("<I", changed, heads[section], Section.BYTE_JOINS)  # which nobody reads
    return bytes(changed)


def _bytes_peer(merges: list[tuple[str, str]], **options: bool) -> Peer:
    """Over bytes, with all of them and then the merges' tokens as its vocabulary."""
    names = [*CHARACTERS, *dict.fromkeys(one + two for one, two in merges)]
    peer = Peer(models.BPE({name: token for token, name in enumerate(names)}, merges, **options))
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return peer


@pytest.mark.parametrize("size", [300, 400, 900])
def test_tokens_are_those_of_merges(size: int) -> None:
    peer = Peer(models.BPE())
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, show_progress=False, max_token_length=5
    )
    peer.train_from_iterator(corpus.of_alphabet("training", SHARED, 300), trainer)
    table = compile(peer)
    ours, merged = Tokenizer(table), Tokenizer(_without_trie(table))
    others = [*SHARED, *(chr(0x4E00 + 5 * i) for i in range(60)), "é", "\x00"]
    for text in corpus.of_alphabet(f"bytes {size}", others, 300):
        expected = peer.encode(text).ids
        assert ours.encode(text) == expected, text
        assert merged.encode(text) == expected, text


def _drawn(draw: random.Random) -> list[tuple[str, str]]:
    """Merges of few letters, in an order that may be any."""
    tokens, merges = list("abc"), []
    while len(merges) < draw.randrange(4, 25):
        pair = draw.choice(tokens), draw.choice(tokens)
        if pair not in merges and len(pair[0] + pair[1]) < 9:
            merges.append(pair)
            tokens.append(pair[0] + pair[1])
    if draw.random() < 0.3:
        draw.shuffle(merges)
    return merges


def test_drawn_merges_give_their_tokens() -> None:
    draw = random.Random("drawn merges")
    found = 0
    for _ in range(150):
        peer = _bytes_peer(_drawn(draw))
        table = compile(peer)
        found += Section.HALVES in _sections(table)
        ours = Tokenizer(table)
        for size in (2, 5, 9, 20, 60, 400):
            text = "".join(draw.choices("abc", k=size))
            assert ours.encode(text) == peer.encode(text).ids, text
    assert 50 < found < 150  # some orders cannot be told from the last merges


def test_tokens_that_their_texts_become_are_derived() -> None:
    draw = random.Random("derived")
    known = 0
    for _ in range(100):
        names = _drawn(draw)
        tokens = {name: token for token, name in enumerate("abc")}
        merges = {}
        for rank, (left, right) in enumerate(names):
            if left in tokens and right in tokens:
                token = tokens.setdefault(left + right, len(tokens))
                merges[tokens[left], tokens[right]] = (rank, token)
        symbols = {tokens[one]: one.encode() for one in "abc"}
        result = derived(merges, symbols)
        if result is None:
            continue
        known += 1
        for text, token in tokens.items():
            is_own = _merged([tokens[one] for one in text], merges) == [token]
            assert is_own == (token in result.texts), text
            assert (token in result.halves) == (is_own and len(text) > 1)
    assert known > 30


def test_words_are_taken_that_no_merge_makes() -> None:
    merges = [("a", "b"), ("ab", "c"), ("x", "y")]
    vocabulary = _bytes_peer(merges).get_vocab() | {"cab": 300, "abx": 301, "cabx": 302}
    peer = Peer(models.BPE(vocabulary, merges, ignore_merges=True))
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    peer.decoder = decoders.ByteLevel()
    ours = Tokenizer.from_source(peer)
    for text in ("cab", "abx", "cabx", "cabxy", "abxcab", "cab!abx", "xcab", "abcxy", "cabab"):
        assert ours.encode(text) == peer.encode(text).ids, text


@pytest.mark.parametrize("unit", ["ab", "a", "abab"])
def test_long_runs_take_linear_time(unit: str) -> None:
    merges = [("a", "b"), ("a", "a"), ("ab", "ab"), ("aa", "aa"), ("abab", "ab"), ("aaaa", "a")]
    peer = _bytes_peer(merges)
    ours = Tokenizer.from_source(peer)
    for size in (1, 7, 1000, 100_001):
        text = unit * size + "c"
        assert ours.encode(text) == peer.encode(text).ids


def test_damaged_tries_are_refused_or_give_tokens() -> None:
    draw = random.Random("damaged tries")
    table = compile(_bytes_peer([("a", "b"), ("ab", "c"), ("b", "c"), ("abc", "ab"), ("c", "a")]))
    heads = _sections(table)
    opened = 0
    for _ in range(400):
        damaged = bytearray(table)
        for _ in range(draw.randrange(1, 4)):
            offset, size = struct.unpack_from("<2Q", table, heads[draw.choice(TRIE)] + 8)
            number = draw.choice([0, 1, 98, 0x161, 257, 0xFFFF, 0xFFFFFFFF, draw.getrandbits(32)])
            struct.pack_into("<I", damaged, offset + draw.randrange(size // 4) * 4, number)
        try:
            ours = Tokenizer(damaged)
        except LoadError as error:
            assert "damaged" in str(error)
            continue
        opened += 1
        tokens = ours.encode("".join(draw.choices("abcx", k=300)))
        assert all(0 <= token < len(ours) for token in tokens)
    assert opened > 50


def test_a_trie_has_the_texts_and_nothing_else() -> None:
    draw = random.Random("token trie")
    for alphabet in (b"ab", bytes(range(256)), "中丰也一丁".encode()):
        texts = {bytes(draw.choices(alphabet, k=draw.randrange(1, 7))) for _ in range(2000)}
        tokens = {text: token for token, text in enumerate(sorted(texts))}
        trie = token_trie(tokens)
        assert trie is not None
        units, values = trie

        def found(text: bytes, units: list[int], values: list[int]) -> int | None:
            place = 0
            for byte in text:
                place = (units[place] >> 9) ^ byte
                if units[place] & 0xFF != byte:
                    return None
            return values[place] if units[place] >> 8 & 1 else None

        lists = units.tolist(), values.tolist()
        for text, token in tokens.items():
            assert found(text, *lists) == token
        for _ in range(20_000):
            text = bytes(draw.choices(range(256), k=draw.randrange(1, 5)))
            assert found(text, *lists) == tokens.get(text)
        assert len(units) % 256 == 0
