"""Texts to compare tokenizers on: all scripts, emoji, marks, white space, runs, code, numbers."""

from __future__ import annotations

import random
import unicodedata
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
SPACES = " \t\n\r\v\f\x1c\x85\xa0\u1680\u2000\u2003\u2009\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "👍🏽", "☃️", "1️⃣", "🧑‍💻"]
SPECIALS = ["<|end|>", "<|start|>", "[MASK]", "<s>", "</s>", "<pad>", "<sep>"]
CONTRACTIONS = ["'s", "'S", "'ſ", "'t", "'RE", "'ve", "'M", "'ll", "'Ll", "'d", "'", "''s", "’s"]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@cache
def prose() -> str:
    """English: the pages of this project."""
    return "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))


@cache
def code() -> str:
    """Python and C++: some sources of this project."""
    paths = [*sorted((ROOT / "src").rglob("*.py"))[::7], *sorted((ROOT / "cpp").rglob("*.h"))[::7]]
    return "\n".join(path.read_text("utf-8") for path in paths)


@cache
def characters() -> list[str]:
    """Every character that Python's Unicode knows, and some that it does not."""
    return [
        chr(c)
        for c in range(0x110000)
        if not 0xD800 <= c < 0xE000 and (unicodedata.category(chr(c)) != "Cn" or c % 97 == 0)
    ]


def piece(draw: random.Random) -> str:
    """One short text of a kind drawn at random."""
    kind = draw.randrange(14)
    alphabet = characters()
    if kind == 0:
        return "".join(draw.choices(SPACES, k=draw.randrange(1, 6)))
    if kind == 1:
        return draw.choice(EMOJI)
    if kind == 2:
        return draw.choice(SPECIALS)
    if kind == 3:
        return draw.choice(LETTERS) + draw.choice(CONTRACTIONS) + draw.choice(["", "x", " "])
    if kind == 4:
        return str(draw.randrange(10 ** draw.randrange(1, 12))) + draw.choice(["", ".5", "٣", "½"])
    if kind == 5:
        return draw.choice("a-=_ \n中é0A") * draw.randrange(1, 60)
    if kind == 6:
        base = "".join(draw.choices("eaoKk가ก", k=3))
        return base[0] + "".join(chr(draw.randrange(0x300, 0x36F)) for _ in range(2)) + base[1:]
    if kind == 7:
        return "".join(draw.choices(alphabet, k=draw.randrange(1, 8)))
    if kind in (8, 9):  # one script: neighbours in Unicode
        at = draw.randrange(0x3000) if kind == 8 else draw.randrange(0x20000)
        chosen = (chr(at + draw.randrange(40)) for _ in range(draw.randrange(1, 12)))
        return "".join(one for one in chosen if not 0xD800 <= ord(one) < 0xE000)
    if kind == 10:
        return "".join(draw.choices(LETTERS + "ÀéßĳŸǅʰª中ا", k=draw.randrange(1, 10)))
    if kind == 11:
        return "".join(draw.choices("!?.,;:()[]{}<>/\\|@#$%^&*~`\"'—…。、", k=draw.randrange(1, 6)))
    source = prose() if kind == 12 else code()
    at = draw.randrange(len(source))
    return source[at : at + draw.randrange(1, 200)]


def texts(seed: str, size: int, longest: int = 12) -> list[str]:
    """Texts of `size` characters together."""
    draw, made, total = random.Random(seed), [""], 0
    while total < size:
        separator = draw.choice(["", "", " ", " ", "\n"])
        made.append(separator.join(piece(draw) for _ in range(draw.randrange(1, longest))))
        total += len(made[-1])
    return made


def of_alphabet(seed: str, alphabet: list[str], count: int) -> list[str]:
    """Some texts of up to 300 words, which come back, of a few characters."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(alphabet, k=draw.randrange(1, 5))) for _ in range(60)]
    return [
        "".join(draw.choice(words if draw.random() < 0.8 else alphabet) for _ in range(length))
        for length in (draw.choice([1, 3, 10, 40, 300]) for _ in range(count))
    ]
