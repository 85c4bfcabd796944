"""Tokenizers of byte-level BPE, with the regular expressions of each family, trained here."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import tokenizer_corpus as corpus
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PREFIX = r"[^\r\n\p{L}\p{N}]?"
_WORD, _SHOUT = f"{_PREFIX}{_UPPER}*{_LOWER}+", f"{_PREFIX}{_UPPER}+{_LOWER}*"
_REST = r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = f"{_WORD}{CONTRACTIONS}?|{_SHOUT}{CONTRACTIONS}?{_REST}"
TEKKEN = f"{_WORD}|{_SHOUT}{_REST}".replace("{1,3}", "")
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def _split(pattern: str) -> pre_tokenizers.PreTokenizer:
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([split, bytes_only])


def _digits() -> pre_tokenizers.PreTokenizer:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])


PRE_TOKENIZERS = {
    "gpt2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "roberta": lambda: pre_tokenizers.ByteLevel(add_prefix_space=True),
    "smollm": _digits,
    "llama3": lambda: _split(LLAMA3),
    "qwen2": lambda: _split(QWEN2),
    "qwen35": lambda: _split(QWEN35),
    "o200k": lambda: _split(O200K),
    "tekken": lambda: _split(TEKKEN),
}


@cache
def train(family: str, size: int = 3000, text: str | None = None) -> Tokenizer:
    """A tokenizer of a family with a vocabulary of `size`."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=family == "llama3"))
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[family]()
    tokenizer.decoder = decoders.ByteLevel()
    if family.startswith("qwen"):
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        special_tokens=["<|end|>", "<|start|>"],
    )
    tokenizer.train_from_iterator(training_texts() if text is None else [text], trainer)
    return tokenizer


def training_texts() -> Iterable[str]:
    """Some text of every kind."""
    return [corpus.prose()[:300_000], corpus.code()[:200_000], *corpus.texts("training", 100_000)]
