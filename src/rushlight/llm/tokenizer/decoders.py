"""Decoders of `tokenizers`: the bytes that each token adds to a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.tokenizer import byte_level
from rushlight.llm.tokenizer.table import StartRule

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
# What WordPiece cleans up, token by token.
_CLEANED = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
    *((" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)


@dataclass(frozen=True)
class Decoder:
    """How tokens become text: what is done to each, and to the first."""

    changes: Sequence[Callable[[str | bytes], str | bytes]] = ()
    start_rule: StartRule = StartRule.NONE
    is_spaced: bool = False  # tokens are joined by spaces

    def piece(self, token: str) -> bytes:
        """The bytes of a token that is not the first."""
        piece: str | bytes = token
        for change in self.changes:
            piece = change(piece)
        return piece if isinstance(piece, bytes) else piece.encode()


def decoder_of(source: dict[str, Any] | None) -> Decoder:
    """The decoder of a tokenizer.json.

    Raises:
        ExportError: it is not supported.
    """
    if source is None:
        return Decoder(
            (lambda piece: _text(piece, lambda text: " " + text),), StartRule.STRIP_ONCE, True
        )
    changes: list[Callable[[str | bytes], str | bytes]] = []
    rule, fused = StartRule.NONE, False
    for one in source["decoders"] if source["type"] == "Sequence" else [source]:
        kind = one["type"]
        if kind == "Fuse":
            fused = True
        elif kind == "Strip" and fused and _strips_one_space(one):
            rule = StartRule.STRIP_ONCE
        elif kind == "Metaspace":
            changes.append(_replacing(one["replacement"], " "))
            if one.get("prepend_scheme", "always") != "never":
                rule = StartRule.DROP_SPACES
        elif kind == "WordPiece" and one["prefix"] == "##":
            changes.append(_word_piece(one["cleanup"]))
            rule = StartRule.WORD_PIECE
        elif kind == "Replace" and "String" in one["pattern"]:
            changes.append(_replacing(one["pattern"]["String"], one["content"]))
        elif kind == "ByteFallback":
            changes.append(_byte)
        elif kind == "ByteLevel":
            changes.append(
                lambda piece: piece if isinstance(piece, bytes) else byte_level.to_bytes(piece)
            )
        else:
            raise ExportError(
                f"the tokenizer's decoder {one} is not supported: use one of ByteLevel, "
                "Metaspace, WordPiece, or Replace, ByteFallback, Fuse and Strip as Llama has them",
                code=Code.NOT_SUPPORTED,
            )
    return Decoder(tuple(changes), rule, rule == StartRule.WORD_PIECE)


def _strips_one_space(source: dict[str, Any]) -> bool:
    return bool(source["content"] == " " and source["start"] == 1 and source["stop"] == 0)


def _text(piece: str | bytes, change: Callable[[str], str]) -> str | bytes:
    return piece if isinstance(piece, bytes) else change(piece)


def _replacing(old: str, new: str) -> Callable[[str | bytes], str | bytes]:
    return lambda piece: _text(piece, lambda text: text.replace(old, new))


def _byte(piece: str | bytes) -> str | bytes:
    match = _BYTE.match(piece) if isinstance(piece, str) else None
    return bytes([int(match.group(1), 16)]) if match else piece


def _word_piece(cleanup: bool) -> Callable[[str | bytes], str | bytes]:
    def change(text: str) -> str:
        text = text[2:] if text.startswith("##") else " " + text
        for old, new in _CLEANED if cleanup else ():
            text = text.replace(old, new)
        return text

    return lambda piece: _text(piece, change)
