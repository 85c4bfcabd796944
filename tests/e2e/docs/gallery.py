"""The pages of docs/gallery: code that fails, the message, and the rewrite that works."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doc_pages import FENCE

import rushlight as rl

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Page:
    """One page: two blocks of code, and between them what the first says."""

    kind: str
    failing: str
    message: str
    rewrite: str


def read_page(path: Path) -> Page:
    """Raises ValueError if a page has not its three blocks in order."""
    blocks = FENCE.findall(path.read_text("utf-8"))
    if [kind for kind, _ in blocks] != ["python", "text", "python"]:
        raise ValueError(f"{path.name}: write the failing code, its message, and the rewrite")
    return Page(path.stem, *(code for _, code in blocks))


def run(code: str, folder: Path, name: str) -> tuple[dict[str, Any], str]:
    """What a block defines, and what it prints or, if it fails, the message of its error."""
    path = folder / "model.py"
    path.write_text(code, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            spec.loader.exec_module(module)
        output = printed.getvalue()
    except rl.Error as error:
        output = f"{type(error).__name__}: {error}"
    finally:
        del sys.modules[name]
    return vars(module), words(output.replace(f"{folder}/", ""))


def words(text: str) -> str:
    """`text` with every run of white space as one blank."""
    return " ".join(text.split())
