"""Models of SentencePiece, with the options of each family, trained here."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Iterator
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
    "bpe": {"model_type": "bpe", "user_defined_symbols": ["<sep>"], "character_coverage": 0.98},
    # As many pieces as the text has, if that is less than was asked for.
    "t5": {"model_type": "unigram", "character_coverage": 0.98, "hard_vocab_limit": False},
    "unigram_bytes": {
        "model_type": "unigram",
        "hard_vocab_limit": False,
        "byte_fallback": True,
        "character_coverage": 0.98,
        "user_defined_symbols": ["<sep>", "[MASK]"],
        "normalization_rule_name": "nfkc_cf",
    },
}


@cache
def train(family: str, size: int = 2000, text: str | None = None) -> Any:
    """A `SentencePieceProcessor` of a family with a vocabulary of `size`."""
    texts = [corpus.prose()[:200_000], corpus.code()[:100_000], *corpus.texts("training", 50_000)]
    lines = "\n".join(texts if text is None else [text]).replace("\0", "").split("\n")
    return train_on(lines, vocab_size=size, max_sentence_length=100_000, **FAMILIES[family])


def train_on(lines: Iterable[str], **options: Any) -> Any:
    """A `SentencePieceProcessor` trained on some lines."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def with_scores(processor: Any, change: Callable[[float], float]) -> Any:
    """The same model with other scores of its pieces."""
    import sentencepiece

    model = bytearray(processor.serialized_model_proto())
    for begin in _messages(model, 1):
        at = begin + 2 + model[begin + 1] + 1  # the score, a float, stands after the text
        (score,) = struct.unpack_from("<f", model, at)
        struct.pack_into("<f", model, at, change(score))
    return sentencepiece.SentencePieceProcessor(model_proto=bytes(model))


def _messages(data: bytearray, wanted: int) -> Iterator[int]:
    """Where the messages of a number begin. All fields of a model are messages."""
    at = 0
    while at < len(data):
        number, size, shift = data[at] >> 3, 0, 0
        while True:
            at += 1
            size |= (data[at] & 127) << shift
            shift += 7
            if data[at] < 128:
                break
        if number == wanted:
            yield at + 1
        at += 1 + size
