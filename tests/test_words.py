"""One word means one thing: checks names in the code against ``tests/words.yaml``.

C++ is read as tokens: all names are checked except those in comments and strings. Python is parsed:
only names that a file defines are checked (variables, parameters, functions, classes), so that the
names of other libraries may be used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent

_CPP_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''  # strings and characters
    r"|(?P<name>[A-Za-z_]\w*)(?P<call>\s*\()?"
    r"|(?P<line>\n)",
    re.DOTALL,
)
_MADE_BY_CODEGEN = re.compile(r"\b(?:Made|Written)\b.*\bcodegen\b")


@dataclass(frozen=True)
class Word:
    """A word that names must not use, its forms and folders; see ``tests/words.yaml``."""

    words: tuple[str, ...]
    use: str
    why: str
    part: bool
    folders: tuple[str, ...]
    allowed: tuple[str, ...] = ()

    def bans(self, name: str, *, is_function: bool) -> bool:
        """Whether `name` uses the word; `is_function`: it is called or declared as one."""
        if name in self.allowed:
            return False
        if self.part:
            return not _parts(name).isdisjoint(self.words)
        return not is_function and name.strip("_") in self.words


def _words() -> list[Word]:
    rows = yaml.safe_load((ROOT / "tests" / "words.yaml").read_text(encoding="utf-8"))
    return [
        Word(**{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()})
        for row in rows
    ]


def _parts(name: str) -> set[str]:
    """The words of a name: `kRowStep` and `row_step` have `row` and `step`."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def _cpp_names(text: str) -> Iterator[tuple[int, str, bool]]:
    """(line, name, whether a bracket follows) of each name outside comments and strings."""
    line = 1
    for token in _CPP_TOKEN.finditer(text):
        if token["name"]:
            yield line, token["name"], token["call"] is not None
        line += token.group().count("\n")


def _python_names(text: str) -> Iterator[tuple[int, str, bool]]:
    """(line, name, whether it is a function or class) of each name that a file defines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id, False
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, False
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name, True
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr, False


@cache
def _names_in(path: Path) -> list[tuple[int, str, bool]]:
    text = path.read_text(encoding="utf-8")
    if any(_MADE_BY_CODEGEN.search(line) for line in text.splitlines()[:6]):
        return []
    return list(_python_names(text) if path.suffix == ".py" else _cpp_names(text))


def _faults(word: Word) -> list[str]:
    files = [
        path
        for folder in word.folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".h", ".cpp")
    ]
    assert files, f"no files in {word.folders}"
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for line, name, is_function in _names_in(path)
        if word.bans(name, is_function=is_function)
    ]


@pytest.mark.parametrize("word", _words(), ids=lambda word: word.words[0])
def test_names_do_not_use(word: Word) -> None:
    faults = _faults(word)
    assert not faults, f"use {word.use} ({word.why}):\n" + "\n".join(faults)


def test_words_are_complete_and_name_folders() -> None:
    for word in _words():
        assert word.use and word.why and all(form == form.lower() for form in word.words)
        assert all((ROOT / folder).is_dir() for folder in word.folders), word.folders


def test_glossary_has_one_meaning_for_each_word() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!word|---)(.+?) \| (.+?) \|$", text, re.M)
    words = [word.strip() for row, _ in rows for word in row.split(",")]
    assert len(words) > 50 and len(words) == len(set(words))


# --- the rules themselves -----------------------------------------------------------------------


def test_scanners_see_names() -> None:
    part = Word(("step", "steps"), "", "", True, ())
    whole = Word(("found",), "", "", False, ())
    cpp = '// a step\nint row_step = of("step"); int found; found(x); kStep; steps;\n'
    names = list(_cpp_names(cpp))
    assert [n for _, n, f in names if part.bans(n, is_function=f)] == ["row_step", "kStep", "steps"]
    assert [(line, n) for line, n, f in names if whole.bans(n, is_function=f)] == [(2, "found")]
    python = "def found(): pass\nfound = x.found = 1\ntorch.step(step=1)\nstep = 2\n"
    defined = list(_python_names(python))
    assert [n for _, n, f in defined if part.bans(n, is_function=f)] == ["step"]
    assert [line for line, n, f in defined if whole.bans(n, is_function=f)] == [2, 2]
