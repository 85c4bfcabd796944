"""Checks the rules inside folders of the source tree; `test_layers.py` has those of the whole tree.

* No files import or include each other in a cycle: imports inside functions and those for type
  checkers count.
* Backends do not use each other.
* The engine, its compiler and language models have layers of their own (``ENGINE_LAYERS``,
  ``ENGINE_COMPILER_LAYERS``, ``LANGUAGE_MODEL_LAYERS``): a folder uses only earlier ones.
* Nothing on the path names a backend.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from test_layers import _INCLUDE, PACKAGE, PYTHON_LAYERS, ROOT, _name, _python_imports, _ranks

# From the first to the last, as above; `partitioner` and `preprocess` are files.
ENGINE_LAYERS = (("types",), ("loops",), ("kernels",), ("operators",), ("graph",))
ENGINE_COMPILER_LAYERS = (
    *(("graph",), ("integers",), ("tiles",), ("build",), ("operators",), ("patterns",)),
    *(("passes", "support", "payload_reader"), ("preprocess",), ("partitioner",), ("__init__",)),
)
LANGUAGE_MODEL_LAYERS = (
    ("packages",),
    ("description", "grammar", "reply", "template", "tokenizer", "weights"),
    *(
        ("gguf", "options"),
        ("prompts", "structured"),
        ("exporter", "runner"),
        ("adapters", "compare_runs", "loading"),
    ),
    *(("serve",), ("__init__",)),
)
FACTS_OF_FORMATS = (
    "src/rushlight/schema/sizes.py",  # ExecuTorch's XNNPACK reads beyond its tensors
    "src/rushlight/inspect/interop.py",  # the backends that ExecuTorch's own wheel has
)
Files = dict[str, set[str]]


def _cycles(uses: Files) -> list[list[str]]:
    """The groups of files that use each other, directly or not: Tarjan's algorithm."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_files: list[str] = []
    cycles: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        open_files.append(name)
        for other in sorted(uses.get(name, ())):
            if other not in order:
                visit(other)
            if other in open_files:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == order[name]:
            at = open_files.index(name)
            if len(open_files) - at > 1 or name in uses.get(name, ()):
                cycles.append(sorted(open_files[at:]))
            del open_files[at:]

    for name in sorted(uses):
        if name not in order:
            visit(name)
    return cycles


def _dotted(path: Path) -> str:
    """The name that others import a file by; a package's file has the package's name."""
    root = PACKAGE.parent if path.is_relative_to(PACKAGE) else ROOT
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _python_uses(folders: tuple[Path, ...]) -> Files:
    """The files that each file imports, also inside functions and for type checkers."""
    paths = {_dotted(path): path for folder in folders for path in sorted(folder.rglob("*.py"))}
    scripts = {path.stem: name for name, path in paths.items() if name.startswith("benchmarks.")}
    uses: Files = {}
    for name, path in paths.items():
        own = f"{name}.__init__" if path.name == "__init__.py" else name
        used = uses[name] = set()
        for _, imported in _python_imports(ast.parse(path.read_text(encoding="utf-8")), own):
            parts = imported.split(".")
            if parts[:2] == ["rushlight", "_core"]:
                continue  # the extension module has no file here, and imports none
            names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
            target = next((one for one in names if one in paths), None)
            if target is None and name.startswith("benchmarks."):
                target = scripts.get(parts[0])  # scripts import each other by their own names
            if target is not None:
                used.add(target)
    return uses


@cache
def _cpp_uses() -> Files:
    """The files that each file includes; those in `bindings` are found by the ends of paths."""
    folders = (ROOT / "cpp", ROOT / "bindings")
    paths = [p for f in folders for p in sorted(f.rglob("*")) if p.suffix in (".h", ".cpp")]
    names = {_name(path): path for path in paths}
    uses: Files = {}
    for name, path in names.items():
        used = uses[name] = set()
        for quoted, _ in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            core = f"cpp/{quoted.removeprefix('rushlight/')}"
            ends = (n for n in names if n.startswith("bindings/") and n.endswith(f"/{quoted}"))
            used.update([core] if core in names else ends)
    return uses


def test_no_python_files_import_each_other_in_a_cycle() -> None:
    cycles = _cycles(_python_uses((PACKAGE, ROOT / "codegen", ROOT / "benchmarks")))
    assert not cycles, "\n".join(" <-> ".join(cycle) for cycle in cycles)


