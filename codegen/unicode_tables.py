"""Writes cpp/llm/tokenizer/unicode_tables.cpp: what the peers' regular expressions and normalisers
know of each character.

`tokenizers` itself is asked, character by character: its regular expressions have a newer Unicode
than Python's `unicodedata`, and its normalisers are compiled from an older one. `tiktoken` agrees
with its regular expressions on every character.

    python -m codegen.unicode_tables
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

TARGET = Path(__file__).resolve().parent.parent / "cpp/llm/tokenizer/unicode_tables.cpp"
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
PAGE = 64
# In the order of the bits in unicode.h; Word and the two of Bert are asked in other ways.
CLASSES = (r"\p{L}", r"\p{N}", r"\s", r"\p{M}", r"[\p{Lu}\p{Lt}]", r"\p{Ll}")

HEAD = """\
// Written by codegen/unicode_tables.py from what tokenizers {version} answers; do not edit.
#include "rushlight/llm/tokenizer/unicode.h"

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


def _classes() -> list[int]:
    values = [0] * 0x110000
    for bit, pattern in enumerate(CLASSES):
        for code in _matching(pattern):
            values[code] |= 1 << bit
    clean = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
    )
    space = 1 << CLASSES.index(r"\s")
    for code in CODES:
        if not values[code] & space:
            values[code] |= _word(code) << 6 | _punctuation(code) << 7
        values[code] |= (clean.normalize_str(chr(code)) == "") << 8
    return values


def _mapped(normalize: Callable[[str], str]) -> dict[int, str]:
    """The characters that `normalize` changes, each by itself."""
    return {code: to for code in CODES if (to := normalize(chr(code))) != chr(code)}


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


def text() -> str:
    """The whole file."""
    parts = [
        HEAD.format(version=tokenizers.__version__),
        _paged("kClasses", "uint16_t", _classes()),
    ]
    return "\n".join([*parts, "}  // namespace rushlight::llm\n"])


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
