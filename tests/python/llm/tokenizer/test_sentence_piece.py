"""Models of SentencePiece against sentencepiece."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizer_corpus as corpus
import tokenizer_sentence_piece as sentence_piece

from rushlight.errors import ExportError
from rushlight.llm.tokenizer import Tokenizer, compile

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


def test_a_folder_says_which_tokens_surround_a_text(tmp_path: Path) -> None:
    peer = sentence_piece.train("llama2")
    (tmp_path / "tokenizer.model").write_bytes(b"nonsense")
    with pytest.raises(ExportError, match="sentencepiece cannot read"):
        compile(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(peer.serialized_model_proto())
    assert Tokenizer.from_source(tmp_path).encode("a b") == peer.encode("a b")
    options = {"add_bos_token": True, "add_eos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    ours = Tokenizer.from_source(tmp_path)
    assert ours.encode("a b") == peer.encode("a b", add_bos=True, add_eos=True)
    assert ours.encode("a b", add_special=False) == peer.encode("a b")
    assert ours.encode("<s>", add_special=False) == [peer.bos_id()]
    for damaged, told in (("{", "JSON"), ("[" * 100_000, "JSON"), ("[]", "a JSON object")):
        (tmp_path / "tokenizer_config.json").write_text(damaged)
        with pytest.raises(ExportError, match=rf"tokenizer_config.json is not {told}"):
            compile(tmp_path)