def test_no_cpp_files_include_each_other_in_a_cycle() -> None:
    cycles = _cycles(_cpp_uses())
    assert not cycles, "\n".join(" <-> ".join(cycle) for cycle in cycles)


def _faults_inside(
    uses: Files, parent: str, layers: tuple[tuple[str, ...], ...], separator: str
) -> list[str]:
    """The uses of a later or an equal part of the folder `parent` by another part of it."""
    ranks = _ranks(layers)
    inside = {name: _part(name, parent, separator) for name in uses}
    faults = [f"{name}: its part has no place" for name, own in inside.items() if own not in ranks]
    faults = [fault for fault in faults if fault.startswith(parent + separator)]
    for name, own in inside.items():
        for other in uses[name] if own in ranks else ():
            part = inside.get(other)
            if part in ranks and part != own and ranks[part] >= ranks[own]:
                faults.append(f"{name}: {own} uses {other}")
    return faults


def _part(name: str, parent: str, separator: str) -> str | None:
    """The direct part of `parent` that a file is in; None if it is elsewhere."""
    if name == parent:
        return "__init__"
    rest = name.removeprefix(parent + separator)
    return rest.split(separator)[0] if rest != name else None


def test_the_engine_keeps_its_layers() -> None:
    faults = _faults_inside(_cpp_uses(), "cpp/engine", ENGINE_LAYERS, "/")
    assert not faults, "\n".join(faults)


def test_the_engines_compiler_keeps_its_layers() -> None:
    uses = _python_uses((PACKAGE,))
    faults = _faults_inside(uses, "rushlight.backends.cpu", ENGINE_COMPILER_LAYERS, ".")
    assert not faults, "\n".join(faults)


def test_language_models_keep_their_layers() -> None:
    faults = _faults_inside(_python_uses((PACKAGE,)), "rushlight.llm", LANGUAGE_MODEL_LAYERS, ".")
    assert not faults, "\n".join(faults)


def test_backends_do_not_use_each_other() -> None:
    faults = []
    for uses, parent, separator in (
        (_python_uses((PACKAGE,)), "rushlight.backends", "."),
        (_cpp_uses(), "cpp/backends", "/"),
    ):
        for name, others in uses.items():
            own = _part(name, parent, separator)
            parts = {other: _part(other, parent, separator) for other in others}
            faults += [
                f"{name}: {own} uses {other}"
                for other, part in parts.items()
                if own not in (None, "__init__") and part not in (None, "__init__", own)
            ]
    assert not faults, "\n".join(faults)


def test_nothing_on_the_path_names_a_backend() -> None:
    """Backends are found by their entry points, so files that are not leaves name none."""
    names = {p.name for p in (PACKAGE / "backends").iterdir() if (p / "__init__.py").exists()}
    leaf = next(rank for rank, layer in enumerate(PYTHON_LAYERS) if "backends" in layer)
    path_folders = {name for layer in PYTHON_LAYERS[:leaf] for name in layer}
    faults = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = _name(path)
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") not in path_folders:
            continue
        if name in FACTS_OF_FORMATS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and text.lower().removesuffix("backend") in names:
                faults.append(f"{name}:{node.lineno}: names {text!r}")
    assert not faults, "\n".join(faults)


def test_cycles_are_seen() -> None:
    uses = {"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": {"e"}, "e": set(), "f": {"f"}, "g": {"a"}}
    assert _cycles(uses) == [["b", "c"], ["f"]]
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [["a", "b", "c"]]
    assert not _cycles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": {"beyond"}})


def test_uses_of_later_parts_are_seen() -> None:
    uses = {"x.a.f": {"x.b.g"}, "x.b.g": {"x.a.f", "x.c"}, "x.c": {"y.b"}, "x.new": set()}
    faults = _faults_inside(uses, "x", (("a",), ("b", "c")), ".")
    assert faults == ["x.new: its part has no place", "x.a.f: a uses x.b.g", "x.b.g: b uses x.c"]


def test_all_files_are_seen_with_what_they_use() -> None:
    python = _python_uses((PACKAGE, ROOT / "codegen", ROOT / "benchmarks"))
    assert "rushlight.serialize.file" in python["rushlight.serialize.pte"]
    assert "rushlight.runtime.module" in python["rushlight"]  # for type checkers only
    assert any(n.startswith("benchmarks.") for n in python["benchmarks.engine"])
    cpp = _cpp_uses()
    assert "cpp/engine/graph/graph.h" in cpp["cpp/engine/graph/graph.cpp"]
    assert any(other.startswith("bindings/") for other in cpp["bindings/core.cpp"])
