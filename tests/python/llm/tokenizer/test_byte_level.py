"""Byte-level BPE against tokenizers and tiktoken."""

from __future__ import annotations

import random

import pytest
import tokenizer_byte_level as byte_level
import tokenizer_corpus as corpus
import tokenizer_mutations as mutations
from tokenizer_compare import assert_equal_tokens
from tokenizers import Tokenizer as Peer
from tokenizers import models, pre_tokenizers

from rushlight.errors import ExportError
from rushlight.llm.tokenizer import Tokenizer, compile
from rushlight.llm.tokenizer.byte_level import CHARACTERS, to_bytes

FAMILIES = ("gpt2", "roberta", "smollm", "llama3", "qwen2", "qwen35", "o200k", "tekken")


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_those_of_tokenizers(family: str) -> None:
    peer = byte_level.train(family)
    texts = corpus.texts(family, 150_000) + mutations.texts(family, 100_000)
    assert_equal_tokens(
        Tokenizer.from_source(peer),
        lambda text: peer.encode(text).ids,
        lambda tokens: peer.decode(tokens, skip_special_tokens=False),
        [*texts, "".join(texts)],
    )


@pytest.mark.parametrize("pattern", [byte_level.CL100K, byte_level.O200K, byte_level.LLAMA3])
def test_tokens_are_those_of_tiktoken(pattern: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    special = {"<|end|>": 0, "<|start|>": 1}
    vocabulary = byte_level.train("llama3").get_vocab()
    ranks = {to_bytes(text): id for text, id in vocabulary.items() if text not in special}
    peer = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    ours = Tokenizer.from_source(peer)
    texts = corpus.texts(pattern, 200_000)
    texts.append("".join(texts))
    assert_equal_tokens(
        ours, lambda text: peer.encode(text, allowed_special="all"), peer.decode, texts
    )
    for text in texts:
        assert ours.encode(text, parse_special=False) == peer.encode_ordinary(text)
    with pytest.raises(ExportError, match=r"NL.*not one that Rushlight knows"):
        compile(
            tiktoken.Encoding(
                "x", pat_str=r"\p{N}|\p{NL}", mergeable_ranks=ranks, special_tokens={}
            )
        )


def _drawn_merges(draw: random.Random, alphabet: str) -> list[tuple[bytes, bytes]]:
    """Merges of neighbours in texts, which join parts of characters as often as whole ones."""
    tokens = {bytes([byte]) for byte in range(256)}
    merges: list[tuple[bytes, bytes]] = []
    while len(merges) < 60:
        text, parts = "".join(draw.choices(alphabet, k=4)).encode(), []
        while text:
            size = draw.choice([n for n in range(1, len(text) + 1) if text[:n] in tokens])
            parts.append(text[:size])
            text = text[size:]
        at = draw.randrange(len(parts) - 1) if len(parts) > 1 else None
        if at is None or parts[at] + parts[at + 1] in tokens:
            continue
        merges.append((parts[at], parts[at + 1]))
        tokens.add(parts[at] + parts[at + 1])
    if draw.random() < 0.5:
        draw.shuffle(merges)
    return merges


def test_parts_of_characters_are_merged_in_their_order() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    draw = random.Random("parts of characters")
    whole = 0
    for _ in range(60):
        alphabet = draw.choice(["中丰也", "éèaê ", "😀😃x", "一丁é a", "กขa"])
        merges = _drawn_merges(draw, alphabet)
        texts = [bytes([byte]) for byte in range(256)] + [one + two for one, two in merges]
        named = ["".join(CHARACTERS[byte] for byte in text) for text in texts]
        name_of = dict(zip(texts, named, strict=True))
        pairs = [(name_of[one], name_of[two]) for one, two in merges]
        peer = Peer(models.BPE({name: token for token, name in enumerate(named)}, pairs))
        peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        ranks = {text: token for token, text in enumerate(texts)}
        other = tiktoken.Encoding(
            "parts", pat_str=byte_level.LLAMA3, mergeable_ranks=ranks, special_tokens={}
        )
        ours, our_other = Tokenizer.from_source(peer), Tokenizer.from_source(other)
        whole += any(len(text) > 1 and _is_character(text) for text in texts)
        for size in (1, 2, 3, 5, 8, 13, 60, 400):
            text = "".join(draw.choices(alphabet, k=size))
            assert ours.encode(text) == peer.encode(text).ids, text
            assert our_other.encode(text) == other.encode_ordinary(text), text
    assert whole > 30  # of the vocabularies have tokens of whole characters


def test_tokens_that_no_text_has_are_no_characters() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    odd = [b"\xc0\xc3", b"\xc3\xc3", b"\xe0\x80", b"\xe0\x80\x80", b"\xed\xa0", b"\xed\xa0\x80"]
    odd += [b"\xf5\x80", b"\xa9\xc0", "é".encode(), "中".encode()[:2], "中".encode(), b"\x80\x80"]
    ranks = {text: at for at, text in enumerate([*(bytes([one]) for one in range(256)), *odd])}
    peer = tiktoken.Encoding(
        "odd", pat_str=byte_level.LLAMA3, mergeable_ranks=ranks, special_tokens={}
    )
    ours = Tokenizer.from_source(peer)
    for text in ("中é中é", "é", "退\ud7ff中", "\U00040000é"):
        assert ours.encode(text) == peer.encode_ordinary(text)


def _is_character(text: bytes) -> bool:
    return len(text.decode("utf-8", "replace")) == 1 and "\ufffd" not in text.decode(
        "utf-8", "replace"
    )
