"""Byte-level BPE against tokenizers and tiktoken."""

from __future__ import annotations

import pytest
import tokenizer_byte_level as byte_level
import tokenizer_corpus as corpus
import tokenizer_mutations as mutations
from tokenizer_compare import assert_equal_tokens

from rushlight.errors import ExportError
from rushlight.llm.tokenizer import Tokenizer, compile
from rushlight.llm.tokenizer.byte_level import to_bytes

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
