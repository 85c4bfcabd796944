"""`python -m guides DOCS [NAME ...]`: runs the guides of a folder, and tells which parts run."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from guides import blocks, delegation, language_models, others
from guides.documents import Document
from guides.scenario import Scenario, StepFailedError, install_runtime
from rich.console import Console
from rich.table import Table


def main() -> int:
    parser = argparse.ArgumentParser(prog="guides", description=__doc__)
    parser.add_argument("docs", type=Path, help="the folder with the guides' texts")
    parser.add_argument("names", nargs="*", help="run only those whose names have one of these")
    parser.add_argument(
        "--blocks", action="store_true", help="only tell what becomes of every block of code"
    )
    parser.add_argument(
        "--whole", action="store_true", help="compile the runtime in each project, as readers do"
    )
    parser.add_argument("--keep", type=Path, help="a folder for what the guides make")
    arguments = parser.parse_args()
    scenarios = [*delegation.scenarios(arguments.docs), *language_models.scenarios(arguments.docs)]
    documents = [delegation.document(arguments.docs), language_models.document(arguments.docs)]
    console = Console()
    findings = _tell_blocks(console, documents, scenarios, arguments.blocks)
    if arguments.blocks:
        return 1 if findings else 0
    scenarios += others.scenarios()
    table = Table("part of a guide", "result", "s")
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        options = [] if arguments.whole else install_runtime(folder / "runtime")
        for index, scenario in enumerate(scenarios):
            if arguments.names and not any(name in scenario.name for name in arguments.names):
                continue
            try:
                seconds = scenario.run(folder / f"{index}", options)
                table.add_row(scenario.name, "runs", f"{seconds:.0f}")
            except StepFailedError as error:
                failures.append(f"{scenario.name}: {error}")
                table.add_row(scenario.name, "fails", "")
    for failure in failures:
        console.print(failure[-6000:], markup=False, highlight=False)
    console.print(table)
    return 1 if failures or findings else 0


def _tell_blocks(
    console: Console, documents: list[Document], scenarios: list[Scenario], all_blocks: bool
) -> list[str]:
    found = list(blocks.stretches(documents, scenarios))
    if all_blocks:
        table = Table("guide", "block", "lines", "first line", "runs in, or why not")
        for stretch in found:
            fate = "; ".join(stretch.users) or stretch.reason or "NOT TAKEN"
            row = [str(stretch.run), str(len(stretch.lines)), stretch.lines[0][:44], fate]
            table.add_row(stretch.document.partition("_")[0], *row)
        console.print(table, markup=False)
    findings = blocks.untaken(found)
    for finding in findings:
        console.print(finding, markup=False, highlight=False)
    return findings


if __name__ == "__main__":
    raise SystemExit(main())
