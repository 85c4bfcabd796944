"""Loading language models: time, memory, and the first token after a prefix that is cached.

Each load is in a fresh process, with the file in the page cache; engines take turns. Memory is the
growth of the peak resident size until the second token, which includes the pages of a mapped file;
`anonymous` is what is backed by no file. The last column is ours alone: the time from a prompt, all
of whose tokens but the last are cached, to the first token, in steps of decoding.

  python -m benchmarks llm_load --models 135m --peers llamacpp
"""

from __future__ import annotations

import statistics
from typing import Any

import engines
import forms
from engines import Engine
from environments import MissingError
from forms import Forms

from rushlight.llm.loading import load
from rushlight.peers.side import SideError

MB = 1e6
PREFIX = 1024  # tokens


def main() -> None:
    arguments = engines.parser(__doc__).parse_args()
    rows, figures, absent = [], [], []
    for name in arguments.models:
        model = Forms(arguments.work, name, arguments.layers)
        missing: dict[str, str] = {}
        absent.append((model, missing))
        chosen = {n: e for n, e in engines.chosen(arguments).items() if not e.options}
        runs: dict[str, list[dict[str, float]]] = {}
        for _ in range(arguments.repeat):
            for one, engine in chosen.items():
                _load(one, engine, model, runs, missing)
        for one, measured in runs.items():
            middle = {key: statistics.median(run[key] for run in measured) for key in measured[0]}
            decodes = _decodes_to_first_token(model, chosen[one]) if chosen[one].is_ours else None
            size = model.size(chosen[one].form)
            rows.append(_row(model, chosen[one].title, middle, size, decodes))
            figures.append(
                {"model": name, "engine": one, **middle, "size": size, "decodes": decodes}
            )
    heads = ["", "engine", "file MB", "load ms", "peak MB", "peak / file", "anonymous MB"]
    engines.table("Loads", [*heads, "steps to the first token"], rows)
    for one in absent:
        engines.show_missing(*one)
    engines.write_figures(arguments.json, "llm_load", figures)


def _load(
    name: str,
    engine: Engine,
    model: Forms,
    runs: dict[str, list[dict[str, float]]],
    missing: dict[str, str],
) -> None:
    if engine.title in missing:
        return
    try:
        file = str(model.file(engine.form))
        with engine.start() as side:
            arguments = {"runtime": engine.runtime, "file": file, "context": forms.CONTEXT}
            runs.setdefault(name, []).append(side.call("open", threads=1, **arguments))
    except MissingError as error:
        missing[engine.title] = str(error)
    except SideError as error:
        missing[engine.title] = error.reason


def _row(
    model: Forms, title: str, figures: dict[str, float], size: int, decodes: float | None
) -> list[str]:
    return [
        model.folder.name,
        title,
        f"{size / MB:.0f}",
        f"{figures['seconds'] * 1e3:.1f}",
        f"{figures['run_peak'] / MB:.0f}",
        f"{figures['run_peak'] / size:.2f}x",
        f"{figures['anonymous'] / MB:.0f}",
        "-" if decodes is None else f"{decodes:.2f}",
    ]


def _decodes_to_first_token(model: Forms, engine: Engine) -> float:
    """The time to the first token after a cached prefix, in steps of decoding."""
    runner = load(str(model.file(engine.form)), threads=1)
    prompt = [(7 + 13 * i) % runner.vocabulary_size for i in range(PREFIX)]
    options: dict[str, Any] = {"temperature": 0.0, "ignore_eos": True, "guesses": 0}
    runner.generate(prompt, max_tokens=1, **options)
    runs = [runner.generate(prompt, max_tokens=17, **options).statistics for _ in range(5)]
    assert all(run.reused_tokens == PREFIX - 1 for run in runs), runs[0]
    return statistics.median(run.first_token * run.decode_rate for run in runs)


if __name__ == "__main__":
    main()
