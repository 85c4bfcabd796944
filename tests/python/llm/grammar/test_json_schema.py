"""JSON schemas as grammars; the oracle is the validator `jsonschema`."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from typing import Any

import jsonschema
import numpy as np
import pytest
from schemas import WRITTEN, drawn, written
from walks import PIECES, small_vocabulary, walk

from rushlight import Error
from rushlight.errors import Code
from rushlight.llm.grammar import Grammar, State, Vocabulary

WHITE_SPACE = ("compact", "spaced", "flexible")
FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return small_vocabulary()


def _check(schema: Any, text: bytes) -> None:
    """Of keys that stand twice, a validator sees only the last: only whether it is JSON counts."""
    pairs: list[list[str]] = []

    def note(members: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.append([key for key, _ in members])
        return dict(members)

    value = json.loads(text, object_pairs_hook=note)
    if any(len(set(keys)) < len(keys) for keys in pairs):
        return
    if isinstance(schema, dict) and schema.get("nullable") and value is None:
        return  # OpenAPI's word, which the validator does not know
    jsonschema.Draft202012Validator(schema, format_checker=FORMATS).validate(value)


@pytest.mark.parametrize("white_space", WHITE_SPACE)
@pytest.mark.parametrize("schema", WRITTEN, ids=lambda schema: json.dumps(schema)[:60])
def test_walks_satisfy_the_schema(schema: Any, white_space: str, vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_json_schema(schema, vocabulary, white_space=white_space)
    chance = random.Random(white_space)
    texts = [walk(grammar, PIECES, chance, longest=50) for _ in range(6)]
    for text in texts:
        if text is not None:
            _check(schema, text)


@pytest.mark.parametrize("seed", range(40))
def test_drawn_values_are_accepted_and_walks_satisfy(seed: int, vocabulary: Vocabulary) -> None:
    chance = random.Random(seed)
    schema, draw = drawn(chance)
    white_space = WHITE_SPACE[seed % 3]
    grammar = Grammar.from_json_schema(schema, vocabulary, white_space=white_space)
    for _ in range(5):
        value = draw(chance)
        jsonschema.validate(value, schema)
        text = written(value, white_space)
        state = State(grammar)
        assert state.accept_text(text) and state.can_end(), (schema, text)
    for _ in range(2):
        text = walk(grammar, PIECES, chance, longest=40)
        if text is not None:
            _check(schema, text)


@pytest.mark.parametrize(
    ("schema", "texts", "wrong"),
    [
        ({"type": "string"}, ['"\\u00e9\\ud83d\\ude00\\/"', '""'], ['"\\ud800"', '"\n"', '"\\x"']),
        ({"type": "string", "maxLength": 2}, ['"\\ud83d\\ude00é"', '"\\n1"'], ['"éé1"']),
        (
            {"type": "string", "pattern": "^(ab)*$", "maxLength": 5},
            ['""', '"abab"'],
            ['"aba"', '"ababab"'],
        ),
        (
            {"type": "string", "pattern": "^(ab)*$", "maxLength": 1000000000},
            ['""', '"ababab"'],
            ['"aba"'],
        ),
        ({"type": "string", "minLength": 2}, ['"日本"'], ['"日"', '"\\ud83d\\ude00"']),
        ({"type": "number"}, ["-0.5E+10", "1e5", "0"], ["01", "1.", ".5", "+1", "NaN"]),
        ({"type": "number", "maximum": 2.5}, ["2.5", "2.50", "-9.99", "2"], ["2.51", "3", "1e0"]),
        ({"type": "number", "exclusiveMinimum": 0}, ["0.001", "7"], ["0", "0.00", "-1"]),
        ({"type": "integer", "minimum": 10, "maximum": 2000}, ["10", "999", "2000"], ["9", "2001"]),
        ({"type": "number", "multipleOf": 0.01}, ["1.25", "-3", "0.10"], ["1.255"]),
        ({"type": "object", "maxProperties": 1}, ["{}", '{"a":1}'], ['{"a":1,"b":2}']),
        ({"const": {"a": [1]}}, ['{"a":[1]}'], ['{"a":[2]}', "{}"]),
        ({"minimum": 5}, ["5", '"a"', "null", "[]"], ["4"]),
        ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"', '"2024-13-01"']),
        ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
        ({"properties": {"a": False}, "type": "object"}, ["{}", '{"b":1}'], ['{"a":1}']),
    ],
    ids=lambda part: json.dumps(part)[:40],
)
def test_texts(schema: Any, texts: list[str], wrong: list[str], vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_json_schema(schema, vocabulary)

    def accepted(text: str) -> bool:
        state = State(grammar)
        return state.accept_text(text.encode()) and state.can_end()

    assert [text for text in texts if not accepted(text)] == []
    assert [text for text in wrong if accepted(text)] == []


RECURSIVE = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
DEEP: Any = {"type": "null"}
for _ in range(60):
    DEEP = {"anyOf": [DEEP, {"type": "array", "items": DEEP}]}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (False, "no value satisfies the schema: at #, it is false"),
        (
            {"type": "string", "minLength": 5, "maxLength": 3},
            "'minLength' 5 is above 'maxLength' 3",
        ),
        ({"type": "array", "minItems": 5, "maxItems": 3}, "'minItems' 5 is above 'maxItems' 3"),
        (RECURSIVE, "no finite value satisfies the schema: it requires itself without end"),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "requires itself without end"),
        ({"$ref": "#"}, "nothing but a reference to itself"),
        ({"not": {}}, "the schema at #: 'not' is not supported"),
        (
            {"properties": {"a": {"items": {"uniqueItems": True}}}},
            "the schema at #/properties/a/items: 'uniqueItems' is not supported",
        ),
        ({"if": {}}, "'if' is not supported"),
        ({"colour": 1}, "'colour' is no keyword of JSON schema"),
        ({"$ref": "#/nowhere"}, "'$ref' names '#/nowhere', which is not there"),
        ({"$ref": "https://x.y/z"}, "'$ref' must begin with '#'"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no number is within the bounds"),
        ({"type": "integer", "minimum": 1.2, "maximum": 1.8}, "no number is within the bounds"),
        ({"type": "number", "multipleOf": 0}, "'multipleOf' must be above 0"),
        ({"type": "number", "multipleOf": 123456}, "at most 4 digits"),
        (
            {"oneOf": [{"type": "string"}, {"minLength": 3}]},
            "a value may satisfy both 'oneOf/0' and 'oneOf/1'",
        ),
        (
            {"type": "object", "required": ["a"], "additionalProperties": False},
            "the required property 'a' is not allowed",
        ),
        ({"type": "string", "format": "iri"}, "'format' iri is not supported; date-time"),
        ({"type": "strnig"}, "'type' must be null, boolean"),
        ({"properties": {"a": {"pattern": "(a"}}}, "the schema at #/properties/a: the regular"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "the types exclude each other"),
        ({"enum": [1, 2], "type": "string"}, "no value of 'enum' or 'const'"),
        ({"propertyNames": {"$ref": "#"}}, "'propertyNames' lead to itself"),
        ({"type": "string", "pattern": "^(ab)*$", "minLength": 1000000000}, "use smaller counts"),
        ({"minLength": -1}, "must be an integer that is not negative"),
        ({"items": [{"type": "null"}]}, "'items' must be a schema"),
        (
            {"allOf": [{"anyOf": [{"minimum": i + 10 * j} for i in range(10)]} for j in range(4)]},
            "more than 1000 alternatives",
        ),
        ("[1", "expected ',' or ']'"),
        ("3", "is an integer: it must be an object, true or false"),
    ],
    ids=lambda part: json.dumps(part)[:50],
)
def test_what_cannot_be_is_refused_with_its_path(
    schema: Any, reason: str, vocabulary: Vocabulary
) -> None:
    start = time.process_time()
    with pytest.raises(Error, match=re.escape(reason)):
        Grammar.from_json_schema(schema, vocabulary)
    assert time.process_time() - start < 10


def _chain(length: int, end: Any) -> Any:
    """Arrays of arrays, none of which may be empty."""
    nested = {
        f"d{i}": {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}, "minItems": 1}
        for i in range(length)
    }
    return {"$defs": {**nested, f"d{length}": end}, "$ref": "#/$defs/d0"}


# Each calls the next and, in the end, the first: they are looked at together, once for each.
CHAIN = _chain(3000, {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d0"}]})
# The automata of these patterns are large, and what is left of them is small.
PATTERNS = [{"const": "a" * 13 + str(i), "pattern": f"(a|b)*a(a|b){{12}}{i}"} for i in range(1000)]


def test_a_circle_of_many_references_compiles(vocabulary: Vocabulary) -> None:
    start = time.process_time()
    Grammar.from_json_schema(CHAIN, vocabulary)
    assert time.process_time() - start < 10


def test_parts_that_add_up_are_refused(vocabulary: Vocabulary) -> None:
    schema = {"properties": {f"p{i}": pattern for i, pattern in enumerate(PATTERNS)}}
    with pytest.raises(Error, match=r"compiling takes more than \d+ operations in all") as caught:
        Grammar.from_json_schema(schema, vocabulary)
    assert caught.value.code == Code.OUT_OF_RESOURCES


@pytest.mark.parametrize(
    "schema",
    [
        {"const": "x" * 400_000},
        {"enum": [[i] * 1000 for i in range(200)]},
        {"properties": {"a": {"const": {"b": "x" * 400_000}}}},
        {"properties": {f"p{i}": {"const": f"{i}" + "x" * 1000} for i in range(500)}},
    ],
    ids=["text", "arrays", "object", "many"],
)
def test_automata_that_are_too_large_are_refused(schema: Any, vocabulary: Vocabulary) -> None:
    with pytest.raises(Error, match="the automaton has more than 400000 states") as caught:
        Grammar.from_json_schema(schema, vocabulary)
    assert caught.value.code == Code.OUT_OF_RESOURCES


def test_many_strings_of_a_long_pattern(vocabulary: Vocabulary) -> None:
    schema = {
        "properties": {f"p{i}": {"type": "string", "pattern": "^a{0,1500}$"} for i in range(99)}
    }
    state = State(Grammar.from_json_schema(schema, vocabulary))
    assert state.accept_text(b'{"p98":"aaa"}')


def test_many_values_of_a_pattern(vocabulary: Vocabulary) -> None:
    values = [f"value_{i}" for i in range(2000)]
    schema = {"enum": [*values, "no"], "pattern": "^value_\\d+$"}
    state = State(Grammar.from_json_schema(schema, vocabulary))
    assert state.accept_text(b'"value_1999"') and state.can_end()


def test_schemas_that_seem_large_are_not(vocabulary: Vocabulary) -> None:
    names = [f"field_{i}" for i in range(1000)]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    state = State(Grammar.from_json_schema(schema, vocabulary))
    assert state.accept_text(b'{"field_999":"x",') and not state.fork().accept_text(b'"field_9":')
    state = State(Grammar.from_json_schema(_chain(400, {"type": "null"}), vocabulary))
    assert state.accept_text(b"[" * 400 + b"null" + b"]" * 400) and state.must_end()
    assert state.mask().any()


def test_counts_need_no_memory(vocabulary: Vocabulary) -> None:
    schema = {"type": "string", "minLength": 900000000, "maxLength": 1000000000}
    grammar = Grammar.from_json_schema(schema, vocabulary)
    state = State(grammar)
    assert state.accept_text(b'"')
    for _ in range(200):
        assert state.accept_text(b"abcdefghij" * 50)
        assert state.mask()[PIECES.index(b"a")] and not state.mask()[PIECES.index(b'"')]
    assert grammar.cache_bytes < 100000


def test_all_texts_of_a_bounded_length_end_in_time(vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_json_schema({"type": "string", "maxLength": 7}, vocabulary)
    state = State(grammar)
    assert state.accept_text(b'"12345')
    mask = state.mask()
    for piece, allowed in [
        (b"123", False),
        (b"12", True),
        (b"abc", False),
        ("日本".encode(), True),
    ]:
        assert mask[PIECES.index(piece)] == allowed
    assert state.accept_text(b"67") and state.forced_text() == b'"'


def test_masks_take_bounded_memory(vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_json_schema(True, vocabulary, cache_bytes=20000)
    whole = Grammar.from_json_schema(True, vocabulary)
    states = State(grammar), State(whole)
    for byte in b'{"a":[1,2.5e3,{"b":[null,true]},"\\u00e9"],"c":{}}':
        for state in states:
            assert state.accept_text(bytes([byte]))
        assert (states[0].mask() == states[1].mask()).all()
    # One mask may pass the limit, and is dropped before the next.
    assert grammar.cache_bytes < 200000


def test_nested_values_and_ambiguous_ones(vocabulary: Vocabulary) -> None:
    state = State(Grammar.from_json_schema(True, vocabulary))
    assert state.accept_text(b"[" * 900) and state.accept_text(b"]" * 899)
    assert not state.can_end() and state.accept_text(b"]") and state.must_end()
    # Each level can be read in two ways, which must not multiply.
    node = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/n"}, "y": {"type": "integer"}},
        "additionalProperties": False,
    }
    other = {**node, "properties": {"x": {"$ref": "#/$defs/n"}, "z": {"type": "integer"}}}
    schema = {"$defs": {"n": {"anyOf": [node, other]}}, "$ref": "#/$defs/n"}
    state = State(Grammar.from_json_schema(schema, vocabulary))
    start = time.process_time()
    for _ in range(200):
        assert state.accept_text(b'{"x":') and state.mask().any()
    assert state.accept_text(b"{}" + b',"z":1}' + b"}" * 198) and not state.can_end()
    assert state.accept_text(b"}") and state.can_end()
    assert time.process_time() - start < 10


_NODES: dict[str, tuple[Any, str, str]] = {  # what nests, and how a value of it begins and ends
    "array": ({"type": "array", "items": {"$ref": "#"}}, "[", "]"),
    "bounded array": (
        {
            "anyOf": [
                {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#"}},
                {"type": "integer"},
            ]
        },
        "[",
        "]",
    ),
    "object": ({"type": "object", "properties": {"a": {"$ref": "#"}}}, '{"a":', "}"),
    "bounded object": (
        {"type": "object", "maxProperties": 2, "additionalProperties": {"$ref": "#"}},
        '{"b":',
        "}",
    ),
}


@pytest.mark.parametrize("name", _NODES)
def test_values_nest_to_any_depth(name: str, vocabulary: Vocabulary) -> None:
    schema, begin, end = _NODES[name]
    state = State(Grammar.from_json_schema(schema, vocabulary))
    depth = 30_000  # beyond what a stack of calls has room for
    assert state.accept_text(begin.encode() * (depth - 1)) and state.accept_text(begin[:1].encode())
    mask = state.mask()
    for token in np.flatnonzero(mask).tolist():
        assert state.fork().accept(token)
    assert state.accept_text(end.encode() * (depth - 1)) == (name != "bounded array")
    if name == "bounded array":  # its innermost must have an item
        assert state.accept_text(b"1" + end.encode() * (depth - 1))
    assert not state.can_end() and state.accept_text(end.encode()) and state.can_end()


def test_forced_text_is_the_structure(vocabulary: Vocabulary) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"const": "x"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    state = State(Grammar.from_json_schema(schema, vocabulary, white_space="spaced"))
    assert state.forced_text() == b'{"name": "x", "age": '
    tokens = state.forced()
    assert b"".join(PIECES[t] for t in tokens) in b'{"name": "x", "age": ' and len(tokens) < 12
    for token in tokens:
        assert state.mask()[token] and state.accept(token)


def test_threads_share_a_grammar(vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_json_schema(WRITTEN[4], vocabulary, cache_bytes=30000)
    faults: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            chance = random.Random(seed)
            for _ in range(4):
                text = walk(grammar, PIECES, chance, longest=30)
                if text is not None:
                    _check(WRITTEN[4], text)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults


def test_masks_agree_with_tokens_at_every_place(vocabulary: Vocabulary) -> None:
    grammar = Grammar.from_json_schema(WRITTEN[4], vocabulary, white_space="flexible")
    state = State(grammar)
    for byte in b'{ "a":12,"b":"\\u00e9x" ,"c":{"z":[1,2]},"d":[{}]}':
        mask = state.mask()
        accepted = [state.fork().accept(token) for token in range(len(PIECES))]
        assert np.flatnonzero(mask).tolist() == np.flatnonzero(accepted).tolist()
        assert state.accept_text(bytes([byte]))
    assert state.can_end()
