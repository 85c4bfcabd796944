"""Reads a `tokenizers.Tokenizer` (a file tokenizer.json)."""

from __future__ import annotations

import json
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.tokenizer import byte_level
from rushlight.llm.tokenizer.decoders import Decoder, decoder_of
from rushlight.llm.tokenizer.normalizers import normalizer_of
from rushlight.llm.tokenizer.pre_tokenizers import is_byte_level, splitter_of
from rushlight.llm.tokenizer.processors import surrounding
from rushlight.llm.tokenizer.table import AddedToken, Flag, Kind, Model, StartRule, Tokens

UNKNOWN_PENALTY = 10.0  # of an unknown character, below the least score


def read_tokenizer(tokenizer: Any) -> Tokens:
    """What the table says of a `tokenizers.Tokenizer`.

    Raises:
        ExportError: it uses a model, normaliser, pre-tokenizer or decoder that is not supported.
    """
    source = json.loads(tokenizer.to_str())
    model = source["model"]
    normalizer, charsmap = normalizer_of(source["normalizer"])
    splitter = splitter_of(source["pre_tokenizer"])
    added = [_added(one, tokenizer.normalizer) for one in source["added_tokens"]]
    vocabulary = _vocabulary(model)
    texts = {token: text for text, token in vocabulary.items()}
    texts |= {one["id"]: one["content"] for one in source["added_tokens"]}
    special = {one.token for one in added if one.special}
    decoder = decoder_of(source["decoder"])
    pieces, kinds = _pieces(texts, special, decoder)
    before, after = surrounding(source["post_processor"])
    tokens = Tokens(
        model=Model.BPE,
        pieces=pieces,
        kinds=kinds,
        flags=Flag.SPACED_SPECIAL if decoder.is_spaced else 0,
        start_rule=decoder.start_rule,
        normalizer=normalizer,
        splitter=splitter,
        added=added,
        before=before,
        after=after,
        charsmap=charsmap,
    )
    byte_symbols = is_byte_level(source["pre_tokenizer"])
    _READERS[model["type"]](tokens, model, vocabulary, byte_symbols)
    return tokens


def _of_text(tokens: Tokens, vocabulary: dict[str, int]) -> dict[str, int]:
    """The tokens that text can become by the model.

    `tokenizers` makes special ones of their own texts, too, when it is told to take them for text.
    """
    return {
        text: token for text, token in vocabulary.items() if not tokens.kinds[token] & Kind.SPECIAL
    }


def refuse(what: str) -> ExportError:
    """The error for a part of a tokenizer that is not supported."""
    return ExportError(
        f"the tokenizer has {what}, which Rushlight does not support: use a tokenizer without it",
        code=Code.NOT_SUPPORTED,
    )


def _vocabulary(model: dict[str, Any]) -> dict[str, int]:
    if model["type"] not in _READERS:
        raise refuse(f"a model of the type {model['type']}")
    if model["type"] == "Unigram":
        return {text: token for token, (text, _) in enumerate(model["vocab"])}
    return dict(model["vocab"])


def _added(one: dict[str, Any], normalizer: Any) -> AddedToken:
    text = one["content"]
    searched = None
    if one["normalized"]:
        searched = (normalizer.normalize_str(text) if normalizer else text).encode()
    return AddedToken(
        text=text.encode(),
        token=one["id"],
        left_strip=one["lstrip"],
        right_strip=one["rstrip"],
        single_word=one["single_word"],
        special=one["special"],
        searched=searched,
    )


def _pieces(
    texts: dict[int, str], special: set[int], decoder: Decoder
) -> tuple[list[bytes], list[int]]:
    pieces, kinds = [], []
    for token in range(max(texts, default=-1) + 1):
        text = texts.get(token)
        if text is None:
            pieces.append(b"")
            kinds.append(0)
        elif token in special:
            pieces.append(text.encode())
            kinds.append(int(Kind.SPECIAL))
        else:
            pieces.append(decoder.piece(text))
            continuing = decoder.start_rule == StartRule.WORD_PIECE and text.startswith("##")
            kinds.append(int(Kind.CONTINUING) if continuing else 0)
    return pieces, kinds


