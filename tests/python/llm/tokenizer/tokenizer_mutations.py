"""Texts to compare tokenizers on, beside `tokenizer_corpus`: real text that was changed, and
scripts as they are written: without spaces, with joining characters, from right to left.

Real text is Python's: its help pages, sources of its library, and the names of characters.
"""

from __future__ import annotations

import html.entities
import os
import pydoc_data.topics
import random
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path

JOINERS = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e\ufe0e\ufe0f"
DIRECTIONS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
BLANKS = " \t\n\r\v\f\x00\x1f\x7f\x85\xa0\u2000\u2007\u2028\u2029\u202f\u3000\u2581\u2800"
# Characters before which a grapheme goes on, so that the next letter belongs to them.
PREPENDED = "\u0600\u0601\u06dd\u070f\u08e2\u0d4e\U000110bd\U000111c2"
# Where the letters of a script stand, those that begin a word and those that go on.
SCRIPTS: dict[str, tuple[str, str]] = {
    "greek": ("\u0391\u03a9\u03b1\u03c9", "\u1f00\u1fff\u0370\u03ff"),
    "cyrillic": ("\u0410\u042f\u0430\u044f", "\u0400\u052f"),
    "hebrew": ("\u05d0\u05ea", "\u0591\u05c7\u05d0\u05ea"),
    "arabic": ("\u0621\u064a", "\u0621\u064a\u064b\u0652\u0660\u0669\ufe70\ufefc"),
    "devanagari": ("\u0905\u0939", "\u0905\u0939\u093e\u094d\u0966\u096f"),
    "tamil": ("\u0b85\u0bb9", "\u0bbe\u0bcd\u0b85\u0bb9"),
    "thai": ("\u0e01\u0e2e\u0e40\u0e44", "\u0e01\u0e3a\u0e40\u0e4e"),
    "khmer": ("\u1780\u17a2", "\u1780\u17a2\u17b6\u17d3"),
    "tibetan": ("\u0f40\u0f6c", "\u0f40\u0f6c\u0f71\u0f84\u0f90\u0fbc\u0f0b\u0f0b"),
    "georgian": ("\u10d0\u10ff\u1c90\u1cba", "\u10d0\u10ff"),
    "ethiopic": ("\u1200\u1357", "\u1200\u137c"),
    "han": ("\u4e00\u9fff", "\u4e00\u9fff\u3400\u4dbf\U00020000\U00020400\uf900\ufaff"),
    "kana": ("\u3041\u3096\u30a1\u30fa", "\u3041\u309f\u30a0\u30ff\uff66\uff9f"),
    "jamo": ("\u1100\u1112", "\u1161\u1175\u11a8\u11c2\u1100\u115f\ua960\ua97c\ud7b0\ud7c6"),
    "hangul": ("\uac00\ud7a3", "\uac00\ud7a3\u11a8\u11c2\u3131\u318e"),
    "letterlike": ("\U0001d400\U0001d7ff", "\u2100\u214f\uff01\uff5e\u2460\u24ff\ufb00\ufb06"),
    "emoji": ("\U0001f300\U0001f64f", "\U0001f3fb\U0001f3ff\u200d\u200d\ufe0f\ufe0f"),
    "flags": ("\U0001f1e6\U0001f1ff", "\U0001f1e6\U0001f1ff\U000e0061\U000e007a"),
}


@cache
def prose() -> str:
    """About 3 MB of English, code, and names of all characters."""
    topics = "\n".join(map(str, pydoc_data.topics.topics.values()))
    library = Path(os.__file__).parent
    paths = [*sorted(library.glob("*.py"))[::9], *sorted(library.glob("encodings/*.py"))[::6]]
    sources = "\n".join(path.read_text("utf-8", "replace") for path in paths)
    named = (chr(code) for code in range(0xA0, 0x20000, 23))
    names = "\n".join(
        f"{one} {unicodedata.name(one)}" for one in named if unicodedata.name(one, "")
    )
    entities = " ".join(f"&{name} {text}" for name, text in html.entities.html5.items())
    return "\n".join((topics, sources, names, entities))


def _between(draw: random.Random, ranges: str) -> str:
    at = 2 * draw.randrange(len(ranges) // 2)
    return chr(draw.randint(ord(ranges[at]), ord(ranges[at + 1])))


def word(draw: random.Random, script: str) -> str:
    """A word in the letters of a script."""
    first, rest = SCRIPTS[script]
    return _between(draw, first) + "".join(_between(draw, rest) for _ in range(draw.randrange(9)))


def sentence(draw: random.Random) -> str:
    """Words of a script, with spaces or without."""
    script = draw.choice(list(SCRIPTS))
    space = draw.choice(["", "", " ", "\u3000", "\u200b"])
    ends = draw.choice(["", ".", "。", "؟", "।", "!?", "、"])
    return space.join(word(draw, script) for _ in range(draw.randrange(1, 12))) + ends


def _marks(text: str, draw: random.Random) -> str:
    marks = "".join(chr(draw.randrange(0x300, 0x370)) for _ in range(3)) + "\u3099\u20dd\u0483"
    return "".join(one + draw.choice(marks) * draw.randrange(3) for one in text)


def _inserted(text: str, draw: random.Random, alphabet: str) -> str:
    return "".join(one + (draw.choice(alphabet) if draw.random() < 0.2 else "") for one in text)


def _edited(text: str, draw: random.Random) -> str:
    """With characters left out, doubled, moved and in the other case."""
    made = []
    for one in text:
        way = draw.randrange(12)
        made.append({0: "", 1: one * 2, 2: one.swapcase()}.get(way, one))
        if way == 3 and len(made) > 1:
            made[-2:] = made[-1], made[-2]
    return "".join(made)


def _wide(text: str, draw: random.Random) -> str:
    """ASCII as full-width or mathematical characters."""
    start = draw.choice([0xFF01 - 0x21, 0x1D400 - 0x41, 0x1D44E - 0x61, 0x24B6 - 0x41])
    return "".join(chr(ord(one) + start) if "A" <= one <= "z" else one for one in text)


def _run(text: str, draw: random.Random) -> str:
    return (draw.choice(text) if text else " ") * draw.randrange(1, 400)


CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    lambda text, draw: text,
    _edited,
    _marks,
    _wide,
    _run,
    lambda text, draw: _inserted(text, draw, JOINERS),
    lambda text, draw: _inserted(text, draw, DIRECTIONS),
    lambda text, draw: _inserted(text, draw, PREPENDED),
    lambda text, draw: "".join(draw.choice(BLANKS) if one.isspace() else one for one in text),
    lambda text, draw: "".join(text.split()),
    lambda text, draw: text[::-1],
    lambda text, draw: unicodedata.normalize(draw.choice(["NFC", "NFD", "NFKC", "NFKD"]), text),
    lambda text, draw: text.upper(),
    lambda text, draw: text.title().swapcase(),
)


def texts(seed: str, size: int) -> list[str]:
    """Texts of `size` characters together."""
    draw, made, total = random.Random(seed), [], 0
    source = prose()
    while total < size:
        parts = []
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(source))
            part = (
                source[at : at + draw.randrange(1, 120)] if draw.random() < 0.5 else sentence(draw)
            )
            for change in draw.choices(CHANGES, k=draw.randrange(1, 3)):
                part = change(part, draw)
            parts.append(part)
        made.append(draw.choice(["", " ", "\n"]).join(parts))
        total += len(made[-1])
    return made
