"""Schemas for tests: written by hand, and drawn together with values that satisfy them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]
Draw = Callable[[random.Random], Any]

_NODE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
    },
    "required": ["value", "next"],
    "additionalProperties": False,
}

WRITTEN: tuple[Any, ...] = (
    True,
    {"type": "object"},
    {"type": "array"},
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": -3, "maximum": 120},
            "b": {"type": "string", "maxLength": 3, "minLength": 2},
            "c": {"enum": ["x", "y", 1, None, {"z": [1, 2]}, [], {}]},
        },
        "required": ["c"],
    },
    {
        "type": "array",
        "items": {"type": "number", "minimum": 0.25, "exclusiveMaximum": 7},
        "minItems": 2,
        "maxItems": 4,
    },
    {
        "type": "array",
        "prefixItems": [{"type": "boolean"}, {"const": "q"}],
        "items": {"type": "null"},
        "minItems": 1,
    },
    {"type": "array", "prefixItems": [{"type": "boolean"}, False], "minItems": 1},
    {"type": "array", "items": {"type": "boolean"}, "maxItems": 1000000000, "minItems": 3},
    {"$defs": {"node": _NODE}, "$ref": "#/$defs/node"},
    {"$defs": {"a/b~c d": {"type": "boolean"}}, "$ref": "#/$defs/a~1b~0c%20d"},
    {"type": "string", "pattern": "^[a-c]+$", "maxLength": 1000000000},
    {"type": "string", "pattern": r"\d{2}"},
    {"type": "string", "pattern": '^["\\\\\n\x01/]{2}x$'},
    {"type": "string", "pattern": "^(ab)*$", "maxLength": 9, "minLength": 3},
    {"type": "string", "maxLength": 1000000000, "minLength": 3},
    *(
        {"type": "string", "format": name}
        for name in "date date-time time duration email hostname ipv4 ipv6 uuid uri".split()
    ),
    {"type": ["integer", "null"], "multipleOf": 7, "minimum": -100},
    {"type": "integer", "exclusiveMinimum": -12, "maximum": 105},
    {"type": "integer", "nullable": True, "minimum": 1e3, "maximum": 1.5e3},
    {"type": "number", "multipleOf": 0.25, "minimum": -1.5, "maximum": 99},
    {"type": "number", "minimum": -1.5, "exclusiveMaximum": -0.25},
    {"type": "number", "maximum": 1e20, "minimum": 1e-7},
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}},
            {"properties": {"a": {"maximum": 9}, "b": {"type": "boolean"}}, "required": ["b"]},
        ],
        "required": ["a"],
    },
    {
        "type": "object",
        "patternProperties": {"^x_": {"type": "integer"}, "y$": {"type": "boolean"}},
        "additionalProperties": {"type": "null"},
        "minProperties": 1,
    },
    {
        "type": "object",
        "propertyNames": {"pattern": "^[ab]{1,2}$"},
        "additionalProperties": {"type": "integer"},
        "maxProperties": 2,
    },
    {
        "oneOf": [
            {
                "type": "object",
                "properties": {"k": {"const": "a"}, "v": {"type": "integer"}},
                "required": ["k", "v"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"k": {"const": "b"}, "w": {"type": "string"}},
                "required": ["k"],
                "additionalProperties": False,
            },
        ]
    },
    {"anyOf": [{"const": "aé"}, {"type": "integer", "enum": [3, 4, 5], "minimum": 4}]},
    {"enum": ["a", 1, 2.5, None, [1]], "type": ["string", "number"]},
    {
        "type": "object",
        "properties": {"n": {"type": "string"}, "t": {"type": "array", "maxItems": 2}},
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    },
)


def _words(chance: random.Random, low: int, high: int) -> str:
    return "".join(chance.choices('ab1 é日😀"\\/\n\x02-', k=chance.randint(low, high)))


def _string(chance: random.Random) -> tuple[Schema, Draw]:
    if chance.random() < 0.5:
        return {"type": "string"}, lambda c: _words(c, 0, 12)
    low = chance.randrange(3)
    high = low + chance.choice([0, 1, 5, 1000])
    return {"type": "string", "minLength": low, "maxLength": high}, lambda c: _words(
        c, low, min(high, 9)
    )


def _pattern(chance: random.Random) -> tuple[Schema, Draw]:
    cases: list[tuple[str, Draw]] = [
        ("^[A-Z]{2}-\\d{3}$", lambda c: f"{c.choice(['AB', 'ZZ'])}-{c.randrange(100, 999)}"),
        ("b+", lambda c: _words(c, 0, 4) + "bb" + _words(c, 0, 4)),
        ("^(red|green)?$", lambda c: c.choice(["red", "green", ""])),
    ]
    pattern, draw = chance.choice(cases)
    return {"type": "string", "pattern": pattern}, draw


def _integer(chance: random.Random) -> tuple[Schema, Draw]:
    low = chance.choice([-1000, -12, 0, 5, 99])
    high = low + chance.choice([0, 3, 110, 12345])
    return {"type": "integer", "minimum": low, "maximum": high}, lambda c: c.randint(low, high)


def _number(chance: random.Random) -> tuple[Schema, Draw]:
    if chance.random() < 0.5:
        return {"type": "number"}, lambda c: c.choice([0, -1.5, 1e300, 2.5e-07, 12, c.random()])
    low, high = sorted((round(chance.uniform(-9, 9), 2), round(chance.uniform(-99, 99), 1)))
    return {"type": "number", "minimum": low, "maximum": high}, lambda c: min(
        high, max(low, round(c.uniform(low, high), 3))
    )


def _enum(chance: random.Random) -> tuple[Schema, Draw]:
    values = ["a", 'q"', 3, -2.5, None, True, {"k": [1, {}]}, []]
    return {"enum": values}, lambda c: c.choice(values)


def _array(chance: random.Random, depth: int) -> tuple[Schema, Draw]:
    items, item = drawn(chance, depth - 1)
    prefix = [drawn(chance, 0) for _ in range(chance.choice([0, 0, 1, 2]))]
    low = chance.randrange(3)
    high = low + chance.randrange(3)
    schema: Schema = {"type": "array", "items": items, "minItems": low, "maxItems": high}
    if prefix:
        schema["prefixItems"] = [own for own, _ in prefix]

    def draw(c: random.Random) -> Any:
        n = c.randint(low, high)
        return [(prefix[i][1] if i < len(prefix) else item)(c) for i in range(n)]

    return schema, draw


def _object(chance: random.Random, depth: int) -> tuple[Schema, Draw]:
    names = chance.sample(["a", "ab", "name", "é", 'q"', "z z", ""], chance.randrange(5))
    parts = {name: drawn(chance, depth - 1) for name in names}
    required = [name for name in names if chance.random() < 0.5]
    schema: Schema = {
        "type": "object",
        "properties": {name: own for name, (own, _) in parts.items()},
        "required": required,
    }
    others = chance.random()
    if others < 0.5:
        schema["additionalProperties"] = False
    elif others < 0.8:
        schema["additionalProperties"] = {"type": "boolean"}
    if chance.random() < 0.3:
        schema = {"allOf": [schema, {"required": required}], "type": ["object", "null"]}

    def draw(c: random.Random) -> Any:
        kept = {n: one(c) for n, (_, one) in parts.items() if n in required or c.random() < 0.5}
        if others >= 0.5 and c.random() < 0.5:
            kept["other"] = True
        return kept

    return schema, draw


def drawn(chance: random.Random, depth: int = 3) -> tuple[Schema, Draw]:
    """A schema, and what draws values that satisfy it.

    Args:
        chance: draws.
        depth: how many arrays and objects may stand in each other.
    """
    makers = [_string, _pattern, _integer, _number, _enum]
    if depth > 0 and chance.random() < 0.6:
        return chance.choice([_array, _object])(chance, depth)
    if chance.random() < 0.2:
        first, second = chance.choice(makers)(chance), chance.choice(makers)(chance)
        return {"anyOf": [first[0], second[0]]}, lambda c: c.choice([first, second])[1](c)
    return chance.choice(makers)(chance)


def written(value: Any, white_space: str) -> bytes:
    """A value as JSON with this white space; "flexible" has lines and indentation."""
    style: dict[str, Any] = {
        "compact": {"separators": (",", ":")},
        "spaced": {},
        "flexible": {"indent": 2},
    }[white_space]
    return json.dumps(value, ensure_ascii=False, **style).encode()
