"""Checks that the names in the documentation exist: Python and C++ names, keywords, options, paths.

Names are taken from code spans and blocks of code, and looked up in the sources, so that nothing is
built or run; `tests/e2e/docs/test_docs.py` runs the code. Options of other tools, such as pip and
CMake, are in `_OF_OTHERS`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from benchmarks.__main__ import GROUPS

from test_layers import CPP_LAYERS, PYTHON_LAYERS
from test_layers_inside import ENGINE_COMPILER_LAYERS, ENGINE_LAYERS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "rushlight"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
# CMake, pip, pkg-config
_OF_OTHERS = {"--prefix", "--build", "--install", "--test-dir", "--index-url", "--cflags", "--libs"}


@dataclass
class Thing:
    """A class or a function of the package.

    Attributes:
        keywords: the keyword arguments of a call; None if they are not known.
        attributes: the attributes of a class.
        bases: the base classes of a class.
    """

    keywords: set[str] | None = None
    attributes: set[str] = field(default_factory=set)
    bases: list[str] = field(default_factory=list)


def _pages(kind: str) -> list[Any]:
    names = [page.relative_to(ROOT).with_suffix("").as_posix() for page in PAGES]
    return [pytest.param(page, id=f"{kind}-{n}") for page, n in zip(PAGES, names, strict=True)]


def _spans(page: Path) -> list[str]:
    """The code spans of a page; a span may contain a line break."""
    prose = _FENCE.sub("", page.read_text("utf-8"))
    return [" ".join(span.split()) for span in _SPAN.findall(re.sub(r"\n(?!\n)\s*", " ", prose))]


def _blocks(page: Path, *languages: str) -> list[str]:
    return [code for kind, code in _FENCE.findall(page.read_text("utf-8")) if kind in languages]


# --- Python ---------------------------------------------------------------------------------------


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _module_file(parts: list[str]) -> Path | None:
    place = PACKAGE.joinpath(*parts)
    for path in (place.with_suffix(".py") if parts else None, place / "__init__.py"):
        if path is not None and path.is_file():
            return path
    return None


@cache
def _top_names(path: Path) -> frozenset[str]:
    """The names that a module defines, imports or lists in `__all__`."""
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    for node in _tree(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names |= {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)}
    return frozenset(names)


def _function(node: ast.FunctionDef) -> Thing:
    args = node.args
    if args.kwarg is not None:
        return Thing()
    return Thing({a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)})


def _class(node: ast.ClassDef) -> Thing:
    thing = Thing(bases=[ast.unparse(base).split(".")[-1] for base in node.bases])
    fields = {n.target.id for n in node.body if _is_field(n)}  # type: ignore[attr-defined]
    assigned = (n for n in ast.walk(node) if isinstance(n, ast.Attribute | ast.Name))
    thing.attributes = {n.attr if isinstance(n, ast.Attribute) else n.id for n in assigned}
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            thing.attributes.add(member.name)
            if member.name == "__init__":
                thing.keywords = _function(member).keywords
    makes_init = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
    if makes_init or "NamedTuple" in thing.bases:
        thing.keywords = fields
    return thing


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


@cache
def _things() -> dict[str, list[Thing]]:
    """The public classes and functions of the package, by name."""
    things: dict[str, list[Thing]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in _tree(path).body:
            if isinstance(node, ast.FunctionDef):
                things.setdefault(node.name, []).append(_function(node))
            elif isinstance(node, ast.ClassDef):
                things.setdefault(node.name, []).append(_class(node))
    return things


@cache
def _methods() -> dict[str, list[Thing]]:
    """The methods of the package's classes, by name."""
    methods: dict[str, list[Thing]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in _tree(path).body:
            members = node.body if isinstance(node, ast.ClassDef) else ()
            for member in members:
                if isinstance(member, ast.FunctionDef):
                    methods.setdefault(member.name, []).append(_function(member))
    return methods


def _has(name: str, attribute: str) -> bool:
    """Whether a class has an attribute; True for a class that is not known in full."""
    things = _things().get(name)
    if things is None:
        return True
    return any(
        attribute in thing.attributes
        # A class that is derived from one of the same name is here with it.
        or any(_has(base, attribute) for base in thing.bases if base != name)
        for thing in things
    )


def _is_there(dotted: str) -> bool:
    """Whether "x.y.Z" names something inside the package."""
    parts = dotted.split(".")
    depth = 0
    while depth < len(parts) and _module_file(parts[: depth + 1]) is not None:
        depth += 1
    path = _module_file(parts[:depth])
    rest = parts[depth:]
    if not rest:
        return True
    assert path is not None
    return rest[0] in _top_names(path) and all(_has(*two) for two in pairwise(rest))


def _wrong_keywords(code: str) -> list[str]:
    """The keyword arguments in calls that the function or class of that name does not have."""
    try:
        tree = ast.parse(code.replace("…", "..."))
    except SyntaxError:
        return []
    faults = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func).split(".")[-1]
        if not _is_ours(call.func):
            continue
        things = _methods() if _is_method(call.func) else _things()
        known = [thing.keywords for thing in things.get(name, [])]
        for keyword in (k.arg for k in call.keywords if k.arg is not None):
            if known and all(k is not None and keyword not in k for k in known):
                faults.append(f"{name}({keyword}=)")
    return faults


