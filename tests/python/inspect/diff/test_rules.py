"""Rules are read as they are written, and errors point at the word that is not understood."""

from __future__ import annotations

import pytest

from rushlight.errors import RunError
from rushlight.inspect.diff.rules import Limit, parse_rule, parse_rules


@pytest.mark.parametrize(
    ("text", "subject", "method", "comparison", "limit"),
    [
        ("latency > 1.05x", "latency", "", ">", Limit(1.05, is_factor=True)),
        ("latency>1.05 x", "latency", "", ">", Limit(1.05, is_factor=True)),
        ("Latency of decode >= 5 ms", "latency", "decode", ">=", Limit(5)),
        ("latency > +200us", "latency", "", ">", Limit(0.2, is_added=True)),
        ("latency > 2 s", "latency", "", ">", Limit(2000)),
        ("memory > +5 %", "memory", "", ">", Limit(1.05, is_factor=True)),
        ("memory of forward > 2 MiB", "memory", "forward", ">", Limit(2 << 20)),
        ("size > +100 KB", "size", "", ">", Limit(100_000, is_added=True)),
        ("size < -1e3 b", "size", "", "<", Limit(-1000, is_added=True)),
        ("operators > 40", "operators", "", ">", Limit(40)),
        ("partitions > +0", "partitions", "", ">", Limit(0, is_added=True)),
        ("delegated < 95 %", "delegated", "", "<", Limit(0.95)),
        ("delegated < -5%", "delegated", "", "<", Limit(-0.05, is_added=True)),
        ("accuracy <= 40dB", "accuracy", "", "<=", Limit(40)),
        ("error > 1e-3", "error", "", ">", Limit(1e-3)),
        ("contract changed", "contract", "", "", Limit(0)),
    ],
)
def test_rules(text: str, subject: str, method: str, comparison: str, limit: Limit) -> None:
    rule = parse_rule(text)
    assert (rule.text, rule.subject, rule.method, rule.comparison) == (
        text, subject, method, comparison,
    )  # fmt: skip
    assert rule.limit.is_factor == limit.is_factor and rule.limit.is_added == limit.is_added
    assert rule.limit.number == pytest.approx(limit.number)


@pytest.mark.parametrize(
    ("text", "word", "allowed"),
    [
        ("latnecy > 1.05x", "latnecy", "begin with latency, memory, size"),
        ("latency", "", "a comparison follows: > >= < <="),
        ("latency = 1.05x", "=", "of METHOD or a comparison follows"),
        ("latency of > 5 ms", "5", "a comparison follows"),
        ("latency > 5", "", "a limit of latency is 1.05x, +5 %, +0.5 ms or 5 ms"),
        ("latency > 5 KB", "KB", "a limit of latency is"),
        ("latency > fast", "fast", "a limit of latency is"),
        ("latency > +1.05x", "+1.05", "a factor has no sign"),
        ("latency > 5 %", "5", "with a sign: +5 %"),
        ("size of forward > 1 KB", "of", "size is one for the whole file"),
        ("accuracy < 40 %", "%", "a limit of accuracy is 40 dB"),
        ("error > 2x", "x", "a limit of error is 1e-3"),
        ("error > +1", "+1", "without a sign"),
        ("contract", "", "write contract changed"),
        ("contract differs", "differs", "write contract changed"),
        ("size > 1 KB now", "now", "nothing more follows"),
        ("", "", "begin with latency"),
        ("> 5", ">", "begin with latency"),
    ],
)
def test_what_is_not_understood_is_pointed_at(text: str, word: str, allowed: str) -> None:
    with pytest.raises(RunError) as caught:
        parse_rule(text)
    message = str(caught.value)
    assert allowed in message
    shown, marks = message.splitlines()[-2:]
    assert shown == f"    {text}"
    assert shown[marks.index("^") : marks.rindex("^") + 1] == word
    assert (f"{word!r} is not understood here" in message) == bool(word)


def test_a_file_of_rules() -> None:
    rules = parse_rules("# limits\n\nsize > 2x  # at most\ncontract changed\n", "rules.txt")
    assert [rule.text for rule in rules] == ["size > 2x", "contract changed"]
    with pytest.raises(RunError, match=r"rules.txt:3: 'sice' is not understood here"):
        parse_rules("size > 2x\n\nsice > 2x\n", "rules.txt")


@pytest.mark.parametrize("text", ["latency > 1.05x", "memory > +1 KB", "size <= 10 MB"])
def test_limits(text: str) -> None:
    rule, before = parse_rule(text), 2000.0
    limit = rule.limit.of(before)
    assert limit == pytest.approx({"l": 2100, "m": 3000, "s": 1e7}[text[0]])
    assert rule.is_broken_by(limit, before) == ("=" in text)
    assert rule.is_broken_by(limit + 1, before) == (">" in text)
