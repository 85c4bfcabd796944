"""Models of SentencePiece, with the options of each family, trained here."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import tokenizer_corpus as corpus

LLAMA2 = {
    "model_type": "bpe",
    "byte_fallback": True,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "split_digits": True,
    "character_coverage": 0.98,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama2": LLAMA2,
    "gemma": {
        **LLAMA2,
        "add_dummy_prefix": False,
        "allow_whitespace_only_pieces": True,
        "user_defined_symbols": ["<sep>", "[MASK]", "\n\n", "▁▁▁▁"],
    },
    "mistral": {**LLAMA2, "allow_whitespace_only_pieces": True},
    "bpe": {"model_type": "bpe", "user_defined_symbols": ["<sep>"], "character_coverage": 0.99},
    "t5": {"model_type": "unigram", "character_coverage": 0.98},
    "unigram_bytes": {
        "model_type": "unigram",
        "byte_fallback": True,
        "character_coverage": 0.98,
        "user_defined_symbols": ["<sep>", "[MASK]"],
        "normalization_rule_name": "nfkc_cf",
    },
}


@cache
def train(family: str, size: int = 2000, text: str | None = None) -> Any:
    """A `SentencePieceProcessor` of a family with a vocabulary of `size`."""
    import sentencepiece

    texts = [corpus.prose()[:200_000], corpus.code()[:100_000], *corpus.texts("training", 50_000)]
    lines = "\n".join(texts if text is None else [text]).replace("\0", "").split("\n")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        num_threads=1,
        minloglevel=2,
        max_sentence_length=100_000,
        **FAMILIES[family],
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
