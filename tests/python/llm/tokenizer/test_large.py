"""All families with vocabularies of 32 k and 128 k over 20 MB, against their libraries.

Half of the texts are drawn from characters of all kinds, half are real text that was changed.
"""

from __future__ import annotations

import pydoc_data.topics
from collections.abc import Iterator
from functools import cache

import pytest
import tokenizer_byte_level as byte_level
import tokenizer_corpus as corpus
import tokenizer_languages as languages
import tokenizer_mutations as mutations
import tokenizer_sentence_piece as sentence_piece
from tokenizer_compare import assert_equal_tokens

from rushlight.llm.tokenizer import Tokenizer
from rushlight.llm.tokenizer.byte_level import to_bytes

pytestmark = pytest.mark.full
SIZE = 10_000_000


@cache
def _training() -> str:
    """Enough different words for large vocabularies."""
    help_pages = "\n".join(map(str, pydoc_data.topics.topics.values()))
    drawn = corpus.texts("large", 3_000_000) + mutations.texts("large", 1_000_000)
    return corpus.prose() + corpus.code() + help_pages + "".join(drawn)


def _texts(seed: str) -> Iterator[str]:
    yield from corpus.texts(seed, SIZE)
    yield from mutations.texts(seed, SIZE)
    yield from languages.everything(SIZE // 20)


@pytest.mark.parametrize("size", [32_000, 128_000])
@pytest.mark.parametrize("family", ["gpt2", "smollm", "llama3", "qwen2", "o200k"])
def test_tokens_are_those_of_tokenizers(family: str, size: int) -> None:
    peer = byte_level.train(family, size, _training())
    assert peer.get_vocab_size() == size
    assert_equal_tokens(
        Tokenizer.from_source(peer),
        lambda text: peer.encode(text).ids,
        lambda tokens: peer.decode(tokens, skip_special_tokens=False),
        _texts(f"{family} {size}"),
    )


@pytest.mark.parametrize("pattern", [byte_level.CL100K, byte_level.O200K])
def test_tokens_are_those_of_tiktoken(pattern: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    vocabulary = byte_level.train("llama3", 128_000, _training()).get_vocab()
    special = {"<|end|>": 0, "<|start|>": 1}
    ranks = {to_bytes(text): id for text, id in vocabulary.items() if text not in special}
    peer = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    assert_equal_tokens(
        Tokenizer.from_source(peer),
        lambda text: peer.encode(text, allowed_special="all"),
        peer.decode,
        _texts(pattern),
    )


@pytest.mark.parametrize("family", sentence_piece.FAMILIES)
def test_tokens_are_those_of_sentencepiece(family: str) -> None:
    pytest.importorskip("sentencepiece")
    peer = sentence_piece.train(family, 32_000, _training())
    ours = Tokenizer.from_source(peer)
    for text in _texts(family):
        expected = peer.encode(text)
        assert ours.encode(text, parse_special=False) == expected, text[:200]
        assert ours.decode(expected) == peer.decode(expected), text[:200]
