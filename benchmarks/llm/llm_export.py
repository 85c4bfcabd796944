"""Exporting language models from folders of Hugging Face: CPU seconds and peak memory.

Ours are exported anew, each in a fresh process; its imports of torch and transformers do not count.
A peer's figures are those of the time when its file was made. Memory is that above the imports. The
files replace those that the other benchmarks of language models keep.

  python -m benchmarks llm_export --models 135m,1b
"""

from __future__ import annotations

import engines
from forms import Forms

MB = 1e6


def main() -> None:
    arguments = engines.parser(__doc__, models=["135m"]).parse_args()
    rows, figures = [], []
    for name in arguments.models:
        model = Forms(arguments.work, name, arguments.layers)
        weights = (model.source / "model.safetensors").stat().st_size
        chosen = {e.form: e for e in engines.chosen(arguments).values()}
        exports = {form: model.make(form) for form, engine in chosen.items() if engine.is_ours}
        exports |= {form: one for form, one in model.made().items() if form in chosen}
        for form, one in exports.items():
            rows.append(
                [
                    model.folder.name,
                    form,
                    f"{one['cpu']:.1f}",
                    f"{one['peak'] / MB:.0f}",
                    f"{one['peak'] / weights:.2f}x",
                ]
            )
            figures.append({"model": name, "form": form, "weights": weights, **one})
    engines.table("Exports", ["", "form", "CPU s", "peak MB", "peak / weights"], rows)
    engines.write_figures(arguments.json, "llm_export", figures)


if __name__ == "__main__":
    main()
