"""Recognises the regular expressions of pre-tokenizers: lists of alternatives that C++ matches."""

from __future__ import annotations

from enum import IntEnum, auto

from rushlight.errors import Code, ExportError


class Alternative(IntEnum):
    """The alternatives, as `cpp/llm/tokenizer/splitter/pattern.h` numbers them."""

    CONTRACTION = 0
    ANY_CASE_CONTRACTION = auto()
    SPACE_LETTERS = auto()
    SPACE_NUMBERS = auto()
    SPACE_OTHERS = auto()
    SPACE_OTHERS_LINES = auto()
    SPACE_OTHERS_PATHS = auto()
    PREFIX_LETTERS = auto()
    PREFIX_LETTERS_MARKS = auto()
    SPACE_OTHERS_NO_MARKS = auto()
    PREFIX_LOWER_WORD = auto()
    PREFIX_UPPER_WORD = auto()
    PREFIX_LOWER_WORD_ONLY = auto()
    PREFIX_UPPER_WORD_ONLY = auto()
    ONE_NUMBER = auto()
    THREE_NUMBERS = auto()
    LINES = auto()
    SPACES_BEFORE_TEXT = auto()
    SPACES_AT_END = auto()
    SPACES = auto()
    ONE_SPACE = auto()


_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PREFIX = r"[^\r\n\p{L}\p{N}]?"
# A text may be the start of another: the longest that is followed by "|" or the end is taken.
_TEXTS = {
    "'s|'t|'re|'ve|'m|'ll|'d": Alternative.CONTRACTION,
    _CONTRACTIONS: Alternative.ANY_CASE_CONTRACTION,
    "'(?i:[sdmt]|ll|ve|re)": Alternative.ANY_CASE_CONTRACTION,
    r" ?\p{L}+": Alternative.SPACE_LETTERS,
    r" ?\p{N}+": Alternative.SPACE_NUMBERS,
    r" ?[^\s\p{L}\p{N}]+": Alternative.SPACE_OTHERS,
    r" ?[^\s\p{L}\p{N}]+[\r\n]*": Alternative.SPACE_OTHERS_LINES,
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*": Alternative.SPACE_OTHERS_PATHS,
    rf"{_PREFIX}\p{{L}}+": Alternative.PREFIX_LETTERS,
    rf"{_PREFIX}[\p{{L}}\p{{M}}]+": Alternative.PREFIX_LETTERS_MARKS,
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*": Alternative.SPACE_OTHERS_NO_MARKS,
    rf"{_PREFIX}{_UPPER}*{_LOWER}+{_CONTRACTIONS}?": Alternative.PREFIX_LOWER_WORD,
    rf"{_PREFIX}{_UPPER}+{_LOWER}*{_CONTRACTIONS}?": Alternative.PREFIX_UPPER_WORD,
    rf"{_PREFIX}{_UPPER}*{_LOWER}+": Alternative.PREFIX_LOWER_WORD_ONLY,
    rf"{_PREFIX}{_UPPER}+{_LOWER}*": Alternative.PREFIX_UPPER_WORD_ONLY,
    r"\p{N}": Alternative.ONE_NUMBER,
    r"\p{N}{1,3}": Alternative.THREE_NUMBERS,
    r"\s*[\r\n]+": Alternative.LINES,
    r"\s*[\r\n]": Alternative.LINES,
    r"\s+(?!\S)": Alternative.SPACES_BEFORE_TEXT,
    r"\s+$": Alternative.SPACES_AT_END,
    r"\s+": Alternative.SPACES,
    r"\s": Alternative.ONE_SPACE,
}
_CHANGES = (
    # Contractions in the order that GPT-2's authors had, or another: they exclude each other.
    ("'(?:[sdmt]|ll|ve|re)", "'s|'t|'re|'ve|'m|'ll|'d"),
    ("(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])", _CONTRACTIONS),
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def alternatives_of(pattern: str, *, ruby: bool = False) -> bytes:
    r"""The numbers of a pattern's alternatives.

    Args:
        pattern: a regular expression.
        ruby: it has Ruby's syntax, as `tokenizers` reads it, where `$` is the end of each line
            and the last sign of `{1,3}+` repeats.

    Raises:
        ExportError: the pattern has an alternative that is not known.
    """
    # Possessive quantifiers only forbid steps back that would not lead to a match here.
    text = pattern.replace("?+", "?").replace("++", "+").replace("*+", "*")
    text = text if ruby else text.replace("{1,3}+", "{1,3}")
    for old, new in _CHANGES:
        text = text.replace(old, new)
    numbers, at = bytearray(), 0
    while True:
        fitting = [
            known
            for known in _TEXTS
            if text.startswith(known, at) and text[at + len(known) :][:1] in ("", "|")
        ]
        known = max(fitting, key=len, default="")
        if not known or (ruby and _TEXTS[known] == Alternative.SPACES_AT_END):
            raise ExportError(
                f"the tokenizer's pre-tokenizer splits by the regular expression {pattern!r}, and "
                f"the part that begins with {text[at : at + 40]!r} is not one that Rushlight knows "
                "(those of GPT-2, Llama 3, Qwen2 and o200k are): use a tokenizer of one of these "
                "families",
                code=Code.NOT_SUPPORTED,
            )
        numbers.append(_TEXTS[known])
        at += len(known) + 1
        if at > len(text):
            return bytes(numbers)
