"""Writes tokenizer_*.table: small tokenizers of each kind, for the C++ tests and for later readers.

    PYTHONPATH=tests/python/llm/tokenizer python tests/golden/make_tokenizers.py

Files that are there are kept: they must load for ever. tokenizers.json has texts and tokens.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizer_byte_level as byte_level
from tokenizers import Tokenizer as Peer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from rushlight.llm.tokenizer import Tokenizer, compile

FOLDER = Path(__file__).parent
TEXT = """\
A rushlight was the smallest torch: the pith of a rush, dipped in fat, a penny for a dozen.
It's light in every cottage; they'll burn for 30 minutes, we've counted 1234 of them, and more.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Ça va, où êtes-vous ?
def light(rush, fat=2): return [dip(r, fat) for r in rush]  # 中文 日本語 한국어 привет мир
"""
TEXTS = [
    TEXT,
    "",
    " ",
    "they'll  light\n\n\n it 😀",
    "12345 <|end|> É́x 中文",
    "ﬁｗ①\t<s>x</s> <sep>y",
    "a" * 50,
    "日本語中文한국어приветмироù😀êtes😁vous" * 5,
]
RULES = "FB01\t66 69\nFF57\t77\n2460\t31\n9\t20\n45 301\tC9\n"


def _byte_level() -> Any:
    peer = Peer(models.BPE(ignore_merges=True))
    peer.pre_tokenizer = byte_level.PRE_TOKENIZERS["o200k"]()
    peer.normalizer = normalizers.NFC()
    peer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>"],
        show_progress=False,
    )
    peer.train_from_iterator([TEXT], trainer)
    return peer


def _word_piece() -> Any:
    peer = Peer(models.WordPiece(unk_token="[UNK]"))
    peer.normalizer = normalizers.BertNormalizer()
    peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    peer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    peer.train_from_iterator([TEXT], trainer)
    peer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return peer


def _sentence_piece(kind: str) -> Any:
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(RULES)
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXT.splitlines() * 3),
            model_writer=model,
            vocab_size=370 if kind == "bpe" else 360,
            model_type=kind,
            byte_fallback=True,
            user_defined_symbols=["<sep>"],
            normalization_rule_tsv=rules.name,
            minloglevel=2,
        )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def main() -> None:
    expected = {}
    makers = {
        "byte_level": _byte_level,
        "word_piece": _word_piece,
        "bpe": lambda: _sentence_piece("bpe"),
        "unigram": lambda: _sentence_piece("unigram"),
        # The same of version 2 of the table.
        "byte_level_2": _byte_level,
        "unigram_2": lambda: _sentence_piece("unigram"),
        # And of version 3.
        "byte_level_3": _byte_level,
        "bpe_3": lambda: _sentence_piece("bpe"),
        "unigram_3": lambda: _sentence_piece("unigram"),
        # And of version 4.
        "byte_level_4": _byte_level,
        "bpe_4": lambda: _sentence_piece("bpe"),
        "unigram_4": lambda: _sentence_piece("unigram"),
    }
    for name, make in makers.items():
        path = FOLDER / f"tokenizer_{name}.table"
        if not path.exists():
            path.write_bytes(compile(make()))
        ours = Tokenizer(path.read_bytes())
        expected[path.name] = [[text, ours.encode(text)] for text in TEXTS]
    (FOLDER / "tokenizers.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
