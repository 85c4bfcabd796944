"""Models of SentencePiece, and the tokenizer.json that are made of them, against their libraries."""

from __future__ import annotations

import pytest
import tokenizer_corpus as corpus
import tokenizer_sentence_piece as sentence_piece
from tokenizer_compare import assert_equal_tokens

from rushlight.llm.tokenizer import Tokenizer

pytest.importorskip("sentencepiece")


@pytest.mark.parametrize("family", sentence_piece.FAMILIES)
def test_tokens_are_those_of_sentencepiece(family: str) -> None:
    peer = sentence_piece.train(family)
    ours = Tokenizer.from_source(peer)
    texts = corpus.texts(family, 150_000)
    if "unigram" not in family and family != "t5":
        texts.append("".join(texts))
    for text in texts:
        expected = peer.encode(text)
        assert ours.encode(text, parse_special=False) == expected, text[:200]
        decoded = ours.decode(expected)
        assert decoded == peer.decode(expected), text[:200]
        assert "".join(ours.stream(expected)) == decoded
