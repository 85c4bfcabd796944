"""Writes docs/compat.md's table from what `tests.compat.suite.run` found.

python -m tests.compat.suite.table FOLDER-OF-EXECUTORCH
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

from tests.compat.suite.run import RESULTS, ROOT, SUITES, files_of, module_of, outcomes

PAGE = ROOT / "docs" / "compat.md"
BEGIN, END = "<!-- the table begins -->", "<!-- the table ends -->"
Row = tuple[str, int, int, int, int]


def is_public(file: Path) -> bool:
    """Whether a file imports no name of `executorch` that begins with an underscore."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("executorch"):
            names += [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            ours = [a.name for a in node.names if a.name.startswith("executorch")]
            names += [part for name in ours for part in name.split(".")]
    return not any(name.startswith("_") for name in names)


def table_of(folder: Path) -> str:
    """The tables of counts and of reasons, as text of the page."""
    rows: list[Row] = []
    reasons: list[str] = []
    for suite in SUITES:
        counts = [0, 0, 0, 0]
        for file in files_of(folder, suite):
            module = module_of(folder, file)
            there = outcomes(RESULTS / "real" / f"{module}.jsonl")
            if not there or not (RESULTS / "here" / f"{module}.jsonl").exists():
                continue
            here = outcomes(RESULTS / "here" / f"{module}.jsonl")
            wanted = [test for test, (outcome, _) in there.items() if outcome == "passes"]
            good = [test for test in wanted if here.get(test, ("", ""))[0] == "passes"]
            public = is_public(file)
            for i, many in enumerate((wanted, good)):
                counts[i] += len(many)
                counts[i + 2] += len(many) if public else 0
            reasons += _reasons(module, sorted(set(wanted) - set(good)), here)
        if counts[0]:
            rows.append((suite, *counts))  # type: ignore[arg-type]
    head = "| suite | passes there | passes here | with public names alone |\n|---|---|---|---|"
    lines = [f"| `{_dotted(s)}` | {t} | {h} | {ph} of {pt} |" for s, t, h, pt, ph in rows]
    total = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    if total:
        lines.append(f"| all | {total[0]} | {total[1]} | {total[3]} of {total[2]} |")
    why = "\n| file | tests | why they fail here |\n|---|---|---|"
    return "\n".join([head, *lines, "", *why.splitlines()[1:], *reasons])


def _dotted(suite: str) -> str:
    """A suite's folder as the name of a package."""
    return suite.replace("/", ".")


def _reasons(module: str, failed: list[str], here: dict[str, tuple[str, str]]) -> list[str]:
    whole_file = here.get("", ("", ""))[1]
    counts = Counter(here[t][1] if t in here else whole_file for t in failed)
    name = module.removeprefix("executorch.")
    texts = [(why.replace("|", "/").replace("`", "'")[:160], n) for why, n in counts.most_common()]
    return [f"| `{name}` | {n} | {why} |" for why, n in texts]


def main(folder: str) -> None:
    """Put the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    made = f"{before}{BEGIN}\n{table_of(Path(folder))}\n{END}{after}"
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
