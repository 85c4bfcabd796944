"""`python -m guides DOCS [NAME ...]`: runs the guides of a folder, and tells which parts run."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from guides import delegation, language_models
from guides.scenario import StepFailedError
from rich.console import Console
from rich.table import Table


def main() -> int:
    parser = argparse.ArgumentParser(prog="guides", description=__doc__)
    parser.add_argument("docs", type=Path, help="the folder with the guides' texts")
    parser.add_argument("names", nargs="*", help="run only those whose names have one of these")
    parser.add_argument("--keep", type=Path, help="a folder for what the guides make")
    arguments = parser.parse_args()
    scenarios = [*delegation.scenarios(arguments.docs), *language_models.scenarios(arguments.docs)]
    table = Table("part of a guide", "result", "s")
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        for index, scenario in enumerate(scenarios):
            if arguments.names and not any(name in scenario.name for name in arguments.names):
                continue
            try:
                seconds = scenario.run(folder / f"{index}")
                table.add_row(scenario.name, "runs", f"{seconds:.0f}")
            except StepFailedError as error:
                failures.append(f"{scenario.name}: {error}")
                table.add_row(scenario.name, "fails", "")
    console = Console()
    for failure in failures:
        console.print(failure[-6000:], markup=False, highlight=False)
    console.print(table)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
