"""Checks the rules of the source tree: which folder may import which, and limits of size.

* A folder imports only folders before it (``PYTHON_LAYERS``, ``CPP_LAYERS``), imports inside
  functions included; equals do not import each other; nothing on the path imports a leaf.
* The torch-free half (``TORCH_FREE``) never names torch, and works where torch is not installed.
* The C++ core uses no container that allocates, no stream, no exception.
* 500 lines a file, 60 a function, 5 levels of nesting, 100 columns. Exceptions are listed with
  their reasons in ``layer_waivers.txt``; generated files are exempt.
* 25 files a folder, and folders of tests mirror those that they test.

The rules inside folders are in ``test_layers_inside.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "rushlight"

# The folders of a tuple are equals. The last tuple has the leaves, which may import all before it.
PYTHON_LAYERS = (
    ("errors", "files"),
    ("linking",),
    ("schema",),
    ("ir",),
    ("capture",),
    ("quantization",),
    ("edge",),
    ("partition",),
    ("lower",),
    ("plan",),
    ("emit",),
    ("serialize",),
    ("record",),
    ("pipeline",),
    ("_core",),  # the extension module
    ("runtime",),
    ("custom", "portable_lib"),
    ("inspect",),
    ("recipes",),
    ("check", "other_shapes"),
    ("forms",),
    ("backends", "skeleton"),
    ("bundled",),
    ("api", "doctor"),
    ("accuracy", "debug", "tap"),
    ("devtools", "exir"),
    ("llm",),
    ("extension",),
    ("kernel_codegen",),
    ("peers", "selective"),
    ("cli",),
)
CPP_LAYERS = (
    ("abi",),
    ("platform",),
    ("core",),
    ("events",),
    ("trace",),
    ("program",),
    ("kernel",),
    ("delegate",),
    ("engine",),
    ("method",),
    ("kernels", "backends"),
    ("module",),
    ("llm",),
    ("c_api",),
    ("runner",),
)
TORCH_FREE = ("errors", "files", "linking", "schema", "serialize", "runtime", "selective")
# These may reach torch, and the compiler, but only inside the functions that need it.
TORCH_LATE = ("__init__", "inspect", "bundled", "peers", "llm", "cli")
# Parts of these that only export uses.
TORCH_EARLY = (
    "rushlight.llm.adapters",
    "rushlight.llm.exporter",
    "rushlight.llm.gguf",
    "rushlight.llm.weights",
)
NEEDS_TORCH = (
    *("ir", "capture", "quantization", "edge", "partition", "lower", "plan", "emit"),
    "custom",
    *(
        "record",
        "pipeline",
        "recipes",
        "check",
        "other_shapes",
        "forms",
        "api",
        "doctor",
        "accuracy",
        "debug",
    ),
    *("tap", "kernel_codegen", "devtools", "exir", "extension"),
)
CPP_CORE = (
    *("platform", "core", "events", "trace", "program", "kernel", "delegate", "engine", "method"),
    "kernels",
)

MAX_FILE, MAX_FUNCTION, MAX_DEPTH, MAX_COLUMNS = 500, 60, 5, 100
# Files of code in one folder; data and generated files are not counted.
MAX_FILES, COUNTED_FOLDERS = 25, ("src", "cpp", "bindings", "tests", "benchmarks")
CODE = (".py", ".pyi", ".h", ".c", ".cpp", ".js", ".css", ".html", ".in")
# Folders of tests and the folders that they mirror; and folders of tests that mirror nothing.
MIRRORS = {"tests/python": "src/rushlight", "tests/cpp": "cpp"}
NO_MIRROR = (
    *("tests/cpp/support", "tests/cpp/consumer"),
    *("tests/cpp/delegate/plugins", "tests/cpp/kernel/plugins"),
)


_MADE_BY_CODEGEN = re.compile(r"\b(?:Made|Written)\b.*\bcodegen\b")


def _generated(path: Path) -> bool:
    head = path.read_text(encoding="utf-8").splitlines()[:6]
    return any(_MADE_BY_CODEGEN.search(line) for line in head)


def _files(*suffixes: str) -> list[Path]:
    folders = ("src", "cpp", "bindings", "codegen", "tests", "benchmarks", "examples")
    paths = [p for f in folders for p in sorted((ROOT / f).rglob("*")) if p.suffix in suffixes]
    return [p for p in paths if not _generated(p)]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _ranks(layers: tuple[tuple[str, ...], ...]) -> dict[str, int]:
    return {name: rank for rank, names in enumerate(layers) for name in names}


def _waivers() -> dict[tuple[str, str], str]:
    """(file, rule) -> reason; the rules are file, function, depth and columns."""
    waivers = {}
    for line in (ROOT / "tests" / "layer_waivers.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, rule, reason = (part.strip() for part in line.split("|"))
            assert rule in ("file", "function", "depth", "columns") and reason, line
            waivers[path, rule] = reason
    return waivers


# --- Python: imports ----------------------------------------------------------------------------


def _python_imports(tree: ast.AST, module: str) -> Iterator[tuple[ast.stmt, str]]:
    """Every import in `tree`, also inside functions, as (statement, absolute dotted name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")[: -node.level]
                base = ".".join([*package, base]) if base else ".".join(package)
            for alias in node.names:
                yield node, f"{base}.{alias.name}"


def _module(path: Path) -> str:
    """The dotted name; a package's own file keeps `__init__`, so that `.` means the package."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def _import_time(tree: ast.Module) -> set[ast.stmt]:
    """The import statements that run when the module is imported (not those for type checkers)."""
    statements: set[ast.stmt] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                todo += child.orelse
                continue
            if isinstance(child, ast.Import | ast.ImportFrom):
                statements.add(child)
            todo.append(child)
    return statements


def test_python_folders_import_only_earlier_ones() -> None:
    ranks = _ranks(PYTHON_LAYERS)
    faults = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = _module(path)
        own = module.split(".")[1]
        if own == "__init__" or own == "_version":
            continue
        if own not in ranks:
            faults.append(f"{_name(path)}: {own} has no place in PYTHON_LAYERS")
            continue
        for node, name in _python_imports(ast.parse(path.read_text(encoding="utf-8")), module):
            parts = name.split(".")
            if parts[0] != "rushlight":
                continue
            other = parts[1] if len(parts) > 1 else "__init__"
            if other != own and ranks.get(other, len(ranks)) >= ranks[own]:
                faults.append(f"{_name(path)}:{node.lineno}: {own} imports {name}")
    assert not faults, "\n".join(faults)


def test_torch_free_half_does_not_name_torch() -> None:
    faults = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = _module(path)
        own = module.split(".")[1]
        if own not in TORCH_FREE + TORCH_LATE or module.startswith(TORCH_EARLY):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        early = _import_time(tree)
        for node, name in _python_imports(tree, module):
            parts = name.split(".")
            bad = parts[0] in ("torch", "torchao") or (
                parts[0] == "rushlight" and len(parts) > 1 and parts[1] in NEEDS_TORCH
            )
            if bad and (node in early or own in TORCH_FREE):
                faults.append(f"{_name(path)}:{node.lineno}: imports {name}")
    assert not faults, "\n".join(faults)


# --- C++: includes, and names that the core must not use ------------------------------------------

_INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)
_BANNED_HEADERS = {
    *("vector", "string", "map", "set", "unordered_map", "unordered_set", "deque", "list"),
    *("memory", "functional", "iostream", "sstream", "fstream", "ostream", "istream", "any"),
    *("stdexcept", "exception", "regex", "future", "queue", "stack", "forward_list", "iomanip"),
}
_BANNED_CODE = re.compile(
    r"\b(?:std::(?:vector|string|map|set|function|unique_ptr|shared_ptr|make_unique)\b"
    r"|(?:malloc|calloc|realloc|strdup)\s*\(|throw\b|try\s*\{|dynamic_cast\b|typeid\b"
    r"|new\s+(?!\()\w)"
)


def _bare(text: str) -> str:
    """C++ with comments, literals and preprocessor lines blanked, line breaks kept."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    literals = r'"(?:\\.|[^"\\\n])*"' + r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"
    text = re.sub(rf"//[^\n]*|/\*.*?\*/|{literals}", blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, text, flags=re.M)


def test_cpp_folders_include_only_earlier_ones() -> None:
    ranks = _ranks(CPP_LAYERS)
    faults = []
    for path in sorted(p for p in (ROOT / "cpp").rglob("*") if p.suffix in (".h", ".cpp")):
        own = path.relative_to(ROOT / "cpp").parts[0]
        if own not in ranks:
            faults.append(f"{_name(path)}: {own} has no place in CPP_LAYERS")
            continue
        for quoted, _ in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            parts = quoted.split("/")
            # The headers that packages copy name each other without a folder.
            if own == "abi" and (path.parent / quoted).is_file():
                continue
            if quoted and parts[0] != "rushlight":
                faults.append(f'{_name(path)}: write "rushlight/…" for "{quoted}"')
            elif quoted and parts[1] != own and ranks.get(parts[1], len(ranks)) >= ranks[own]:
                faults.append(f"{_name(path)}: {own} includes {quoted}")
    assert not faults, "\n".join(faults)


def test_cpp_core_neither_allocates_nor_throws() -> None:
    faults = []
    for path in sorted(p for f in CPP_CORE for p in (ROOT / "cpp" / f).rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        text = path.read_text(encoding="utf-8")
        banned = [name for _, name in _INCLUDE.findall(text) if name in _BANNED_HEADERS]
        faults += [f"{_name(path)}: includes <{name}>" for name in banned]
        for match in _BANNED_CODE.finditer(_bare(text)):
            line = text.count("\n", 0, match.start()) + 1
            faults.append(f"{_name(path)}:{line}: {match.group()}")
    assert not faults, "\n".join(faults)


# --- sizes --------------------------------------------------------------------------------------

_NESTING = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AsyncFor, ast.AsyncWith)


def _python_depth(node: ast.AST) -> int:
    """Levels of nested statements; an `elif` is no deeper than its `if`."""
    deepest = 0
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            elif_ = isinstance(node, ast.If) and field == "orelse" and len(node.orelse) == 1
            level = isinstance(child, _NESTING) and not (elif_ and isinstance(child, ast.If))
            deepest = max(deepest, level + _python_depth(child))
    return deepest


def _python_functions(path: Path) -> Iterator[tuple[str, int, int]]:
    """(name, lines without the docstring, depth) of each function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            doc = first if ast.get_docstring(node, clean=False) is not None else None
            doc_lines = (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
            lines = (node.end_lineno or 0) - node.lineno + 1 - doc_lines
            yield node.name, lines, _python_depth(node)


_NOT_A_FUNCTION = re.compile(r"\b(?:namespace|class|struct|union|enum)\b|=\s*$|\bextern\s*$")


def _cpp_functions(path: Path) -> Iterator[tuple[str, int, int]]:
    """(signature's end, lines, depth) of each function: a brace after `(…)` outside functions."""
    text = _bare(path.read_text(encoding="utf-8"))
    inside: list[bool] = []  # for each open brace, whether it belongs to a function
    start, depth, signature, last = 0, 0, "", 0
    for match in re.finditer(r"[{};]", text):
        head = text[last : match.start()]
        last = match.end()
        if match.group() == "{":
            nested = bool(inside) and inside[-1]
            here = nested or (")" in head and not _NOT_A_FUNCTION.search(head))
            inside.append(here)
            depth = max(depth, sum(inside) - 1)
            if here and not nested:
                signature = " ".join(head.split())
                start = match.start() - len(head.lstrip())
                depth = 0
        elif match.group() == "}" and inside and inside.pop() and not any(inside):
            yield signature[-60:], text.count("\n", start, match.end()) + 1, depth


@cache
def _size_faults() -> dict[tuple[str, str], list[str]]:
    faults: dict[tuple[str, str], list[str]] = {}

    def fault(path: Path, rule: str, text: str) -> None:
        faults.setdefault((_name(path), rule), []).append(f"{_name(path)}: {text}")

    for path in _files(".py", ".h", ".cpp"):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > MAX_FILE:
            fault(path, "file", f"{len(lines)} lines; at most {MAX_FILE}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                fault(path, "columns", f"line {number} has {len(line)} columns")
        functions = _python_functions(path) if path.suffix == ".py" else _cpp_functions(path)
        for name, size, depth in functions:
            if size > MAX_FUNCTION:
                fault(path, "function", f"{name} has {size} lines; at most {MAX_FUNCTION}")
            if depth > MAX_DEPTH:
                fault(path, "depth", f"{name} nests {depth} deep; at most {MAX_DEPTH}")
    return faults


def test_sizes_keep_their_limits() -> None:
    waived = _waivers()
    faults = [text for key, texts in _size_faults().items() if key not in waived for text in texts]
    assert not faults, "\n".join(faults)


def test_no_waiver_is_left_over() -> None:
    assert set(_waivers()) <= set(_size_faults()), "remove the waivers that nothing needs any more"


# --- folders ------------------------------------------------------------------------------------


def test_folders_hold_few_files() -> None:
    counts: dict[Path, int] = {}
    for path in (p for f in COUNTED_FOLDERS for p in (ROOT / f).rglob("*")):
        if path.suffix in CODE and not _generated(path):
            counts[path.parent] = counts.get(path.parent, 0) + 1
    faults = {_name(folder): n for folder, n in counts.items() if n > MAX_FILES}
    assert not faults, f"more than {MAX_FILES} files: {faults}"


@pytest.mark.parametrize("tests", MIRRORS)
def test_folders_of_tests_mirror_what_they_test(tests: str) -> None:
    source = ROOT / MIRRORS[tests]
    folders = {p.parent for p in (ROOT / tests).rglob("*") if p.suffix in CODE}
    faults = [
        _name(folder)
        for folder in folders - {ROOT / name for name in NO_MIRROR}
        if not (source / folder.relative_to(ROOT / tests)).is_dir()
    ]
    modules = {p.stem for p in source.iterdir() if p.is_file()}
    flat = {p.stem.removeprefix("test_") for p in (ROOT / tests).glob("test_*.*")}
    faults += [f"{tests}/test_{name}: no file of {MIRRORS[tests]}" for name in flat - modules]
    assert not faults, "\n".join(sorted(faults))


# --- the rules themselves -----------------------------------------------------------------------


def test_cpp_scanner_sees_functions(tmp_path: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text(
        "namespace n {\nstruct S {\n  S() : a(1) {}\n  int a;\n};\n"
        "constexpr int k[] = {1, 2};\n"
        'int f(int x) {\n  if (x) {\n    for (;;) {\n    }\n  }\n  return sizeof("){");\n}\n}\n',
        encoding="utf-8",
    )
    assert [(size, depth) for _, size, depth in _cpp_functions(source)] == [(1, 0), (7, 2)]


@pytest.mark.parametrize(
    "code", ["std::vector<int> v;", "p = malloc(4);", "throw 1;", "auto* p = new Foo(1);"]
)
def test_banned_code_is_seen(code: str) -> None:
    assert _BANNED_CODE.search(_bare(code))
    assert not _BANNED_CODE.search(_bare(f"// {code}"))
    assert not _BANNED_CODE.search(_bare("new (memory) Foo(1);"))


def test_relative_imports_are_resolved() -> None:
    tree = ast.parse("def f():\n    from ..emit import x\n    from . import y\n")
    names = [name for _, name in _python_imports(tree, "rushlight.plan.arena")]
    assert names == ["rushlight.emit.x", "rushlight.plan.y"]
