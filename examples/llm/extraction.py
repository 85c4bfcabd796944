"""Reads facts out of a text as JSON that a schema accepts, whatever the model writes.

    python examples/llm/extraction.py build/nano.pte "Ada ordered 3 lamps for Tuesday."

The schema becomes a grammar over the model's tokens. What it forces, such as keys and brackets, is
appended without asking the model: the last line says how many calls of the model that saved.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import rushlight.llm
from rushlight.llm.grammar import Grammar

ORDER = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "maxLength": 40},
        "items": {
            "type": "array",
            "minItems": 1,
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 30},
                    "count": {"type": "integer", "minimum": 1, "maximum": 999},
                },
                "required": ["name", "count"],
                "additionalProperties": False,
            },
        },
        "day": {"enum": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", None]},
    },
    "required": ["customer", "items", "day"],
    "additionalProperties": False,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--schema", type=Path, help="another JSON schema")
    options = parser.parse_args()

    runner = rushlight.llm.load(options.model)
    schema = json.loads(options.schema.read_text(encoding="utf-8")) if options.schema else ORDER
    grammar = Grammar.from_json_schema(schema, runner.vocabulary)  # once, for all texts
    tokens = calls = 0
    task = f"Write these facts as JSON: {', '.join(schema['properties'])}."
    for text in options.text:
        messages = [{"role": "system", "content": task}, {"role": "user", "content": text}]
        reply = runner.generate(messages, grammar=grammar, temperature=0)
        print(json.dumps(json.loads(reply.text), indent=2, ensure_ascii=False))
        tokens += len(reply.tokens)
        calls += reply.statistics.steps
    print(f"{tokens} tokens in {calls} calls of the model")


if __name__ == "__main__":
    main()