def _is_ours(function: ast.expr) -> bool:
    """Whether a function is a plain name, or one of `rl` or `rushlight`, or a method of what such
    a function returns; methods of other objects are not looked up."""
    root = re.split(r"[.(]", ast.unparse(function))[0]
    return isinstance(function, ast.Name) or root in ("rl", "rushlight")


def _is_method(function: ast.expr) -> bool:
    """Whether a function is one of what a call returns."""
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)


@pytest.mark.parametrize("page", _pages("python"))
def test_python_names_exist(page: Path) -> None:
    texts = [*_spans(page), *_blocks(page, "python", "py")]
    missing = []
    for text in texts:
        dotted = re.findall(r"(?<![\w./-])(?:rl|rushlight)\.(\w+(?:\.\w+)*)", text)
        dotted += re.findall(r"^from rushlight\.([\w.]+) import", text, re.M)
        missing += [f"rushlight.{name}" for name in dotted if not _is_there(name)]
        for module, names in re.findall(r"^from rushlight([\w.]*) import ([\w, ]+)$", text, re.M):
            listed = [f"{module}.{name.split()[0]}".lstrip(".") for name in names.split(",")]
            missing += [f"rushlight.{name}" for name in listed if not _is_there(name)]
        for name, attribute in re.findall(r"(?<![\w.])([A-Z]\w+)\.([a-z]\w*)", text):
            if not _has(name, attribute):
                missing.append(f"{name}.{attribute}")
        missing += _wrong_keywords(text)
    assert not missing


# --- C++ ------------------------------------------------------------------------------------------


@cache
def _cpp_texts() -> list[str]:
    """The headers without their comments, and CMakeLists.txt."""
    headers = [p.read_text("utf-8") for p in (ROOT / "cpp").rglob("*.h")]
    build = (ROOT / "CMakeLists.txt").read_text("utf-8")
    return [*(re.sub(r"//[^\n]*", "", text) for text in headers), build]


def _is_cpp_name(scope: str, name: str) -> bool:
    """Whether a header that defines `scope` has `name`; CMake's targets count as names."""
    if scope == "rushlight":
        defined = rf"\b(?:class|struct|enum|enum class|using|rushlight::)\s*{name}\b|\b{name}\("
        return any(re.search(defined, text) for text in _cpp_texts())
    defined = rf"\b(?:class|struct|enum|namespace)\s+{scope}\b"
    here = [text for text in _cpp_texts() if re.search(defined, text)]
    return any(re.search(rf"\b{name}\b", text) for text in here)


@pytest.mark.parametrize("page", _pages("cpp"))
def test_cpp_names_exist(page: Path) -> None:
    texts = [*_spans(page), *_blocks(page, "cpp", "cmake")]
    named = {
        pair
        for text in texts
        for pair in re.findall(r"(?<![\w:])([A-Z]\w*|rushlight)::(\w+)(?![\w.]|\*)", text)
    }
    assert not [f"{scope}::{name}" for scope, name in named if not _is_cpp_name(scope, name)]


def test_environment_variables_exist() -> None:
    folders = (PACKAGE, ROOT / "cpp", ROOT / "bindings", ROOT / "tests", ROOT / "benchmarks")
    files = [p for f in folders for p in f.rglob("*") if p.suffix in (".py", ".h", ".cpp")]
    files += [ROOT / "CMakeLists.txt", ROOT / "Makefile"]
    known = "".join(p.read_text("utf-8") for p in files if p != Path(__file__))
    named = {n for p in PAGES for n in re.findall(r"\bRUSHLIGHT_[A-Z_]+\b", p.read_text("utf-8"))}
    assert named and not [name for name in named if name not in known]


# --- options and paths ----------------------------------------------------------------------------


@cache
def _options() -> dict[str, set[str]]:
    """The options of each command of the command line, from the sources."""
    options = {}
    common = _option_names(PACKAGE / "cli" / "common.py")
    for path in (*(PACKAGE / "cli").glob("*.py"), *(PACKAGE / "cli/selective").glob("*.py")):
        name = re.search(r'^NAME = "([a-z-]+)"', path.read_text("utf-8"), re.M)
        if name is not None:
            options[name[1]] = _option_names(path) | common | {"--help"}
    group = [_option_names(path) for path in (PACKAGE / "cli" / "llm").glob("*.py")]
    options["llm"] = common.union({"--help"}, *group)
    return options


def _option_names(path: Path) -> set[str]:
    return set(re.findall(r'["/](--[a-z][a-z-]*)', path.read_text("utf-8")))


@cache
def _all_options() -> set[str]:
    names = set().union(*_options().values(), _OF_OTHERS, {"--version"})
    tools = "src/rushlight/kernel_codegen"
    for folder in ("benchmarks", "cpp/runner", "cmake", "tests/attack", "codegen", tools):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cpp", ".h", ".cmake"):
                names |= _option_names(path)
    return names


