"""Checks that public functions and classes have docstrings, and name each of their arguments.

They are read from the sources, so that nothing is imported.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "rushlight"
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$", re.M)
Definition = ast.FunctionDef | ast.ClassDef


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _public() -> dict[str, Definition]:
    """The definitions of the names in `rushlight.__all__`, by name."""
    tree = _tree(PACKAGE / "__init__.py")
    values = {ast.unparse(n.targets[0]): n.value for n in tree.body if isinstance(n, ast.Assign)}
    homes = ast.literal_eval(values["_HOMES"])
    docstrings = {}
    for module, names in homes.items():
        path = PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
        defined = {n.name: n for n in _tree(path).body if isinstance(n, Definition)}
        docstrings.update({name: defined[name] for name in names})
    assert sorted(docstrings) == sorted(ast.literal_eval(values["__all__"]))
    return docstrings


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__call__", "__getitem__")


def _members(definition: Definition) -> list[ast.FunctionDef]:
    members = definition.body if isinstance(definition, ast.ClassDef) else []
    return [m for m in members if isinstance(m, ast.FunctionDef) and _is_public(m.name)]


def _all_public() -> list[Any]:
    listed: list[Any] = []
    for name, definition in _public().items():
        listed.append(pytest.param(definition, id=name))
        listed += [pytest.param(m, id=f"{name}.{m.name}") for m in _members(definition)]
    return listed


def _parameters(function: ast.FunctionDef) -> list[str]:
    args = function.args
    named = [a.arg for a in (*args.posonlyargs, *args.args)]
    rest = [a.arg for a in (args.vararg,) if a], [a.arg for a in args.kwonlyargs]
    names = [*named, *rest[0], *rest[1], *([args.kwarg.arg] if args.kwarg else [])]
    return [name for name in names if name not in ("self", "cls")]


def _documented(text: str) -> list[str]:
    """The arguments in a docstring's `Args:`; without that section, the names in backquotes."""
    parts = _SECTION.split(text)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if "Args" not in sections:
        return re.findall(r"`(\w+)`", parts[0])
    heads = re.findall(r"^    (\w[\w, ]*):", sections.get("Args", ""), re.M)
    return [name.strip() for head in heads for name in head.split(",")]


@pytest.mark.parametrize("definition", _all_public())
def test_each_has_a_docstring_with_its_arguments(definition: Definition) -> None:
    text = ast.get_docstring(definition)
    assert text, "it has no docstring"
    if isinstance(definition, ast.FunctionDef):
        wanted, told = set(_parameters(definition)), set(_documented(text))
        assert wanted == (told if "Args:" in text else told & wanted)


@pytest.mark.parametrize("name", ["export", "load", "quantize", "quantize_within"])
def test_functions_say_what_they_return_and_raise(name: str) -> None:
    text = ast.get_docstring(_public()[name]) or ""
    assert {"Args", "Returns", "Raises"} <= {match[1] for match in _SECTION.finditer(text)}


def test_what_is_missing_is_seen() -> None:
    sections = "Args:\n    x, y: two.\n        and: more.\n    z: three.\n\nReturns:\n    it: so."
    assert _documented(f"Do it with `w`.\n\n{sections}") == ["x", "y", "z"]
    assert _documented("Do it with `w`.") == ["w"] and _documented("Do it.") == []
    tree = ast.parse("def f(self, x, /, y, *args, z=1, **kwargs): pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert _parameters(tree) == ["x", "y", "args", "z", "kwargs"]
