"""Every public name of ExecuTorch's developer tools has a row in docs/migration.md."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "migration.md"
_CLASSES_IN = ("inspector/_inspector.py", "etrecord/_etrecord.py", "bundled_program/core.py")
_PUBLIC_CLASSES = ("Inspector", "Event", "EventBlock", "PerfData", "ETRecord", "BundledProgram")


def devtools(python: Path) -> Path:
    """The folder of the installed `executorch.devtools`."""
    code = "import executorch; print(*executorch.__path__, sep=chr(10))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(found.stdout.splitlines()[0]) / "devtools"


def modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    """Those that are neither private, nor tests, nor made by flatc, by name; read, not imported:
    some need packages of their own."""
    for path in sorted(folder.rglob("*.py")):
        parts = ["executorch", "devtools", *path.relative_to(folder).with_suffix("").parts]
        name = ".".join(parts).removesuffix(".__init__")
        is_test = parts[-1].endswith("_test") or {"test", "tests"} & set(parts)
        if is_test or "generated" in parts or any(re.match("_(?!_)", part) for part in parts):
            continue
        yield name, ast.parse(path.read_text("utf-8"))


def public_names(module: ast.Module) -> set[str]:
    """What a module says is its own, else its classes and functions."""
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    kinds = ast.ClassDef | ast.FunctionDef
    names = {n.name for n in module.body if isinstance(n, kinds) and not n.name.startswith("_")}
    return names - {"main"}


def told(text: str) -> tuple[set[str], set[str]]:
    """The words of the left columns, and the modules that are named as a whole."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    code = " ".join(span for cell in cells for span in re.findall(r"`([^`]+)`", cell))
    return set(re.findall(r"\w+", code)), set(re.findall(r"[\w.]+", code))


def test_every_public_name_has_a_row(executorch_python: Path) -> None:
    words, paths = told(PAGE.read_text("utf-8"))
    missing, count = [], 0
    for name, module in modules(devtools(executorch_python)):
        names = public_names(module)
        count += len(names)
        if name not in paths:
            missing += [f"{name}.{one}" for one in sorted(names - words)]
    assert count > 80
    assert missing == []


def test_every_public_member_has_a_counterpart_or_a_row(executorch_python: Path) -> None:
    from rushlight.inspect import ETRecord, Event, EventBlock, Inspector, PerfData

    _, paths = told(PAGE.read_text("utf-8"))
    ours = {cls.__name__: cls for cls in (ETRecord, Event, EventBlock, Inspector, PerfData)}
    missing, count = [], 0
    folder = devtools(executorch_python)
    for path in _CLASSES_IN:
        for node in ast.parse((folder / path).read_text("utf-8")).body:
            if not isinstance(node, ast.ClassDef) or node.name not in _PUBLIC_CLASSES:
                continue
            members = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            members |= {ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign)}
            mine = ours.get(node.name)
            known = set() if mine is None else {*dir(mine), *getattr(mine, "__annotations__", ())}
            public = {member for member in members if not member.startswith("_")}
            count += len(public)
            missing += [
                f"{node.name}.{member}"
                for member in sorted(public - known)
                if not any(path.endswith(f".{node.name}.{member}") for path in paths)
            ]
    assert count > 40
    assert missing == []
