"""Writes the table that C++ uses in place: `cpp/llm/tokenizer/table.h`, docs/llm/tokenizer.md."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from rushlight.errors import Code, ExportError
from rushlight.llm.tokenizer import joints
from rushlight.llm.tokenizer.charsmap import character_classes, parts
from rushlight.llm.tokenizer.merges import derived
from rushlight.llm.tokenizer.operations import Normalize, Operation
from rushlight.llm.tokenizer.tries import NONE, of_bytes, pages_of, piece_trie, token_trie

VERSION = 4
LONGEST_PIECE = 1 << 16  # tables of longer ones would take minutes to make
_MOST_PROBES = 64
_BITS_PER_PAIR = 16
Words = npt.NDArray[np.uint32]


class Section(IntEnum):
    """The parts of a table."""

    SETTINGS = 0
    PIECE_ENDS = auto()
    PIECES = auto()
    KINDS = auto()
    BYTES = auto()
    PAIRS = auto()
    WORDS = auto()
    CHARACTER_PAGES = auto()
    CHARACTERS = auto()
    MODEL_FIRST = auto()
    MODEL_LABELS = auto()
    MODEL_VALUES = auto()
    RAW_ADDED_FIRST = auto()
    RAW_ADDED_LABELS = auto()
    RAW_ADDED_VALUES = auto()
    ADDED_FIRST = auto()
    ADDED_LABELS = auto()
    ADDED_VALUES = auto()
    SCORES = auto()
    NORMALIZER = auto()
    SPLITTER = auto()
    TEXTS = auto()
    ADDED_TOKENS = auto()
    BEFORE = auto()
    AFTER = auto()
    CHARSMAP_UNITS = auto()
    CHARSMAP_TEXTS = auto()
    KEPT_FIRST = auto()
    KEPT_LABELS = auto()
    KEPT_VALUES = auto()
    PIECE_NODES = auto()
    PIECE_TOKENS = auto()
    LABEL_PAGES = auto()
    LABELS = auto()
    CHARSMAP_PAGES = auto()
    CHARSMAP_CLASSES = auto()
    PAIR_BITS = auto()
    BYTE_JOINS = auto()  # with the next one, of version 3 alone
    CHARACTER_RANKS = auto()
    JOINTS = auto()
    TOKEN_UNITS = auto()
    UNIT_TOKENS = auto()
    HALVES = auto()


class Model(IntEnum):
    """How words become tokens."""

    BPE = 0
    UNIGRAM32 = auto()
    UNIGRAM64 = auto()
    WORD_PIECE = auto()


class StartRule(IntEnum):
    """What is done with the text of the first token."""

    NONE = 0
    STRIP_ONCE = auto()
    STRIP_EACH = auto()
    DROP_SPACES = auto()
    WORD_PIECE = auto()


class Flag(IntFlag):
    """Flags of the model."""

    BYTE_LEVEL = 1
    BYTE_FALLBACK = 2
    FUSE_UNKNOWN = 4
    IGNORE_MERGES = 8
    MERGE_UNKNOWN = 32  # 16 is of versions before 3
    SPACED_SPECIAL = 64


class Kind(IntFlag):
    """Kinds of tokens."""

    SPECIAL = 1
    BYTE = 2
    CONTINUING = 4
    VERBATIM = 8


@dataclass(frozen=True)
class AddedToken:
    """A token that is found in the text before the model sees it."""

    text: bytes
    token: int
    left_strip: bool = False
    right_strip: bool = False
    single_word: bool = False
    special: bool = False
    searched: bytes | None = None  # in normalised text; None: `text` in the text as it came

    @property
    def flags(self) -> int:
        """The flags as C++ has them."""
        return self.left_strip | self.right_strip << 1 | self.single_word << 2 | self.special << 3


@dataclass
class Tokens:
    """A tokenizer, read from whatever it came as: all that the table says.

    Attributes:
        pieces: the bytes that each token adds to a text.
        kinds: `Kind` of each token.
        merges: (left, right) -> (rank, token), of BPE.
        characters: character -> token, of BPE over characters.
        bytes_of: byte -> token.
        words: texts of the model's vocabulary -> token, for its trie.
        scores: of each token and of an unknown character, of unigram models.
        charsmap: SentencePiece's precompiled map of characters.
        kept: texts that SentencePiece's normaliser does not change -> token.
    """

    model: Model
    pieces: list[bytes]
    kinds: list[int]
    flags: int = 0
    unknown: int | None = None
    start_rule: StartRule = StartRule.NONE
    merges: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    characters: Mapping[str, int] = field(default_factory=dict)
    bytes_of: Mapping[int, int] = field(default_factory=dict)
    words: Mapping[bytes, int] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)
    longest_word: int = 0
    normalizer: Sequence[Operation] = ()
    splitter: Sequence[Operation] = ()
    added: Sequence[AddedToken] = ()
    before: Sequence[int] = ()
    after: Sequence[int] = ()
    charsmap: bytes = b""
    kept: Mapping[bytes, int] = field(default_factory=dict)


def write_table(tokens: Tokens) -> bytes:
    """The table's bytes.

    Raises:
        ExportError: a token is too long.
    """
    _check_sizes(tokens)
    sections: dict[Section, Any] = {}
    pair_probes = word_probes = longest_piece = 0
    ends = np.cumsum([len(piece) for piece in tokens.pieces], dtype=np.uint64)
    sections[Section.PIECE_ENDS] = ends.astype("<u4")
    sections[Section.PIECES] = b"".join(tokens.pieces)
    sections[Section.KINDS] = bytes(tokens.kinds)
    if tokens.bytes_of:
        sections[Section.BYTES] = np.array(
            [tokens.bytes_of.get(byte, NONE) for byte in range(256)], "<u4"
        )
    if tokens.model == Model.BPE:
        pairs, pair_probes = _pairs(tokens.merges)
        sections |= pairs | _characters(tokens.characters)
        if not tokens.flags & Flag.BYTE_LEVEL and _are_unknown_apart(tokens):
            sections[Section.JOINTS] = joints.joint_bits(_joined_characters(tokens))
        sections |= _token_trie(tokens)
    if tokens.flags & Flag.IGNORE_MERGES and Section.HALVES not in sections:
        sections[Section.WORDS], word_probes = _words(tokens.words)
    if tokens.model == Model.WORD_PIECE:
        sections |= _trie(Section.MODEL_FIRST, tokens.words)
    if tokens.model in (Model.UNIGRAM32, Model.UNIGRAM64):
        sections[Section.SCORES] = np.array(tokens.scores, "<f8")
        trie = piece_trie(tokens.words, tokens.scores)
        sections[Section.PIECE_NODES], sections[Section.PIECE_TOKENS] = trie.nodes, trie.tokens
        sections[Section.LABEL_PAGES], sections[Section.LABELS] = trie.label_pages, trie.labels
        longest_piece = trie.longest
    texts = bytearray()
    sections[Section.NORMALIZER] = _operations(tokens.normalizer, texts)
    sections[Section.SPLITTER] = _operations(tokens.splitter, texts)
    sections |= _added(tokens.added, texts)
    sections[Section.TEXTS] = bytes(texts)
    sections[Section.BEFORE] = np.array(tokens.before, "<u4")
    sections[Section.AFTER] = np.array(tokens.after, "<u4")
    sections |= _trie(Section.KEPT_FIRST, tokens.kept)
    if any(one.kind in (Normalize.CHARSMAP, Normalize.SENTENCE_PIECE) for one in tokens.normalizer):
        sections |= _charsmap(tokens)
    unknown = NONE if tokens.unknown is None else tokens.unknown
    sections[Section.SETTINGS] = struct.pack(
        "<16I",
        *(tokens.model, len(tokens.pieces), unknown, tokens.flags, tokens.start_rule),
        *(pair_probes, word_probes, tokens.longest_word, longest_piece, *[0] * 7),
    )
    return _joined(sections)


def _check_sizes(tokens: Tokens) -> None:
    for token, piece in enumerate(tokens.pieces):
        if len(piece) > LONGEST_PIECE:
            raise ExportError(
                f"token {token} of the tokenizer has {len(piece)} bytes, and the longest that is "
                f"supported has {LONGEST_PIECE}: use a tokenizer without it",
                code=Code.NOT_SUPPORTED,
            )


def _joined(sections: Mapping[Section, Any]) -> bytes:
    parts = {
        section: bytes(memoryview(data).cast("B"))
        for section, data in sections.items()
        if len(data)
    }
    head = bytearray(struct.pack("<4s3I", b"RLTK", VERSION, len(parts), 0))
    body = bytearray()
    offset = len(head) + 24 * len(parts)
    for section, data in parts.items():
        head += struct.pack("<2I2Q", section, 0, offset + len(body), len(data))
        body += data + bytes(-len(data) % 8)
    return bytes(head + body)


def _operations(operations: Sequence[Operation], texts: bytearray) -> bytes:
    packed = b""
    for one in operations:
        text, other = len(texts), len(texts) + len(one.text)
        packed += struct.pack(
            "<8I", one.kind, one.a, one.b, one.c, text, len(one.text), other, len(one.other)
        )
        texts += one.text + one.other
    return packed


def _added(added: Sequence[AddedToken], texts: bytearray) -> dict[Section, Any]:
    packed = bytearray()
    raw: dict[bytes, int] = {}
    normalised: dict[bytes, int] = {}
    for index, one in enumerate(added):
        packed += struct.pack("<4I", one.token, one.flags, len(texts), len(one.text))
        texts += one.text
        where, text = (raw, one.text) if one.searched is None else (normalised, one.searched)
        if text:
            where.setdefault(text, index)
    return {
        Section.ADDED_TOKENS: bytes(packed),
        **_trie(Section.RAW_ADDED_FIRST, raw),
        **_trie(Section.ADDED_FIRST, normalised),
    }


def _trie(first_section: Section, values: Mapping[bytes, int]) -> dict[Section, Any]:
    if not values:
        return {}
    nodes = of_bytes(values)
    return {
        first_section: nodes.first.astype("<u4"),
        Section(first_section + 1): nodes.labels,
        Section(first_section + 2): nodes.values.astype("<u4"),
    }


def _places(hashes: npt.NDArray[np.uint64], places: int) -> tuple[npt.NDArray[np.int64], int]:
    """A place for each hash in a table with linear probing, and how many places a search looks at;
    0 if that would be too many."""
    place = ((hashes >> np.uint64(32)) & np.uint64(places - 1)).astype(np.int64)
    taken = np.zeros(places, bool)
    waiting = np.arange(len(hashes))
    for probes in range(1, _MOST_PROBES + 1):
        free = waiting[~taken[place[waiting]]]
        _, first = np.unique(place[free], return_index=True)
        placed = free[first]
        taken[place[placed]] = True
        waiting = np.setdiff1d(waiting, placed, assume_unique=True)
        if not len(waiting):
            return place, probes
        place[waiting] = (place[waiting] + 1) & (places - 1)
    return place, 0


def _hashed(hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], int, int]:
    places = 1 << max(2, int(len(hashes) * 1.5).bit_length())
    while True:
        place, probes = _places(hashes, places)
        if probes:
            return place, places, probes
        places *= 2


def _pairs(merges: Mapping[tuple[int, int], tuple[int, int]]) -> tuple[dict[Section, Any], int]:
    keys = np.array(list(merges), np.uint64).reshape(-1, 2)
    results = np.array(list(merges.values()), np.uint64).reshape(-1, 2)
    with np.errstate(over="ignore"):
        hashes = (keys[:, 0] << np.uint64(32) | keys[:, 1]) * np.uint64(0x9E3779B97F4A7C15)
    place, places, probes = _hashed(hashes)
    table = np.full((places, 4), NONE, np.uint32)
    table[place] = np.concatenate([keys, results], axis=1)
    words = max(1, len(keys) * _BITS_PER_PAIR // 64)
    bit = ((hashes >> np.uint64(32)) * np.uint64(words * 64)) >> np.uint64(32)
    bits = np.zeros(words, np.uint64)
    np.bitwise_or.at(bits, (bit // 64).astype(np.int64), np.uint64(1) << bit % np.uint64(64))
    return {Section.PAIRS: table.reshape(-1), Section.PAIR_BITS: bits}, probes


def _words(words: Mapping[bytes, int]) -> tuple[Words, int]:
    texts = list(words)
    sizes = np.array([len(text) for text in texts])
    starts = np.cumsum(sizes) - sizes
    joined = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    hashes = np.full(len(texts), 0xCBF29CE484222325, np.uint64)
    longer = np.arange(len(texts))
    with np.errstate(over="ignore"):
        for i in range(int(sizes.max(initial=0))):
            longer = longer[sizes[longer] > i]
            byte = joined[starts[longer] + i].astype(np.uint64)
            hashes[longer] = (hashes[longer] ^ byte) * np.uint64(0x100000001B3)
    place, places, probes = _hashed(hashes)
    table = np.full(places, NONE, np.uint32)
    table[place] = list(words.values())
    return table, probes


def _characters(characters: Mapping[str, int]) -> dict[Section, Any]:
    if not characters:
        return {}
    tokens = {ord(character): token for character, token in characters.items()}
    pages, values = pages_of(tokens, NONE, "<u4")
    return {Section.CHARACTER_PAGES: pages, Section.CHARACTERS: values}


def _token_trie(tokens: Tokens) -> dict[Section, Any]:
    """The tokens by their bytes, with their last merges; nothing if these do not tell enough."""
    if tokens.flags & Flag.BYTE_LEVEL:
        symbols = {token: bytes([byte]) for byte, token in tokens.bytes_of.items()}
        are_different = len(symbols) == len(tokens.bytes_of)
    else:
        symbols = {token: text.encode() for token, text in _symbols(tokens).items()}
        are_different = len(set(tokens.characters.values())) == len(tokens.characters)
    found = derived(tokens.merges, symbols) if are_different else None
    if found is None:
        return {}
    count = len(tokens.pieces)
    texts = {text: token for token, text in found.texts.items() if token < count}
    halves = np.zeros((count, 3), "<u4")
    for token, (left, right, rank) in found.halves.items():
        halves[token] = left, right, rank + 1
    if tokens.flags & Flag.IGNORE_MERGES:
        for text, token in tokens.words.items():
            if text and texts.setdefault(text, token) != token:
                return {}
            if token not in found.texts:
                halves[token] = 0, 0, NONE  # only a word becomes this token
    trie = token_trie(texts) if texts else None
    if trie is None:
        return {}
    return {
        Section.TOKEN_UNITS: trie[0],
        Section.UNIT_TOKENS: trie[1],
        Section.HALVES: halves.reshape(-1),
    }


def _are_unknown_apart(tokens: Tokens) -> bool:
    """Whether unknown characters stay what they are, and are not dropped from between others."""
    if tokens.flags & Flag.MERGE_UNKNOWN:
        return True
    instead = set(tokens.bytes_of.values()) if tokens.flags & Flag.BYTE_FALLBACK else set()
    if len(instead) != 256:
        if tokens.unknown is None:
            return False
        instead.add(tokens.unknown)
    merged = {token for pair in tokens.merges for token in pair}
    return not instead & (merged | set(tokens.characters.values()))


def _joined_characters(tokens: Tokens) -> joints.Pairs:
    return joints.of_merges(tokens.merges, _symbols(tokens))


def _symbols(tokens: Tokens) -> dict[int, str]:
    """The characters of the symbols with which words begin."""
    symbols = {token: character for character, token in tokens.characters.items()}
    vocabulary = len(tokens.pieces)
    merged = {token for pair in tokens.merges for token in pair}
    return symbols | {token: chr(token - vocabulary) for token in merged if token >= vocabulary}


def _charsmap(tokens: Tokens) -> dict[Section, Any]:
    classes = character_classes(tokens.charsmap, tokens.kept)
    pages, values = pages_of(classes, 0, "<u1")
    sections: dict[Section, Any] = {Section.CHARSMAP_PAGES: pages, Section.CHARSMAP_CLASSES: values}
    if tokens.charsmap:
        units, texts = parts(tokens.charsmap)
        sections |= {Section.CHARSMAP_UNITS: units, Section.CHARSMAP_TEXTS: texts}
    return sections
