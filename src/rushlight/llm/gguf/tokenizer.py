"""The tokenizer of a GGUF file, as one of `tokenizers`.

What a file does not say, its name of a pre-tokenizer stands for, as in llama.cpp.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.gguf.file import GgufFile
from rushlight.llm.tokenizer.from_sentencepiece import Type as TokenType  # the same numbers
from rushlight.llm.tokenizer.merges import halves

_SPACE = "▁"
_CASES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_END = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CASES}|{_BEFORE}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_END}"
_QWEN2 = rf"{_CASES}|{_BEFORE}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_END}"
_QWEN35 = (
    rf"{_CASES}|{_BEFORE}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_END}"
)
_TEKKEN = (
    rf"{_BEFORE}{_UPPER}*{_LOWER}+|{_BEFORE}{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_END}"
)
_O200K = (
    rf"{_BEFORE}{_UPPER}*{_LOWER}+{_CASES}?|{_BEFORE}{_UPPER}+{_LOWER}*{_CASES}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_END}"
)


@dataclass(frozen=True)
class Splitting:
    """What the name of a pre-tokenizer stands for.

    Attributes:
        pattern: the regular expression of words; None for GPT-2's.
        splits_digits: whether digits are words of their own before that.
        takes_whole_words: whether a word that is a token is not put together by merges.
        adds_bos: whether a text begins with a token, unless the file says it.
        composes: whether characters are composed first (NFC).
    """

    pattern: str | None = None
    splits_digits: bool = False
    takes_whole_words: bool = False
    adds_bos: bool = False
    composes: bool = False


def _named(names: str, splitting: Splitting) -> dict[str, Splitting]:
    return dict.fromkeys(names.split(), splitting)


SPLITTINGS = {
    **_named(
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2",
        Splitting(_LLAMA3, takes_whole_words=True, adds_bos=True),
    ),
    **_named("dbrx smaug-bpe chatglm-bpe", Splitting(_LLAMA3)),
    **_named("glm4", Splitting(_LLAMA3, takes_whole_words=True)),
    **_named("gpt-2 phi-2 mpt olmo jais trillion gigachat mellum exaone4 a.x-4.0", Splitting()),
    **_named(
        "smollm starcoder refact command-r codeshell exaone minerva-7b",
        Splitting(splits_digits=True),
    ),
    **_named("qwen2 deepseek-r1-qwen megrez", Splitting(_QWEN2, composes=True)),
    **_named("stablelm2 hunyuan", Splitting(_QWEN2)),
    **_named("qwen35", Splitting(_QWEN35, composes=True)),
    **_named("tekken", Splitting(_TEKKEN, takes_whole_words=True, adds_bos=True)),
    **_named("gpt-4o llama4 kanana2 minimax-m2", Splitting(_O200K)),
}
"""By the names in `tokenizer.ggml.pre`."""


class Vocabulary:
    """The tokens of a file.

    Args:
        file: the file.

    Raises:
        ExportError: lists of the file have other lengths than that of the tokens.
    """

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        self.texts = file.texts("tokenizer.ggml.tokens")
        self.types = self._for_each("tokenizer.ggml.token_type", 1)
        self.scores = self._for_each("tokenizer.ggml.scores", 0.0)

    def _for_each(self, key: str, default: float) -> list[Any]:
        found: list[Any] = self.file.numbers(key).tolist()
        if found and len(found) != len(self.texts):
            raise ExportError(
                f"{key!r} of {self.file.path} has {len(found)} elements, and there are "
                f"{len(self.texts)} tokens",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        return found or [default] * len(self.texts)

    def token(self, role: str) -> int | None:
        """The token with a role, such as "bos"; None if there is none."""
        key = f"tokenizer.ggml.{role}_token_id"
        token = self.file.integer(key, -1)
        if token >= len(self.texts) > 0:
            raise ExportError(
                f"{key!r} of {self.file.path} is {token}, and there are {len(self.texts)} tokens",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        return token if 0 <= token < len(self.texts) else None

    def of_type(self, kind: TokenType) -> list[str]:
        """The texts of the tokens of a kind."""
        return [text for text, one in zip(self.texts, self.types, strict=True) if one == kind]


def tokenizer_of(vocabulary: Vocabulary) -> Any:
    """The `tokenizers.Tokenizer` of a file.

    Raises:
        ExportError: it is not supported, or its parts contradict each other.
    """
    file = vocabulary.file
    kind = file.text("tokenizer.ggml.model")
    if kind not in _READERS:
        raise ExportError(
            f"{file.path} has a tokenizer of the model {kind!r}; supported are "
            f"{', '.join(_READERS)}: give tokenizer= a tokenizer.json of the model",
            code=Code.NOT_SUPPORTED,
        )
    if len(set(vocabulary.texts)) != len(vocabulary.texts):
        raise ExportError(
            f"'tokenizer.ggml.tokens' of {file.path} has the same text twice: give tokenizer= a "
            f"tokenizer.json of the model",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    source = {"version": "1.0", "truncation": None, "padding": None, **_READERS[kind](vocabulary)}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    source["added_tokens"] = [
        {"id": token, "content": text, **plain, "special": one == TokenType.CONTROL}
        for token, (text, one) in enumerate(zip(vocabulary.texts, vocabulary.types, strict=True))
        if one in (TokenType.CONTROL, TokenType.USER_DEFINED) and text
    ]
    return _made(source, file)


def _made(source: dict[str, Any], file: GgufFile) -> Any:
    import tokenizers

    try:
        return tokenizers.Tokenizer.from_str(json.dumps(source))
    except Exception as error:  # tokenizers raises nothing narrower
        raise ExportError(
            f"tokenizers cannot make a tokenizer of the tokens and merges of {file.path}: {error}",
            code=Code.INVALID_EXTERNAL_DATA,
        ) from error


def _model(vocabulary: Vocabulary, merges: list[tuple[str, str]], **more: Any) -> dict[str, Any]:
    return {
        "type": "BPE",
        "vocab": {text: token for token, text in enumerate(vocabulary.texts)},
        "merges": merges,
        **more,
    }


def _byte_level(vocabulary: Vocabulary) -> dict[str, Any]:
    """Byte-level BPE with merges."""
    file = vocabulary.file
    name = file.text("tokenizer.ggml.pre", "default")
    if name not in SPLITTINGS:
        raise ExportError(
            f"{file.path} has the pre-tokenizer {name!r}, which is not supported; supported are "
            f"{', '.join(SPLITTINGS)}: give tokenizer= a tokenizer.json of the model",
            code=Code.NOT_SUPPORTED,
        )
    splitting = SPLITTINGS[name]
    merges = [_pair(merge, file) for merge in file.texts("tokenizer.ggml.merges")]
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    parts: list[dict[str, Any]] = []
    if splitting.splits_digits:
        parts.append({"type": "Digits", "individual_digits": True})
    if splitting.pattern is not None:
        pattern = {"Regex": splitting.pattern}
        parts.append({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False})
    parts.append({**by_bytes, "use_regex": splitting.pattern is None})
    return {
        "normalizer": {"type": "NFC"} if splitting.composes else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": parts},
        "decoder": {**by_bytes, "use_regex": True},
        "post_processor": _surrounding(vocabulary, splitting.adds_bos),
        "model": _model(vocabulary, merges, ignore_merges=splitting.takes_whole_words),
    }


def _pair(merge: str, file: GgufFile) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not (left and space and right):
        raise ExportError(
            f"'tokenizer.ggml.merges' of {file.path} has {merge[:40]!r}, which is no pair of "
            f"tokens",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    return left, right


def _sentence_piece(vocabulary: Vocabulary) -> dict[str, Any]:
    """SentencePiece's BPE: a pair is merged before others if its token has a higher score."""
    file = vocabulary.file
    unknown = vocabulary.token("unknown")
    has_prefix = file.flag("tokenizer.ggml.add_space_prefix", True)
    escape = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    prefix = [{"type": "Prepend", "prepend": _SPACE}] if has_prefix else []
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if has_prefix else []
    unescape = {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}
    decoders = [unescape, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*prefix, escape]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "post_processor": _surrounding(vocabulary, True),
        "model": _model(
            vocabulary,
            _merges_by_score(vocabulary),
            unk_token=None if unknown is None else vocabulary.texts[unknown],
            fuse_unk=True,
            byte_fallback=bool(vocabulary.of_type(TokenType.BYTE)),
        ),
    }


