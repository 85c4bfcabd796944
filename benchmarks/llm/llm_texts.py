"""What language models gain from texts that are known in part: batches, grammars, repetitions.

* Sessions: eight texts that are generated at once, against one.
* Structured output: a JSON object of 20 fields, most of whose tokens the schema forces, against
  free text of as many tokens. Speculation is off in both.
* Speculation: an edit of a text that repeats 80 % of it, with guesses and without.

The models are those of `llm_speed`; `shapes.py` says how their texts are made to repeat.

  python -m benchmarks llm_texts --models 135m --threads 1
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from typing import Any

import engines
from forms import Forms

from rushlight.cli.llm.bench import measure
from rushlight.llm.grammar import Grammar
from rushlight.llm.loading import load
from rushlight.llm.runner import Runner

SESSIONS = 8
OUTPUT = 64  # tokens of each session
EDITED, KEPT, CHANGED = 200, 40, 10  # tokens of the text, and of its parts in turns
GREEDY: dict[str, Any] = {"temperature": 0.0, "ignore_eos": True}


def main() -> None:
    arguments = engines.parser(__doc__).parse_args()
    rows, figures = [], []
    for name in arguments.models:
        model = Forms(arguments.work, name, arguments.layers)
        for threads in arguments.threads:
            runner = load(str(model.file("8da4w.pte")), threads=threads)
            comparisons = {
                "8 sessions": _sessions(runner, arguments.repeat),
                "20 fields": _structured(runner, arguments.repeat),
                "80 % repeated": _speculation(runner, arguments.repeat),
            }
            goals = {"8 sessions": 4.0, "20 fields": 1.0, "80 % repeated": 2.0}
            for what, (plain, better, note) in comparisons.items():
                ratio = better / plain
                verdict = "met" if ratio >= goals[what] else "missed"
                rows.append(
                    [
                        f"{model.folder.name}, {what}",
                        str(threads),
                        *(f"{plain:.1f}", f"{better:.1f}", f"{ratio:.2f}x"),
                        f"{goals[what]:.0f}x: {verdict}",
                        note,
                    ]
                )
                figures.append({"model": name, "threads": threads, "what": what, "plain": plain,
                                "better": better, "note": note})  # fmt: skip
                engines.say("  ".join(rows[-1]))
    heads = ["tokens/s", "threads", "without", "with", "ratio", "goal", "note"]
    engines.table("Texts that are known in part, ours in 8da4w", heads, rows)
    engines.write_figures(arguments.json, "llm_texts", figures)


Found = tuple[float, float, str]


def _in_turns(repeat: int, plain: Callable[[], float], better: Callable[[], float]) -> list[float]:
    """The medians of two rates that are measured in turns."""
    turns = [(plain(), better()) for _ in range(max(1, repeat))]
    return [statistics.median(rates) for rates in zip(*turns, strict=True)]


def _sessions(runner: Runner, repeat: int) -> Found:
    def rate(sessions: int) -> float:
        rate: float = measure(runner, 0, 32, OUTPUT, sessions, 1)["decode"]
        return rate

    one, all_of_them = _in_turns(repeat, lambda: rate(1), lambda: rate(SESSIONS))
    return one, all_of_them, f"{OUTPUT} tokens each"


def _schema() -> dict[str, Any]:
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "string", "maxLength": 24},
        {"type": "integer", "minimum": 0, "maximum": 9999},
        {"enum": ["low", "medium", "high"]},
        {"type": "boolean"},
    )
    words = "title author summary pages rating audience available language year edition".split()
    names = [*words, *(f"{word}_of_original" for word in words)]
    return {
        "type": "object",
        "properties": {name: kinds[i % len(kinds)] for i, name in enumerate(names)},
        "required": names,
        "additionalProperties": False,
    }


def _structured(runner: Runner, repeat: int) -> Found:
    grammar = Grammar.from_json_schema(_schema(), runner.vocabulary, white_space="compact")
    prompt = runner.encode("Describe a book as JSON.")
    options = {**GREEDY, "guesses": 0}
    first = runner.generate(prompt, grammar=grammar, temperature=0.0, guesses=0).statistics
    count = first.output_tokens

    def free() -> float:
        return runner.generate(prompt, max_tokens=count, **options).statistics.decode_rate

    def structured() -> float:
        reply = runner.generate(prompt, grammar=grammar, temperature=0.0, guesses=0)
        return reply.statistics.decode_rate

    plain, better = _in_turns(repeat, free, structured)
    return plain, better, f"{count} tokens in {first.steps} steps"


def _speculation(runner: Runner, repeat: int) -> Found:
    text = _long_text(runner)
    draw = random.Random(5)
    edited = list(text)
    for begin in range(KEPT, len(text), KEPT + CHANGED):
        edited[begin : begin + CHANGED] = draw.choices(range(2, runner.vocabulary_size), k=CHANGED)
    prompt = [*edited[: len(text)], text[0]]

    def rate(guesses: int) -> float:
        reply = runner.generate(prompt, max_tokens=len(text) - 1, guesses=guesses, **GREEDY)
        assert reply.tokens == text[1:], "the text depends on more than its last token"
        return reply.statistics.decode_rate

    plain, better = _in_turns(repeat, lambda: rate(0), lambda: rate(8))
    figures = runner.generate(prompt, max_tokens=len(text) - 1, **GREEDY).statistics
    right = figures.accepted_tokens / max(1, figures.guessed_tokens)
    return plain, better, f"{right:.0%} of {figures.guessed_tokens} guesses are right"


def _long_text(runner: Runner) -> list[int]:
    """Tokens that the model generates one after the other, all different."""
    longest: list[int] = []
    for first in range(2, 40):
        reply = runner.generate([first], max_tokens=EDITED - 1, guesses=0, **GREEDY)
        text = [first, *reply.tokens]
        if len(set(text)) == len(text):
            return text
        different = next(i for i in range(len(text)) if text[i] in text[:i])
        longest = max(longest, text[:different], key=len)
    return longest


if __name__ == "__main__":
    main()
