"""Reads a model of SentencePiece (a file tokenizer.model)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from rushlight.errors import Code, ExportError
from rushlight.llm.tokenizer.from_tokenizers import UNKNOWN_PENALTY
from rushlight.llm.tokenizer.merges import halves
from rushlight.llm.tokenizer.operations import Normalize, Operation, SentencePieceFlag
from rushlight.llm.tokenizer.table import AddedToken, Flag, Kind, Model, StartRule, Tokens

_SPACE = "▁"


class Type(IntEnum):
    """The kinds of pieces."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Piece:
    """A piece of the vocabulary."""

    text: str
    score: float
    type: Type


def read_processor(processor: Any, *, bos: bool = False, eos: bool = False) -> Tokens:
    """What the table says of a `sentencepiece.SentencePieceProcessor`.

    Args:
        processor: the processor.
        bos: put the token for the beginning before each text.
        eos: put the token for the end after each text.

    Raises:
        ExportError: the model needs something that is not supported.
    """
    model = _Fields(processor.serialized_model_proto())
    trainer, normalizer = _Fields(model.bytes(2)), _Fields(model.bytes(3))
    pieces = [_piece(_Fields(data)) for data in model.all(1)]
    _refuse_others(pieces, trainer, model)
    begin, end = processor.bos_id(), processor.eos_id()
    special = [
        AddedToken(piece.text.encode(), token, special=True)
        for token, piece in enumerate(pieces)
        if piece.type == Type.CONTROL
    ]
    user = {
        piece.text: token for token, piece in enumerate(pieces) if piece.type == Type.USER_DEFINED
    }
    tokens = Tokens(
        model=Model.BPE,
        pieces=[_decoded(piece, trainer) for piece in pieces],
        kinds=[_kind(piece) for piece in pieces],
        unknown=processor.unk_id(),
        start_rule=_start_rule(normalizer),
        normalizer=[Operation(Normalize.SENTENCE_PIECE, _spaces(normalizer))],
        added=special,
        before=[begin] if bos and begin >= 0 else [],
        after=[end] if eos and end >= 0 else [],
        charsmap=normalizer.bytes(2),
        kept={text.encode(): token for text, token in user.items()},
    )
    if trainer.number(35, 0):
        tokens.flags |= Flag.BYTE_FALLBACK
        tokens.bytes_of = {
            int(piece.text[3:5], 16): token
            for token, piece in enumerate(pieces)
            if piece.type == Type.BYTE
        }
    if trainer.number(3, 1) == 2:
        _read_bpe(tokens, pieces, user)
    else:
        _read_unigram(tokens, pieces)
    return tokens


class _Fields:
    """The fields of a message of Protocol Buffers."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[Any]] = {}
        for number, value in _fields(data):
            self._fields.setdefault(number, []).append(value)

    def all(self, number: int) -> list[Any]:
        return self._fields.get(number, [])

    def bytes(self, number: int) -> bytes:
        return bytes(self.all(number)[-1]) if self.all(number) else b""

    def number(self, number: int, default: Any) -> Any:
        return self.all(number)[-1] if self.all(number) else default


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        wire = key & 7
        value: Any
        if wire == 0:
            value = varint()
        elif wire == 2:
            size = varint()
            value, at = data[at : at + size], at + size
        else:
            size = 8 if wire == 1 else 4
            value = struct.unpack_from("<d" if wire == 1 else "<f", data, at)[0]
            at += size
        yield key >> 3, value


def _piece(fields: _Fields) -> Piece:
    return Piece(fields.bytes(1).decode(), fields.number(2, 0.0), Type(fields.number(3, 1)))


def _refuse_others(pieces: list[Piece], trainer: _Fields, model: _Fields) -> None:
    kind = trainer.number(3, 1)
    reasons = (
        (kind not in (1, 2), f"a model of the type {kind} (unigram is 1, BPE is 2)"),
        (any(piece.type == Type.UNUSED for piece in pieces), "pieces that are marked as unused"),
        (trainer.number(24, 0), "the option treat_whitespace_as_suffix"),
        (_Fields(model.bytes(5)).bytes(2), "a denormaliser"),
    )
    for is_so, what in reasons:
        if is_so:
            raise ExportError(
                f"the SentencePiece model has {what}, which Rushlight does not support: train it "
                "without",
                code=Code.NOT_SUPPORTED,
            )


def _decoded(piece: Piece, trainer: _Fields) -> bytes:
    if piece.type == Type.CONTROL:
        return piece.text.encode()
    if piece.type == Type.BYTE:
        return bytes([int(piece.text[3:5], 16)])
    if piece.type == Type.UNKNOWN:
        return trainer.bytes(44) or " \u2047 ".encode()
    return piece.text.replace(_SPACE, " ").encode()


def _kind(piece: Piece) -> int:
    kinds = {Type.CONTROL: Kind.SPECIAL, Type.BYTE: Kind.BYTE, Type.UNKNOWN: Kind.VERBATIM}
    return int(kinds.get(piece.type, 0))


def _spaces(normalizer: _Fields) -> int:
    wanted = (
        (3, SentencePieceFlag.DUMMY_PREFIX),
        (4, SentencePieceFlag.COLLAPSE_SPACES),
        (5, SentencePieceFlag.ESCAPE_SPACES),
    )
    return sum(int(flag) for number, flag in wanted if normalizer.number(number, 1))


def _start_rule(normalizer: _Fields) -> StartRule:
    if normalizer.number(4, 1):
        return StartRule.STRIP_EACH
    return StartRule.STRIP_ONCE if normalizer.number(3, 1) else StartRule.NONE


def _read_bpe(tokens: Tokens, pieces: list[Piece], user: dict[str, int]) -> None:
    words = {
        piece.text: token
        for token, piece in enumerate(pieces)
        if piece.type in (Type.NORMAL, Type.USER_DEFINED)
    }
    tokens.flags |= Flag.MERGE_UNKNOWN | Flag.FUSE_UNKNOWN
    tokens.characters = {text: token for text, token in words.items() if len(text) == 1}
    tokens.added = [
        *tokens.added,
        *(AddedToken(text.encode(), token, searched=text.encode()) for text, token in user.items()),
    ]
    scores = sorted({pieces[token].score for token in words.values()}, reverse=True)
    ranks = {score: rank for rank, score in enumerate(scores)}

    def symbol(text: str) -> int | None:
        # A character without token has a number after those of tokens.
        token = words.get(text)
        return len(pieces) + ord(text) if token is None and len(text) == 1 else token

    merges = {}
    for text, first, second in halves(words):
        left, right = symbol(first), symbol(second)
        if left is not None and right is not None:
            merges[left, right] = (ranks[pieces[words[text]].score], words[text])
    tokens.merges = merges


def _read_unigram(tokens: Tokens, pieces: list[Piece]) -> None:
    tokens.model = Model.UNIGRAM32
    normal = [piece.score for piece in pieces if piece.type == Type.NORMAL]
    # Pieces that users defined get a score for each byte: the greatest, which is at least 0.1.
    best = max([np.float32(0.1), *map(np.float32, normal)])
    words = {
        piece.text: token
        for token, piece in enumerate(pieces)
        if piece.type in (Type.NORMAL, Type.USER_DEFINED)
    }
    tokens.words = {text.encode(): token for text, token in words.items()}
    tokens.scores = [
        float(np.float32(len(piece.text.encode())) * best - np.float32(0.1))
        if piece.type == Type.USER_DEFINED
        else piece.score
        for piece in pieces
    ]
    tokens.scores.append(float(np.float32(min(normal, default=0.0)) - np.float32(UNKNOWN_PENALTY)))