@pytest.mark.parametrize("page", _pages("options"))
def test_options_exist(page: Path) -> None:
    spans = _spans(page)
    commands = [*spans, *(line for b in _blocks(page, "", "sh") for line in b.splitlines())]
    missing = []
    for command, rest in re.findall(r"^rushlight ([a-z-]+)(.*)$", "\n".join(commands), re.M):
        named = re.findall(r"(?<!\S)--[a-z][a-z-]*", rest.partition("#")[0])
        missing += [f"{command} {o}" for o in named if o not in _options().get(command, set())]
    for span in spans:
        named = re.findall(r"(?<!\S)--[a-z][a-z-]*", span)
        missing += [option for option in named if option not in _all_options()]
        for script in re.findall(r"^python -m benchmarks (\w+)", span):
            if script not in GROUPS and not list((ROOT / "benchmarks").rglob(f"{script}.py")):
                missing.append(span)
    assert not missing


_PATH = re.compile(r"(?<![\w/.$~:-])((?:[\w.-]+/)+[\w.*-]*)(?![\w/])")


def _is_path_of_ours(path: str) -> bool:
    """Whether the path may be one of the repository: its beginning exists there."""
    first = path.split("/")[0]
    return any((root / first).is_dir() for root in (ROOT, PACKAGE, ROOT / "cpp")) and first != "."


def _exists(path: str) -> bool:
    if path.startswith("rushlight/") and path.endswith(".h"):
        path = path.removeprefix("rushlight/")
    return any(list(root.glob(path.rstrip("/"))) for root in (ROOT, PACKAGE, ROOT / "cpp"))


@pytest.mark.parametrize("page", _pages("paths"))
def test_paths_exist(page: Path) -> None:
    named = {path for span in _spans(page) for path in _PATH.findall(span)}
    if page.name in ("ARCHITECTURE.md", "CONTRIBUTING.md"):  # their trees of folders, too
        named |= {path for block in _blocks(page, "") for path in _PATH.findall(block)}
    assert not [path for path in named if _is_path_of_ours(path) and not _exists(path)]


# --- the layers -----------------------------------------------------------------------------------


def _layers_told(language: str) -> list[set[str]]:
    """The layers as ARCHITECTURE.md draws them: sets of equals, the lowest first."""
    drawings = _blocks(ROOT / "ARCHITECTURE.md", "text")
    [drawing] = [block for block in drawings if block.startswith(language)]
    rows = [line.split("│") for line in drawing.splitlines() if line.startswith("│")]
    return [set(cells[1].replace(",", " ").split()) for cells in rows[::-1]]


@pytest.mark.parametrize(
    ("language", "layers"), [("Python", PYTHON_LAYERS), ("C++", CPP_LAYERS)], ids=["python", "cpp"]
)
def test_the_layers_that_are_told_are_those_that_are_held(
    language: str, layers: tuple[tuple[str, ...], ...]
) -> None:
    assert _layers_told(language) == [set(names) for names in layers]


def test_each_layer_is_there() -> None:
    for name in (name for names in PYTHON_LAYERS for name in names if name != "_core"):
        assert _module_file([name]) is not None, name
    for name in (name for names in CPP_LAYERS for name in names):
        assert (ROOT / "cpp" / name).is_dir(), name


@pytest.mark.parametrize(
    ("folder", "layers"),
    [("cpp/engine", ENGINE_LAYERS), ("src/rushlight/backends/cpu", ENGINE_COMPILER_LAYERS)],
)
def test_the_order_inside_that_is_told_is_the_one_that_is_held(
    folder: str, layers: tuple[tuple[str, ...], ...]
) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    [order] = re.findall(rf"^\| `{folder}` \| (.*) \|$", text, re.M)
    told = [set(re.findall(r"`(\w+)(?:\.py)?`", names)) for names in order.split("<")]
    assert told == [set(names) for names in layers if names != ("__init__",)]


# --- the test itself ------------------------------------------------------------------------------


def test_what_does_not_exist_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`rl.lode(x)`, `rushlight.runtime.Runtym`, `Module::opens`, `rushlight run --inputz`, "
        "`cpp/no_such/file.h`, `rl.load(x, thread=1)`, `Module.forks()`\n"
        "```python\nfrom rushlight.edge import NoSuch\n```\n",
        encoding="utf-8",
    )
    for check in (test_python_names_exist, test_cpp_names_exist, test_options_exist):
        with pytest.raises(AssertionError):
            check(page)
    with pytest.raises(AssertionError):
        test_paths_exist(page)
    for name in ("load", "quantize", "runtime.Runtime", "Module.fork", "runtime.Runtime.get"):
        assert _is_there(name), name
    for name in ("lode", "runtime.Runtym", "Module.forks", "runtime.lode"):
        assert not _is_there(name), name
    assert _wrong_keywords("rl.load(x, thread=1)") == ["load(thread=)"]
    assert _wrong_keywords("export(model, quantize='int8')") == []
    assert _is_cpp_name("Module", "open") and not _is_cpp_name("Module", "opens")
