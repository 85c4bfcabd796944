"""Texts as languages are written: words of a drawn lexicon, a few of them often and most of them
rarely (Zipf's law), with each script's own letters, spaces and punctuation.

Words come back as in real text, so that vocabularies are trained to them and caches are hit; those
of `tokenizer_mutations` hardly do.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

_WORDS = 20_000


@dataclass(frozen=True)
class Script:
    """How a language is written.

    Attributes:
        first: letters that begin a syllable, the most frequent ones first.
        then: what may follow in a syllable; "" for nothing.
        syllables: the most syllables of a word.
        space: what stands between words.
        ends: what ends a phrase.
    """

    first: Sequence[str]
    then: Sequence[str]
    syllables: int
    space: str
    ends: Sequence[str]


def _range(first: int, last: int) -> list[str]:
    return [chr(code) for code in range(first, last + 1)]


_HIRAGANA = list("のにはをたがでてとしれさいうあかこなりるきまもくらよつんそえけすどせ")
_KANJI = _range(0x4E00, 0x57FF)
SCRIPTS: dict[str, Script] = {
    "Chinese": Script(_KANJI, [""], 3, "", ["，", "。", "、", "！", "：“", "”"]),
    "Japanese": Script(
        [one for pair in zip(_HIRAGANA, _KANJI[::29], strict=False) for one in pair] + _KANJI,
        ["", *_HIRAGANA[:12]],
        3,
        "",
        ["、", "。", "が、", "です。", "「", "」", "カタカナ"],
    ),
    "Korean": Script(_range(0xAC00, 0xB3FF), [""], 4, " ", [". ", ", ", "을 ", "는 ", "이 "]),
    "Arabic": Script(
        list("المنيوترعدبسفهقكحجشصخطذضزثظغ"), ["", "ا", "ي", "و", "ة"], 4, " ", ["، ", ". ", "؟ "]
    ),
    "Hindi": Script(
        list("करनसतमहपलदयबवजगटचशखथभडधणछझफघ"),
        ["", "ा", "े", "ी", "ि", "ो", "्र", "ं", "ु"],
        4,
        " ",
        ["। ", ", "],
    ),
    "Thai": Script(
        list("กนรมอทสลคตพบดวยปงชขจผถหฟซ"),
        ["า", "ี", "ั้น", "ิ", "่อ", "ู", "", "ำ", "ุ", "้า"],
        4,
        "",
        [" ", " ", "ๆ "],
    ),
    "Russian": Script(
        list("нтсрвлкмдпгзбчйжшхюцщэфъ"),
        ["о", "е", "а", "и", "", "ы", "у", "ь", "я"],
        4,
        " ",
        [", ", ". ", " — "],
    ),
}


def _drawn(draw: random.Random, parts: Sequence[str]) -> str:
    """One of the parts, the first ones more often."""
    return parts[int(len(parts) * draw.random() ** 3)]


def _word(draw: random.Random, script: Script) -> str:
    syllables = draw.randrange(1, script.syllables + 1)
    return "".join(_drawn(draw, script.first) + _drawn(draw, script.then) for _ in range(syllables))


def language(name: str, size: int) -> str:
    """Text of a language of `SCRIPTS`.

    Args:
        name: the language.
        size: the number of characters, or a few more.
    """
    script, draw = SCRIPTS[name], random.Random(name)
    words = [_word(draw, script) for _ in range(_WORDS)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    made, total = [], 0
    while total < size:
        phrase = script.space.join(
            draw.choices(words, cum_weights=weights, k=draw.randrange(3, 12))
        )
        made.append(phrase + draw.choice(script.ends) + ("\n" if draw.random() < 0.02 else ""))
        total += len(made[-1])
    return "".join(made)


def emoji(size: int) -> str:
    """Emoji with skin tones and joiners, and a few words."""
    draw, made = random.Random("emoji"), []
    faces = _range(0x1F600, 0x1F64F) + _range(0x1F400, 0x1F43F) + _range(0x1F300, 0x1F320)
    extras = ["", "", "", "\U0001f3fd", "\ufe0f", "\u200d❤\ufe0f\u200d\U0001f468", " ", " so ", "!"]
    while len(made) < size // 2:
        made.append(_drawn(draw, faces) + draw.choice(extras))
    return "".join(made)


def records(size: int) -> str:
    """JSON, indented and not, with words of several languages."""
    draw, made, total = random.Random("json"), [], 0
    words = {name: language(name, 4000).split() for name in ("Russian", "Arabic", "Hindi")}
    while total < size:
        record = {
            "id": draw.randrange(10**9),
            "name": draw.choice(words["Russian"]),
            "tags": draw.choices(words[draw.choice(list(words))], k=3),
            "score": round(draw.random() * 100, 3),
            "is_active": draw.random() < 0.5,
            "url": f"https://example.org/{draw.randrange(10**6):06x}?page={draw.randrange(99)}",
            "parent": None,
        }
        indent = draw.choice([None, 2])
        made.append(json.dumps(record, ensure_ascii=draw.random() < 0.3, indent=indent) + "\n")
        total += len(made[-1])
    return "".join(made)


def long_words(text: str) -> str:
    """The same text without its spaces."""
    return "".join(text.split())


def everything(size: int) -> list[str]:
    """Texts of every kind.

    Args:
        size: of each, in characters.
    """
    return [*(language(name, size) for name in SCRIPTS), emoji(size), records(size)]