def _token(vocabulary: dict[str, int], text: str | None, what: str) -> int | None:
    if text is None:
        return None
    if text not in vocabulary:
        raise ExportError(f"the tokenizer's {what} {text!r} is not in its vocabulary")
    return vocabulary[text]


def _read_bpe(
    tokens: Tokens, model: dict[str, Any], vocabulary: dict[str, int], byte_symbols: bool
) -> None:
    for option in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(option):
            raise refuse(f"the option {option} of BPE")
    if model.get("dropout"):
        raise refuse("dropout, which makes its tokens random")
    of_text = _of_text(tokens, vocabulary)
    pairs = (one.split(" ") if isinstance(one, str) else one for one in model["merges"])
    tokens.merges = {
        (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
        for rank, (left, right) in enumerate(pairs)
        if left + right in of_text
    }
    tokens.unknown = _token(vocabulary, model.get("unk_token"), "unknown token")
    tokens.flags |= Flag.FUSE_UNKNOWN if model.get("fuse_unk") else 0
    if byte_symbols:
        tokens.flags |= Flag.BYTE_LEVEL
        symbols = enumerate(byte_level.CHARACTERS)
        tokens.bytes_of = {byte: vocabulary[one] for byte, one in symbols if one in vocabulary}
    else:
        tokens.characters = {text: token for text, token in of_text.items() if len(text) == 1}
        read_byte_fallback(tokens, model, vocabulary)
    if model.get("ignore_merges"):
        if not byte_symbols:
            raise refuse("the option ignore_merges without byte-level symbols")
        tokens.flags |= Flag.IGNORE_MERGES
        tokens.words = {
            byte_level.to_bytes(text): token
            for text, token in of_text.items()
            if all(one in byte_level.BYTE_OF for one in text)
            and tokens.pieces[token] == byte_level.to_bytes(text)
        }


def read_byte_fallback(tokens: Tokens, model: dict[str, Any], vocabulary: dict[str, int]) -> None:
    """Sets the tokens of bytes, for characters that the vocabulary has not."""
    if not model.get("byte_fallback"):
        return
    tokens.flags |= Flag.BYTE_FALLBACK
    names = ((byte, f"<0x{byte:02X}>") for byte in range(256))
    tokens.bytes_of = {byte: vocabulary[name] for byte, name in names if name in vocabulary}
    for token in tokens.bytes_of.values():
        tokens.kinds[token] |= Kind.BYTE


def _read_unigram(
    tokens: Tokens, model: dict[str, Any], vocabulary: dict[str, int], byte_symbols: bool
) -> None:
    if byte_symbols:
        raise refuse("a unigram model over bytes")
    tokens.model = Model.UNIGRAM64
    tokens.flags |= Flag.FUSE_UNKNOWN
    tokens.unknown = model["unk_id"]
    tokens.words = {text.encode(): token for text, token in _of_text(tokens, vocabulary).items()}
    tokens.scores = [score for _, score in model["vocab"]]
    unknown_score = min(tokens.scores, default=0.0) - UNKNOWN_PENALTY
    tokens.scores += [0.0] * (len(tokens.pieces) - len(tokens.scores))
    tokens.scores.append(unknown_score)
    read_byte_fallback(tokens, model, vocabulary)


def _read_word_piece(
    tokens: Tokens, model: dict[str, Any], vocabulary: dict[str, int], byte_symbols: bool
) -> None:
    if byte_symbols:
        raise refuse("WordPiece over bytes")
    if model["continuing_subword_prefix"] != "##":
        raise refuse(f"the prefix {model['continuing_subword_prefix']!r} of continuing pieces")
    tokens.model = Model.WORD_PIECE
    tokens.unknown = _token(vocabulary, model["unk_token"], "unknown token")
    tokens.words = {text.encode(): token for text, token in _of_text(tokens, vocabulary).items()}
    tokens.longest_word = model["max_input_chars_per_word"]


_READERS = {"BPE": _read_bpe, "Unigram": _read_unigram, "WordPiece": _read_word_piece}
