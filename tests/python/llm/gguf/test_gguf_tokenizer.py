"""Tokenizers of GGUF files give the tokens of those that they were made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest
import tokenizer_byte_level as byte_level
import tokenizer_corpus as corpus
import tokenizer_sentence_piece as sentence_piece
from gguf_files import PRE_TOKENIZERS, add_entry, byte_level_entries, sentence_piece_entries
from tokenizer_compare import assert_equal_tokens

from rushlight.errors import ExportError
from rushlight.llm.gguf.file import GgufFile
from rushlight.llm.gguf.texts import generation_of, special_tokens
from rushlight.llm.gguf.tokenizer import SPLITTINGS, Vocabulary, tokenizer_of
from rushlight.llm.tokenizer import Tokenizer

TEXTS = 60_000


def _vocabulary(path: Path, **entries: Any) -> Vocabulary:
    writer = gguf.GGUFWriter(path / "tokens.gguf", "llama")
    for key, value in entries.items():
        add_entry(writer, f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return Vocabulary(GgufFile(path / "tokens.gguf"))


def _of_byte_level(path: Path, peer: Any, name: str, **more: Any) -> Vocabulary:
    return _vocabulary(path, **{**byte_level_entries(peer, name), **more})


@pytest.mark.parametrize("family", PRE_TOKENIZERS)
def test_byte_level_tokens_are_those_of_tokenizers(family: str, tmp_path: Path) -> None:
    peer = byte_level.train(family, 1000, corpus.prose()[:100_000])
    vocabulary = _of_byte_level(tmp_path, peer, PRE_TOKENIZERS[family], add_bos_token=False)
    ours = Tokenizer.from_source(tokenizer_of(vocabulary))
    assert_equal_tokens(
        ours,
        lambda text: peer.encode(text).ids,
        lambda tokens: peer.decode(tokens, skip_special_tokens=False),
        corpus.texts(family, TEXTS),
    )


@pytest.mark.parametrize("family", ["llama2", "gemma"])
def test_sentence_piece_tokens_are_those_of_sentencepiece(family: str, tmp_path: Path) -> None:
    peer = sentence_piece.train(family)
    user = sentence_piece.FAMILIES[family].get("user_defined_symbols", [])
    entries = sentence_piece_entries(peer, user, has_prefix=family == "llama2")
    vocabulary = _vocabulary(tmp_path, **entries)
    made = tokenizer_of(vocabulary)
    assert made.encode("a").ids[0] == peer.bos_id()
    ours = Tokenizer.from_source(made)
    different = [
        text
        for text in corpus.texts(family, TEXTS)
        if ours.encode(text, add_special=False, parse_special=False) != peer.encode(text)
    ]
    assert not different, [text[:80] for text in different[:3]]


def test_files_say_what_begins_and_ends_texts(tmp_path: Path) -> None:
    peer = byte_level.train("llama3", 1000, corpus.prose()[:100_000])
    vocabulary = _of_byte_level(tmp_path, peer, "llama-bpe", add_eos_token=True)
    begin, end = peer.token_to_id("<|start|>"), peer.token_to_id("<|end|>")
    ours = Tokenizer.from_source(tokenizer_of(vocabulary))
    assert ours.encode("a") == [begin, *peer.encode("a").ids, end]
    assert special_tokens(vocabulary) == {"bos_token": "<|start|>", "eos_token": "<|end|>"}
    assert generation_of(vocabulary) == {"bos_token_id": begin, "eos_token_id": [end]}


def test_control_tokens_that_end_replies_are_found(tmp_path: Path) -> None:
    vocabulary = _vocabulary(
        tmp_path,
        tokens=["a", "</s>", "<|im_end|>", "<|eom_id|>", "<|end|>", "b"],
        token_type=[1, 3, 3, 3, 1, 1],
        eos_token_id=1,
        eot_token_id=5,
    )
    assert generation_of(vocabulary) == {"eos_token_id": [1, 5, 2, 3]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "t5"}, "the model 't5'; supported are gpt2, llama"),
        ({"pre": "no-such"}, "the pre-tokenizer 'no-such', which is not supported"),
        ({"token_type": [1]}, "'tokenizer.ggml.token_type' .* has 1 elements, and there are 3"),
        ({"merges": ["a b", "ab"]}, "'tokenizer.ggml.merges' .* has 'ab', which is no pair"),
        ({"merges": ["a x"]}, "tokenizers cannot make a tokenizer"),
        ({"tokens": ["a", "b", "a"]}, "the same text twice"),
        ({"bos_token_id": 3}, "'tokenizer.ggml.bos_token_id' .* is 3, and there are 3 tokens"),
        ({"merges": [1, 2]}, "'tokenizer.ggml.merges' .* must be an array of texts"),
        ({"pre": 3}, "'tokenizer.ggml.pre' is 3, and must be a text"),
        ({"add_bos_token": "yes", "bos_token_id": 1}, "'yes', and must be a truth value"),
    ],
)
def test_what_is_wrong_with_a_tokenizer_is_said(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    sound = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "ab"], "merges": ["a b"]}
    with pytest.raises(ExportError, match=message):
        tokenizer_of(_vocabulary(tmp_path, **{**sound, **changes}))


def test_every_pre_tokenizer_compiles(tmp_path: Path) -> None:
    for name in SPLITTINGS:
        sound = {"model": "gpt2", "tokens": ["a", "b", "ab"], "merges": ["a b"]}
        made = tokenizer_of(_vocabulary(tmp_path, pre=name, **sound))
        assert Tokenizer.from_source(made).encode("ab") == [2]
