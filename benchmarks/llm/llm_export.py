"""Exporting language models from folders of Hugging Face: CPU seconds and peak memory.

Ours are exported anew, each in a fresh process; its imports of torch and transformers do not count.
A peer's figures are those of the time when its file was made. Memory is that above the imports, as
a share of the file that is exported; what is private is backed by no file. The files replace those
that the other benchmarks of language models keep.

The second table has exports that are verified, from a folder in bfloat16 and from GGUF files.

  python -m benchmarks llm_export --models 135m,1b
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import engines
import forms
from forms import Forms

from rushlight.peers.side import Side

MB = 1e6
VERIFIED = (
    *(("source", recipe) for recipe in ("bf16", "fp16", "float32", "int8", "8da4w")),
    *(("q4_0.gguf", recipe) for recipe in (None, "8da4w")),
    *(("q8_0.gguf", recipe) for recipe in (None, "int8", "bf16")),
)
"""What is exported and verified: a model's folder or one of its files, and the recipe."""


def main() -> None:
    arguments = engines.parser(__doc__, models=["135m"]).parse_args()
    rows, checked, figures = [], [], []
    for name in arguments.models:
        model = Forms(arguments.work, name, arguments.layers)
        weights = (model.source / "model.safetensors").stat().st_size
        chosen = {e.form: e for e in engines.chosen(arguments).values()}
        exports = {form: model.make(form) for form, engine in chosen.items() if engine.is_ours}
        exports |= {form: one for form, one in model.made().items() if form in chosen}
        for form, one in exports.items():
            rows.append([model.folder.name, form, *_cells(one, weights)])
            figures.append({"model": name, "form": form, "weights": weights, **one})
        for source, recipe in VERIFIED:
            one, size = _verified(model, source, recipe)
            title = f"{source}, {recipe or 'as it is'}"
            checked.append([model.folder.name, title, *_cells(one, size)])
            figures.append({"model": name, "form": title, "weights": size, **one})
    heads = ["CPU s", "peak MB", "peak / file", "private / file"]
    engines.table("Exports", ["", "form", *heads], rows)
    engines.table("Verified exports", ["", "from, recipe", *heads], checked)
    engines.write_figures(arguments.json, "llm_export", figures)


def _verified(model: Forms, source: str, recipe: str | None) -> tuple[dict[str, Any], int]:
    """What an export took, and the bytes of the weights that it read."""
    engines.say(f"{model.folder.name}: {recipe or 'as it is'} from {source}, verified")
    if source == "source":
        path, size = model.source, (model.source / "model.safetensors").stat().st_size
    else:
        path, size = model.file(source), model.size(source)
    with (
        tempfile.TemporaryDirectory(dir=model.folder) as folder,
        Side(sys.executable, forms.MAKER) as side,
    ):
        files = {"source": str(path), "file": str(Path(folder, "verified.pte"))}
        options = {"recipe": recipe, "context": forms.CONTEXT, "verify": True}
        return side.call("rushlight", **files, **options), size


def _cells(one: dict[str, float], size: int) -> list[str]:
    return [
        f"{one['cpu']:.1f}",
        f"{one['peak'] / MB:.0f}",
        f"{one['peak'] / size:.2f}x",
        f"{one['private'] / size:.2f}x" if "private" in one else "-",
    ]


if __name__ == "__main__":
    main()
