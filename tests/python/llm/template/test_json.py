"""JSON that C++ reads and writes is what Python's json makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushlight import _core

_KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    _KEYS,
)
VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner), max_leaves=20
)
_STYLES: list[dict[str, Any]] = [
    {},
    {"ensure_ascii": False},
    {"indent": 2},
    {"indent": "\t", "ensure_ascii": False},
    {"indent": 0, "sort_keys": True},
    {"separators": (",", ":")},
    {"indent": 4, "separators": (" ,", " : "), "sort_keys": True},
]


def _rewritten(text: str, style: dict[str, Any]) -> str:
    indent = style.get("indent")
    item, key = style.get("separators") or (", " if indent is None else ",", ": ")
    return _core.rewrite_json(
        text,
        indent=" " * indent if isinstance(indent, int) else indent or "",
        has_lines=indent is not None,
        item_separator=item,
        key_separator=key,
        ascii=style.get("ensure_ascii", True),
        sorts_keys=style.get("sort_keys", False),
    )


@settings(max_examples=400, deadline=None)
@given(VALUES, st.sampled_from(_STYLES), st.booleans())
def test_values_are_written_as_python_writes_them(
    value: Any, style: dict[str, Any], ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii)
    assert _rewritten(text, style) == json.dumps(json.loads(text), **style)


@settings(max_examples=600, deadline=None)
@given(st.text(st.sampled_from('{}[]",:0123456789.eE+-\\untrfalsb \n\té'), max_size=14))
def test_texts_that_python_refuses_are_refused(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        with pytest.raises(_core.Failure, match="JSON, line"):
            _rewritten(text, {})
    else:
        try:
            ours = _rewritten(text, {})
        except _core.Failure as failure:
            assert "surrogate" in failure.args[1]  # half a character, which Python lets pass
        else:
            assert ours == json.dumps(value)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "[-Infinity]", '"\\ud800"'])
def test_what_is_no_json_is_refused_though_python_takes_it(text: str) -> None:
    json.loads(text)
    with pytest.raises(_core.Failure, match="line 1, column"):
        _rewritten(text, {})
