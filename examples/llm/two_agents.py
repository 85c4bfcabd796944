"""Two agents that talk with each other; both begin as forks of one session.

    python examples/llm/two_agents.py build/nano.pte --about examples/data/almanac.txt

The briefing is computed once. The forks share the memory of its keys and values, and each copies
only what it changes: the last line says how many tokens were not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import rushlight.llm

ROLES = ("writer", "editor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--about", type=Path, help="a text that both know")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=60, help="of a remark, at most")
    options = parser.parse_args()

    runner = rushlight.llm.load(options.model)
    briefing = "A writer and an editor talk about a text.\n"
    if options.about:
        briefing += options.about.read_text(encoding="utf-8")
    talk = 2 * options.rounds * (options.tokens + 20)
    tokens = runner.encode(briefing)[: max(1, runner.context - talk)]
    base = runner.session()
    base.generate(tokens, max_tokens=1)
    base.rewind(len(base.tokens) - len(tokens))
    agents = {role: base.fork() for role in ROLES}

    heard = reused = 0
    remark = ""
    for turn in range(2 * options.rounds):
        role, other = ROLES[turn % 2], ROLES[1 - turn % 2]
        said = f"\n{other}: {remark}" if remark else ""
        reply = agents[role].generate(
            f"{said}\n{role}:", max_tokens=options.tokens, stop="\n", temperature=0.8, seed=turn
        )
        remark = reply.text.strip()
        print(f"{role}: {remark}")
        heard += reply.statistics.prompt_tokens
        reused += reply.statistics.reused_tokens
    print(f"{reused} of {heard} tokens of prompts were in the cache, {runner.cache_bytes} bytes")


if __name__ == "__main__":
    main()
