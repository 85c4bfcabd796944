"""The files of a model in the forms of all runtimes, made once in a folder that is kept."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import environments
import shapes
from environments import MissingError

from rushlight.peers.side import Side, SideError
from rushlight.serialize.pte import read_pte

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build-benchmarks"
MAKER = ROOT / "benchmarks" / "sides" / "llm_files.py"
CONTEXT = 4608
"""The longest text of a program: 4,096 tokens before what is measured."""


def evict(path: Path) -> None:
    """Drop a file, or a folder's files, from the system's cache, where the system can do that.

    They are then read from disk by the engine that opens them. How fast cached bytes are read
    depends on the sizes of the pages that they lie in, which whoever reads them first decides.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file():
            with open(file, "rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Forms:
    """A model's files.

    Args:
        folder: where the files of all models are kept.
        model: a name of `shapes.SHAPES`.
        layers: other than the model's own number of layers.
    """

    def __init__(self, folder: Path, model: str, layers: int | None = None) -> None:
        self.model = model
        self.shape = shapes.shape_of(model, layers)
        self.folder = folder / (f"{model}-{layers}-layers" if layers else model)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "shape.json").write_text(json.dumps(self.shape))

    @property
    def source(self) -> Path:
        """The folder of Hugging Face."""
        path = self.folder / "source"
        if not (path / "tokenizer_config.json").exists():
            print(f"{self.model}: write random weights", file=sys.stderr, flush=True)
            shapes.write_source(path, self.shape)
        return path

    def file(self, form: str) -> Path:
        """The file of a form, which is a key of `_MAKERS`; made if it is missing.

        Raises:
            MissingError: it cannot be made.
        """
        path = self.folder / form
        if form not in self.made() or not path.exists():
            self.make(form)
        return path

    def made(self) -> dict[str, dict[str, float]]:
        """By form, the CPU seconds and peak memory that it took."""
        path = self.folder / "made.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def make(self, form: str) -> dict[str, float]:
        """Make a form's file anew; returns the CPU seconds and peak memory that it took."""
        python, source = sys.executable, str(self.source)
        environment, command, options = _MAKERS[form]
        python = environments.python_of(environment)
        path = self.folder / form
        print(f"{self.model}: write {form}", file=sys.stderr, flush=True)
        self._remember({k: v for k, v in self.made().items() if k != form})
        if path.is_dir():
            shutil.rmtree(path)
        if environment == "executorch":
            source = str(self.folder / "checkpoint.pth")
            self._call(sys.executable, "checkpoint", source=str(self.source), file=source)
        figures = self._call(python, command, source=source, file=str(path), **options)
        if environment == "executorch":
            Path(source).unlink()
        self._remember({**self.made(), form: figures})
        return figures

    def _call(self, python: str, command: str, **arguments: Any) -> dict[str, float]:
        try:
            with Side(python, MAKER, threads=1) as side:
                figures: dict[str, float] = side.call(command, **arguments)
                return figures
        except SideError as error:
            raise MissingError(f"{command} failed: {error.reason}") from error

    def _remember(self, made: dict[str, dict[str, float]]) -> None:
        (self.folder / "made.json").write_text(json.dumps(made, indent=1) + "\n")

    def size(self, form: str) -> int:
        """Bytes of a form's files."""
        path = self.file(form)
        files = path.rglob("*") if path.is_dir() else [path]
        return sum(one.stat().st_size for one in files if one.is_file())

    def weight_bytes(self, form: str) -> int:
        """Bytes of a file of ours without its tokenizer: what a token reads of it at most."""
        with self.file(form).open("rb") as file:
            image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            table = read_pte(image).named_data["rushlight/tokenizer"]
            return len(image) - len(table)


_MAKERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "8da4w.pte": ("", "rushlight", {"recipe": "8da4w", "context": CONTEXT}),
    "8da4w-adapters.pte": (
        "",
        "rushlight",
        {"recipe": "8da4w", "context": CONTEXT, "adapters": 16},
    ),
    "int8.pte": ("", "rushlight", {"recipe": "int8", "context": CONTEXT}),
    "q4_0.gguf": ("", "gguf", {"kind": "Q4_0"}),
    "q8_0.gguf": ("", "gguf", {"kind": "Q8_0"}),
    "executorch.pte": ("executorch", "executorch", {"context": CONTEXT}),
    "onnxruntime": ("onnxruntime", "onnxruntime", {}),
}
"""By form: the environment that it is made in, the command there, and its options."""
