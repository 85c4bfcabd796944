"""Regular expressions and schemas of strings that are hard for masks: searches with bounds, counted
classes one after the other, and texts up to a mark, as people write them."""

from __future__ import annotations

import random
from typing import Any

# Of whole texts.
REGEXES: tuple[str, ...] = (
    # Any text up to a mark.
    r"[\s\S]{0,500}END",
    r"[\s\S]*END",
    r"(.|\n){0,200}</answer>",
    r"[^<]{0,300}<end>",
    r"<think>[\s\S]{1,300}</think>",
    r"\{[^}]{0,100}\}",
    r"\"[^\"]{0,60}\"(, \"[^\"]{0,60}\"){0,9}",
    r"```(python|js)\n[^`]{1,1000}\n```",
    r"'([^'\\]|\\.){0,80}'",
    r"/\*([^*]|\*+[^*/])*\*+/",
    r"(?:[^\n]{0,120}\n){1,40}",
    r"Thought: [^\n]{1,300}\nAction: (search|lookup)\[[^\]\n]{1,80}\]\n",
    # Classes with counts, one after the other.
    r"[A-Z]{1,10}[a-z]{1,20}[0-9]{1,10}",
    r"[a-z]{2,30}-[0-9]{2,8}-[A-Z]{2,8}",
    r"[a-z]{1,40}[A-Za-z]{0,40}",
    r"\w{1,30} \w{1,30} \w{1,30}",
    r"\w{3,16}@\w{3,16}\.[a-z]{2,6}",
    r"[A-Za-z]{1,20}(_[A-Za-z]{1,20}){0,5}",
    r"[a-z]+([A-Z][a-z]+){1,8}",
    r"[a-z0-9]{8}-[a-z0-9]{4}-[a-z0-9]{12}",
    r"[0-9a-f]{64}",
    r"[A-Za-z0-9+/]{20,100}={0,2}",
    r"([A-Z][a-z]{1,15} ){2,12}[A-Z][a-z]{1,15}\.",
    r"([a-z]{1,12}[ ,;]){5,50}[a-z]{1,12}\.",
    r"\S{1,30}( \S{1,30}){0,30}",
    r"[^\s,]{1,25}(,[^\s,]{1,25}){3}",
    r" {4}[a-z_]{1,30} = [^\n]{1,60}\n",
    r"\d{1,5}(\.\d{1,5}){0,3}( [a-z]{1,10})?",
    r"[bcdfghjklmnpqrstvwxz]{1,5}[aeiou]{1,5}\w{0,30}",
    r"([aeiou]{1,2}[a-z]{1,3}){2,8}",
    r"[a-m]{1,30}[n-z]{1,30}",
    r"[a-zé日]{1,30}[^a-z]{1,30}",
    r"[ -~]{1,80}\t[ -~]{1,80}",
    r"[一-龥]{1,40}。",
    r"[\u0400-\u04ff ]{1,100}",
    r"[^ -~]{0,40}[ -~]{0,40}",
    # Lines and lists.
    r"(- [^\n]{1,80}\n){1,12}",
    r"([0-9]{1,2}\. [A-Z][^\n]{5,100}\n){1,10}",
    r"(\w+: [^\n]{1,60}\n){2,8}",
    r"([^,\n]{0,30},){4}[^,\n]{0,30}\n",
    r"(yes|no|maybe|yesterday|nobody)([,;] [a-z]{1,10}){0,4}",
    r"(a|an|and|any|the|then|there) [a-z]{1,15}( (is|are|was) [a-z]{1,15})?",
    r"(?:GET|POST|PUT) /[a-z0-9/_-]{0,60}(\?[a-z]+=\w*(&[a-z]+=\w*){0,5})? HTTP/1\.[01]",
    r"\(?\d{3}\)?[ -]?\d{3}[ -]?\d{4}",
    r"[A-Z][a-z]+(?: [A-Z][a-z]+)*, [A-Z]{2} \d{5}",
    r"([^@\s]{1,64})@([^@\s.]{1,63}\.){1,4}[a-z]{2,8}",
    r"\$[0-9]{1,3}(,[0-9]{3})*(\.[0-9]{2})?",
    r"x{0,100}y{0,100}z{0,100}",
    r"(ab|abc|abcd){1,50}e",
    r"(.{3}){5,20}",
    r"[^aeiou]{3,20}",
    r"[^e]*e[^e]*e[^e]*",
    r"(\w+\s){10,20}",
    r"(?:\w{1,10}[^\w\s]?\s){3,30}",
)

# Patterns of strings of schemas: searches, and whole texts.
PATTERNS: tuple[str, ...] = (
    "error",
    "END$",
    "a.{3}b",
    "(foo|bar|baz)\\d{1,3}",
    "\\d",
    "[A-Z]{2,}",
    "the .* of",
    "^(?:TODO|FIXME): .{1,80}",
    "x.?y",
    "[aeiou]{2}",
    "(.)\\.txt$",
    "https?://",
    "^[^,]+(, [^,]+)*$",
    "^[a-z]{3,20}$",
    "^[A-Za-z_][A-Za-z0-9_]{0,30}$",
    "^[A-Z]{3}[0-9]{3,9}[a-z]*$",
    "^.{10,20}$",
    "^\\s*\\S.*$",
    "^\\w+( \\w+){2,4}$",
    "\\s{2}",
    "(ab)+c",
    "^(?:[a-z]+/)*[a-z]+\\.[a-z]{1,4}$",
    "^[\\w .,'-]{2,50}$",
    "[!?.]$",
    "^[^\\d]*\\d[^\\d]*$",
    "é|ü|日本",
    "^.*\\(.*\\).*$",
    "warn.{0,20}line",
)

_BOUNDS: tuple[dict[str, int], ...] = (
    {},
    {"maxLength": 200},
    {"maxLength": 30},
    {"minLength": 5, "maxLength": 12},
)

_CLASSES = (
    *("[a-z]", "[A-Z]", "\\d", "\\w", "[a-z0-9_]", "[^\\n]", "\\S", ".", '[^"]', "[A-Za-z ]"),
    *(
        "[aeiou]",
        "[^aeiou ]",
        "[ -~]",
        "\\s",
        "[a-f0-9]",
        "[^<>]",
        "[.,;:!?]",
        "(the|a|an) ",
        "[éà]",
    ),
)
_COUNTS = ("", "?", "*", "+", "{3}", "{1,8}", "{2,}", "{0,40}", "{5,70}", "{1,200}")


def drawn_regex(seed: int) -> str:
    """Two to five classes with counts, and words between some of them."""
    draw = random.Random(f"regex {seed}")
    parts = []
    for _ in range(draw.randint(2, 5)):
        parts.append(draw.choice(_CLASSES) + draw.choice(_COUNTS))
        if parts[-1].startswith("(the") and not parts[-1].endswith(" "):
            parts[-1] = f"(?:{draw.choice(('the ', 'a |an ', 'if |else '))})" + draw.choice(_COUNTS)
        if draw.random() < 0.3:
            parts.append(draw.choice(("-", ": ", ", ", "END", "@", "\\n", " = ", "\\|", "x")))
    if draw.random() < 0.2:
        parts.insert(1, "|")
    text = "".join(parts)
    return f"(?:{text}){draw.choice(('', '{1,4}', '*x'))}" if draw.random() < 0.3 else text


def strings() -> list[dict[str, Any]]:
    """Schemas of strings with the patterns, also within bounds on the length."""
    return [{"type": "string", "pattern": pattern, **b} for pattern in PATTERNS for b in _BOUNDS]
