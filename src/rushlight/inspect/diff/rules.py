"""Rules for a difference of two programs, such as "latency > 1.05x", and what becomes of them.

A rule says what must not be: SUBJECT [of METHOD] COMPARISON LIMIT, or "contract changed".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rushlight.errors import Code, RunError

Unit = Literal["time", "bytes", "count", "share", "decibels", "number"]
_TOKEN = re.compile(r"[<>]=?|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[^\s<>]+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
COMPARISONS = (">", ">=", "<", "<=")
_TIMES = "x"
_PERCENT = "%"
_UNITS: Mapping[Unit, Mapping[str, float]] = {
    "time": {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3},
    "bytes": {
        "B": 1,
        "KB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "KiB": 1 << 10,
        "MiB": 1 << 20,
        "GiB": 1 << 30,
    },
    "count": {"": 1},
    "share": {_PERCENT: 0.01},
    "decibels": {"dB": 1},
    "number": {"": 1},
}


@dataclass(frozen=True)
class Subject:
    """What a rule is about.

    Attributes:
        what: in words.
        unit: of its limits.
        of_method: whether each method has its own.
        is_distance: whether it is one number of both programs, such as the error of outputs.
    """

    what: str
    unit: Unit
    of_method: bool = True
    is_distance: bool = False


SUBJECTS: Mapping[str, Subject] = {
    "latency": Subject("the median time of a run", "time"),
    "memory": Subject("arenas, scratch, inputs and outputs of the caller", "bytes"),
    "size": Subject("of the file", "bytes", of_method=False),
    "operators": Subject("calls of kernels and of delegates", "count"),
    "partitions": Subject("the number of delegates", "count"),
    "delegated": Subject("the share of the estimated work in delegates", "share"),
    "accuracy": Subject(
        "the signal-to-noise ratio of the worst output", "decibels", is_distance=True
    ),
    "error": Subject("the greatest difference of any output", "number", is_distance=True),
}
CONTRACT = "contract"


@dataclass(frozen=True)
class Limit:
    """What a number is compared with.

    Attributes:
        number: in milliseconds, bytes, shares of 1, decibels, or just a number; a factor if
            `is_factor`.
        is_factor: whether it multiplies the number before ("1.05x", "+5 %").
        is_added: whether it is added to the number before ("+100 KB").
    """

    number: float
    is_factor: bool = False
    is_added: bool = False

    def of(self, before: float) -> float:
        """The limit for a number that was `before`."""
        if self.is_factor:
            return before * self.number
        return before + self.number if self.is_added else self.number


@dataclass(frozen=True)
class Rule:
    """A rule that was read.

    Attributes:
        text: as it was written.
        subject: a key of `SUBJECTS`, or "contract".
        method: whose; "" for each.
        comparison: one of `COMPARISONS`; "" for the contract.
        limit: see `Limit`.
    """

    text: str
    subject: str
    method: str = ""
    comparison: str = ""
    limit: Limit = Limit(0)

    def is_broken_by(self, after: float, before: float) -> bool:
        """Whether a number does what must not be."""
        limit = self.limit.of(before)
        return {
            ">": after > limit,
            ">=": after >= limit,
            "<": after < limit,
            "<=": after <= limit,
        }[self.comparison]


@dataclass(frozen=True)
class _Word:
    text: str
    column: int


def parse_rule(text: str, where: str = "--fail-if") -> Rule:
    """A rule from its text.

    Args:
        text: such as "memory of decode > 1.0x".
        where: it was found, for the message.

    Raises:
        RunError: it is none; points at the word that is not understood, and says what is allowed.
    """
    return _Parser(text, where).rule()


def parse_rules(text: str, where: str) -> list[Rule]:
    """The rules of a file: one a line; "#" begins a comment.

    Raises:
        RunError: as `parse_rule`, with the line.
    """
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0].rstrip()
        if written.strip():
            rules.append(parse_rule(written, f"{where}:{number}"))
    return rules


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._text, self._where = text, where
        self._words = [_Word(m[0], m.start()) for m in _TOKEN.finditer(text)]
        self._at = 0

    def rule(self) -> Rule:
        allowed = f"begin with {', '.join(SUBJECTS)} or {CONTRACT}"
        word = self._take(allowed)
        name = word.text.lower()
        if name == CONTRACT:
            self._expect("changed", "write contract changed")
            self._end()
            return Rule(self._text.strip(), CONTRACT)
        if name not in SUBJECTS:
            raise self._refused(word, allowed)
        subject = SUBJECTS[name]
        method = ""
        following = f"a comparison follows: {' '.join(COMPARISONS)}"
        word = self._take(following)
        if word.text.lower() == "of":
            if not subject.of_method:
                raise self._refused(word, f"{name} is one for the whole file; {following}")
            method = self._take("the name of a method follows").text
            word = self._take(following)
        if word.text not in COMPARISONS:
            either = f"of METHOD or {following}" if subject.of_method and not method else following
            raise self._refused(word, either)
        limit = self._limit(name, subject)
        self._end()
        return Rule(self._text.strip(), name, method, word.text, limit)

    def _limit(self, name: str, subject: Subject) -> Limit:
        allowed = f"a limit of {name} is {limits_of(subject)}"
        number = self._take(allowed)
        if not _NUMBER.fullmatch(number.text):
            raise self._refused(number, allowed)
        value, is_signed = float(number.text), number.text[0] in "+-"
        unit = self._words[self._at] if self._at < len(self._words) else None
        self._at += 1
        if unit is not None and unit.text.lower() == _TIMES and _is_relative(subject):
            if is_signed:
                raise self._refused(number, "a factor has no sign: 1.05x")
            return Limit(value, is_factor=True)
        if unit is not None and unit.text == _PERCENT and _is_relative(subject):
            if not is_signed:
                raise self._refused(number, f"with a sign: +{number.text} %, of the number before")
            return Limit(1 + value / 100, is_factor=True)
        known = {key.lower(): factor for key, factor in _UNITS[subject.unit].items()}
        written = "" if unit is None else unit.text.lower()
        if written not in known:
            raise self._refused(unit, allowed)
        if is_signed and subject.is_distance and subject.unit == "number":
            raise self._refused(number, allowed)
        return Limit(value * known[written], is_added=is_signed and not subject.is_distance)

    def _take(self, allowed: str) -> _Word:
        if self._at >= len(self._words):
            raise self._refused(None, allowed)
        self._at += 1
        return self._words[self._at - 1]

    def _expect(self, text: str, allowed: str) -> None:
        word = self._take(allowed)
        if word.text.lower() != text:
            raise self._refused(word, allowed)

    def _end(self) -> None:
        if self._at < len(self._words):
            raise self._refused(self._words[self._at], "nothing more follows")

    def _refused(self, word: _Word | None, allowed: str) -> RunError:
        """Points at a word, or behind the last one."""
        column = word.column if word is not None else len(self._text.rstrip())
        what = f"{word.text!r} is not understood here" if word is not None else "it ends too soon"
        marks = "^" * (len(word.text) if word is not None else 1)
        return RunError(
            f"{self._where}: {what}; {allowed}\n    {self._text}\n    {' ' * column}{marks}",
            code=Code.INVALID_ARGUMENT,
        )


def _is_relative(subject: Subject) -> bool:
    """Whether its limits may be in proportion to the number before."""
    return not subject.is_distance and subject.unit != "share"


def limits_of(subject: Subject) -> str:
    """How limits of a subject are written, in words."""
    examples = {
        "time": "1.05x, +5 %, +0.5 ms or 5 ms",
        "bytes": "1.05x, +5 %, +100 KB or 2 MB",
        "count": "1.05x, +5 %, +3 or 40",
        "share": "95 %, or -5 % for five points below that before",
        "decibels": "40 dB",
        "number": "1e-3, without a sign",
    }
    return examples[subject.unit]