def _merges_by_score(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    """All pairs of tokens that are a token together, those with the highest score first."""
    tokens = {
        text: token
        for token, (text, one) in enumerate(zip(vocabulary.texts, vocabulary.types, strict=True))
        if one == TokenType.NORMAL
    }
    ordered = sorted(tokens, key=lambda text: (-vocabulary.scores[tokens[text]], tokens[text]))
    return [
        (left, right) for _, left, right in halves(ordered) if left in tokens and right in tokens
    ]


def _surrounding(vocabulary: Vocabulary, adds_bos: bool) -> dict[str, Any] | None:
    """The tokens before and after each text."""
    file = vocabulary.file
    single: list[dict[str, Any]] = [{"Sequence": {"id": "A", "type_id": 0}}]
    special = {}
    for role, default in (("bos", adds_bos), ("eos", False)):
        token = vocabulary.token(role)
        if token is None or not file.flag(f"tokenizer.ggml.add_{role}_token", default):
            continue
        text = vocabulary.texts[token]
        one = {"SpecialToken": {"id": text, "type_id": 0}}
        single = [one, *single] if role == "bos" else [*single, one]
        special[text] = {"id": text, "ids": [token], "tokens": [text]}
    if not special:
        return None
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": special,
    }


_READERS = {"gpt2": _byte_level, "llama": _sentence_piece}
