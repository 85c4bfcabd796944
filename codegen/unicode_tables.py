"""Writes cpp/llm/tokenizer/unicode/unicode_tables.cpp.

It has what the peers' regular expressions and normalisers know of each character.

`tokenizers` itself is asked, character by character: its regular expressions have a newer Unicode
than Python's `unicodedata`, and its normalisers are compiled from an older one. `tiktoken` agrees
with its regular expressions on every character.

    python -m codegen.unicode_tables
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

TARGET = Path(__file__).resolve().parent.parent / "cpp/llm/tokenizer/unicode/unicode_tables.cpp"
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
PAGE = 64
NFC, NFD, NFKC = normalizers.NFC(), normalizers.NFD(), normalizers.NFKC()
# In the order of the bits in unicode.h; those after them are asked in other ways.
CLASSES = (r"\p{L}", r"\p{N}", r"\s", r"\p{M}", r"[\p{Lu}\p{Lt}]", r"\p{Ll}")

HEAD = """\
// Written by codegen/unicode_tables.py from what tokenizers {version} answers; do not edit.
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {{
"""


def _matching(pattern: str) -> set[int]:
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    codes: set[int] = set()
    for at in range(0, len(CODES), 20000):
        text = "".join(map(chr, CODES[at : at + 20000]))
        for piece, _ in split.pre_tokenize_str(text):
            codes.update(map(ord, piece))
    return codes


def _word(code: int) -> bool:
    return len(pre_tokenizers.Whitespace().pre_tokenize_str("a" + chr(code))) == 1


def _punctuation(code: int) -> bool:
    return len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"a{chr(code)}a")) == 3


@cache
def _replacing() -> Any:
    """A normaliser that makes a "b" of each grapheme that begins with "a"."""
    units = [0] * 1024
    units[0] = 512 << 10
    node, value = 512 ^ ord("a"), 900
    units[node] = ord("a") | 1 << 8 | (node ^ value) << 10
    units[value] = 1 << 31
    trie = struct.pack(f"<{len(units)}I", *units)
    return normalizers.Precompiled(struct.pack("<I", len(trie)) + trie + b"b\0")


def _joins(code: int) -> bool:
    """Whether the character continues a grapheme."""
    return _replacing().normalize_str("a" + chr(code)) == "b"


def _prepends(code: int) -> bool:
    """Whether a grapheme goes on after the character: so it does not begin with the "a"."""
    return _replacing().normalize_str(chr(code) + "a\u0301").endswith("\u0301")


def _one_grapheme(code: int) -> bool:
    split = pre_tokenizers.Split(Regex(r"\X"), "isolated")
    return len(split.pre_tokenize_str(chr(code) + "\u0301")) == 1


def _classes() -> list[int]:
    values = [0] * 0x110000
    for bit, pattern in enumerate(CLASSES):
        for code in _matching(pattern):
            values[code] |= 1 << bit
    options = {"handle_chinese_chars": False, "lowercase": False}
    clean = normalizers.BertNormalizer(clean_text=True, strip_accents=False, **options)
    bare = normalizers.BertNormalizer(clean_text=False, strip_accents=True, **options)
    accents, combining = normalizers.StripAccents(), _combining_classes()
    seconds = {second for _, second in _compositions()} | {*range(0x1161, 0x1176)}
    seconds |= {*range(0x11A8, 0x11C3)}
    space = 1 << CLASSES.index(r"\s")
    for code in CODES:
        one = chr(code)
        if not values[code] & space:
            values[code] |= _word(code) << 6 | _punctuation(code) << 7
        values[code] |= (clean.normalize_str(one) == "") << 8
        values[code] |= (accents.normalize_str(one) == "") << 9
        values[code] |= (bare.normalize_str(one) == "") << 10
        moves = combining[code] != 0 or code in seconds
        values[code] |= (moves or NFC.normalize_str(one) != one) << 11
        values[code] |= (moves or NFKC.normalize_str(one) != one) << 12
        values[code] |= _joins(code) << 13 | (not _one_grapheme(code)) << 14 | _prepends(code) << 15
    return values


def _newer_numbers() -> list[int]:
    """Numbers of the pre-tokeniser Digits that regular expressions do not know yet."""
    digits = pre_tokenizers.Digits(individual_digits=True)
    known = _matching(r"\p{N}")
    others = (code for code in CODES if code not in known)
    return [code for code in others if len(digits.pre_tokenize_str("a" + chr(code))) > 1]


@cache
def _combining_classes() -> list[int]:
    """Python's, without those of characters that tokenizers does not move: it knows fewer."""
    classes = [0] * 0x110000
    for code in CODES:
        own = unicodedata.combining(chr(code))
        if own and _moves(code, own):
            classes[code] = own
    return classes


def _moves(code: int, own: int) -> bool:
    # U+0345 has the greatest class, 240, and U+0334 the least, 1.
    high, low = f"a\u0345{chr(code)}", f"a{chr(code)}\u0334"
    return NFD.normalize_str(high if own < 240 else low) != (high if own < 240 else low)


@cache
def _compositions() -> dict[tuple[int, int], int]:
    """(first, second) -> the character that they compose to; Hangul is computed."""
    pairs = {}
    for code in CODES:
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (int(part, 16) for part in parts)
            if NFC.normalize_str(chr(first) + chr(second)) == chr(code):
                pairs[first, second] = code
    return dict(sorted(pairs.items()))


def _mapped(normalize: Callable[[str], str]) -> dict[int, str]:
    """The characters that `normalize` changes, each by itself; Hangul is computed."""
    codes = (code for code in CODES if not 0xAC00 <= code < 0xD7A4)
    return {code: to for code in codes if (to := normalize(chr(code))) != chr(code)}


def _array(name: str, kind: str, values: Iterable[int]) -> str:
    lines, line = [], " "
    for value in values:
        text = f" {value},"
        if len(line) + len(text) > 100:
            lines.append(line)
            line = " "
        line += text
    return f"const {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def _paged(name: str, kind: str, values: Sequence[int]) -> str:
    pages: dict[tuple[int, ...], int] = {}
    index = []
    for at in range(0, len(values), PAGE):
        page = tuple(values[at : at + PAGE])
        index.append(pages.setdefault(page, len(pages)))
    flat = [value for page in pages for value in page]
    return _array(f"{name}Page", "uint16_t", index) + "\n" + _array(name, kind, flat)


def _mapping(name: str, normalize: Callable[[str], str]) -> str:
    """For each character the index of its text; the first text is that of unchanged ones."""
    texts: dict[str, int] = {"": 0}
    index = [0] * 0x110000
    for code, to in _mapped(normalize).items():
        index[code] = texts.setdefault(to, len(texts))
    starts = [0, *accumulate(map(len, texts))]
    codes = [ord(one) for text in texts for one in text]
    return "\n".join(
        (
            _paged(name, "uint16_t", index),
            _array(f"{name}Starts", "uint16_t", starts),
            _array(f"{name}Codes", "uint32_t", codes),
        )
    )


def _composition_text() -> str:
    pairs = _compositions()
    flat = [code for (first, second), to in pairs.items() for code in (first, second, to)]
    count = f"const uint32_t kCompositions = {len(pairs)};\n"
    return count + _array("kComposition", "uint32_t", flat)


def _newer_number_text() -> str:
    codes = _newer_numbers()
    count = f"const uint32_t kNewerNumberCount = {len(codes)};\n"
    return count + _array("kNewerNumbers", "uint32_t", codes)


def text() -> str:
    """The whole file."""
    return "\n".join(
        (
            HEAD.format(version=tokenizers.__version__),
            _paged("kClasses", "uint16_t", _classes()),
            _newer_number_text(),
            _paged("kCombining", "uint8_t", _combining_classes()),
            _mapping("kLowered", normalizers.Lowercase().normalize_str),
            _mapping("kCanonical", NFD.normalize_str),
            _mapping("kCompatible", normalizers.NFKD().normalize_str),
            _composition_text(),
            "}  // namespace rushlight::llm\n",
        )
    )


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
