"""The share of PyTorch's operator database and of ExecuTorch's operator suite that runs here and
in ExecuTorch's portable library; written to docs/coverage.md.

Every operator's calls (three in float32, one in integers or bools) are exported, run and compared
with eager; tests/ops/test_opinfo_path.py and tests/e2e/executorch/test_executorch_suite.py hold
ours to that. ExecuTorch's outcomes are kept in build/op_coverage, as its process is slow; remove
the folder to measure them anew.

  python benchmarks/op_coverage.py --match 'linalg|special' --ours-only
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

import torch  # noqa: E402
from benchmarks.tables import coverage_page  # noqa: E402

from ops import opinfo, opinfo_path  # noqa: E402
from ops.opinfo import Outcome  # noqa: E402
from rushlight.files import write_text  # noqa: E402
from rushlight.peers import side  # noqa: E402

PEER = ROOT / "tests" / "peer" / "opinfo_side.py"
PAGE = ROOT / "docs" / "coverage.md"
CACHE = ROOT / "build" / "op_coverage" / "executorch.json"
SUITE_CACHE = CACHE.with_name("executorch_suite.json")
# For one call there: of its process's own time, so that a busy machine makes nothing fail, and on
# the clock, for one that waits for ever.
SECONDS = 120
SECONDS_ON_CLOCK = 3600
Outcomes = dict[str, list[Outcome]]


class Peer:
    """ExecuTorch's process; one that died or hangs is started anew, and the call has failed."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._side: side.Side | None = None

    def call(self, command: str, **arguments: Any) -> Outcome | None:
        """One command's outcome; None where eager refuses the call."""
        if self._side is None:
            self._side = side.Side(self._python, PEER)
        over = threading.Event()
        threading.Thread(target=_kill_when_late, args=(self._side, over), daemon=True).start()
        try:
            outcome = self._side.call(command, **arguments)
        except side.SideError as error:
            if self._side.alive():
                return Outcome("broken", str(error)[-300:])
            self.close()
            return Outcome("broken", f"crash, or no answer in {SECONDS} s")
        finally:
            over.set()
        return None if outcome is None else Outcome(*outcome)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._side is not None:
            self._side.close()
            self._side = None


def _kill_when_late(peer: side.Side, over: threading.Event) -> None:
    """Ends a process that takes longer over a call than it may; `over` says that the call ended."""
    begin, clock = peer.cpu_seconds(), time.monotonic()
    while not over.wait(1):
        late = time.monotonic() - clock > SECONDS_ON_CLOCK
        if late or peer.cpu_seconds() - begin > SECONDS:
            peer.kill()
            return


def ours(names: Sequence[str]) -> Outcomes:
    """Outcomes of this runtime, by operator."""
    outcomes = {}
    for name in names:
        outcomes[name] = opinfo_path.outcomes(name, whole=True)
        print(f"\r{len(outcomes)} of {len(names)} ", end="", file=sys.stderr, flush=True)
    return outcomes


def executorchs(names: Sequence[str], peer: Peer) -> Outcomes:
    """Outcomes of ExecuTorch, by operator: kept ones where there are any."""
    kept = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in kept:
            continue
        calls = enumerate(opinfo.calls_to_export(name, whole=True))
        kept[name] = [_there(peer, name, index, call) for index, call in calls]
        write_text(CACHE, json.dumps(kept))
        print(f"\r{len(kept)} of {len(names)} ", end="", file=sys.stderr, flush=True)
    return {n: [Outcome(*o) for o in kept[n] if o is not None] for n in names}


def _there(peer: Peer, name: str, index: int, call: opinfo.Call) -> Outcome | None:
    outcome = peer.call("outcome", name=name, index=index)
    return outcome and outcome._replace(dtype=str(call.dtype).removeprefix("torch."))


def suite_cases(python: Path) -> list[Path]:
    """The cases of ExecuTorch's operator suite, written by its process where they are missing."""
    folder = CACHE.parent / "suite"
    done = folder / "done"
    if not done.exists():
        from filelock import FileLock

        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(str(folder.with_suffix(".lock"))), side.Side(python, PEER) as peer:
            if not done.exists():
                count = peer.call("suite", folder=str(folder))
                write_text(done, str(count))
    return sorted(folder.glob("*.pt2"))


def our_suite_outcomes(paths: Sequence[Path]) -> Outcomes:
    """The outcomes of ExecuTorch's suite in this runtime, by case."""
    outcomes = {}
    for path in paths:
        outcomes[path.stem] = [opinfo_path.program_outcome(torch.export.load(path))]
        print(f"\r{len(outcomes)} of {len(paths)} ", end="", file=sys.stderr, flush=True)
    return outcomes


def sample_counts(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Operators of the database and samples that eager runs, by dtype."""
    counts: dict[str, tuple[int, int]] = {}
    for dtype in opinfo.DTYPES:
        taking = [n for n in names if dtype in opinfo.dtypes_of(n)]
        samples = sum(_runs(call) for name in taking for call in opinfo.samples(name, dtype))
        counts[str(dtype).removeprefix("torch.")] = len(taking), samples
    return counts


def _runs(call: opinfo.Call) -> bool:
    try:
        call.run()
    except Exception:  # the database has samples that a build of torch cannot run
        return False
    return True


def suite_outcomes(paths: Sequence[Path], peer: Peer) -> Outcomes:
    """The outcomes of ExecuTorch's suite in its own portable library, by case."""
    kept = json.loads(SUITE_CACHE.read_text()) if SUITE_CACHE.exists() else {}
    for path in paths:
        if path.stem not in kept:
            kept[path.stem] = [peer.call("program", path=str(path))]
            write_text(SUITE_CACHE, json.dumps(kept))
            print(f"\r{len(kept)} of {len(paths)} ", end="", file=sys.stderr, flush=True)
    return {p.stem: [Outcome(*o) for o in kept[p.stem] if o is not None] for p in paths}


def update(outcomes: Mapping[str, Sequence[Outcome]]) -> None:
    """Write the lists of the table anew; its reasons and messages stay."""
    lines = []
    text = opinfo_path.TABLE.read_text(encoding="utf-8")
    lines += [line for line in text.splitlines() if line.startswith("#")]
    for row in opinfo_path.table():
        sections: dict[str, set[str]] = {s: set() for s in opinfo_path.SECTIONS}
        for name, some in outcomes.items():
            refused = [o for o in some if o.kind == "refused"]
            if any(opinfo_path.row_of(o.reason) is row for o in refused):
                all_refused = len(refused) == len(some)
                sections["always" if all_refused else "sometimes"].add(name)
        if row["message"] == "the operators under `broken` fail":
            sections["broken"] = {
                n for n, s in outcomes.items() if any(o.kind == "broken" for o in s)
            }
        lines += ["", f"- reason: {json.dumps(row['reason'])}"]
        lines += [f"  message: {json.dumps(row['message'])}"]
        for section, names in sections.items():
            if names:
                lines += [f"  {section}: >-", *_wrapped(sorted(names))]
    write_text(opinfo_path.TABLE, "\n".join(lines) + "\n")


def _wrapped(names: Sequence[str]) -> list[str]:
    lines = ["   "]
    for name in names:
        if len(lines[-1]) + len(name) + 1 > 100:
            lines.append("   ")
        lines[-1] += f" {name}"
    return lines


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--match", default="", help="only operators whose name has this pattern")
    options.add_argument("--ours-only", action="store_true", help="without ExecuTorch")
    options.add_argument(
        "--update", action="store_true", help="write opinfo_refused.yaml's lists and the page anew"
    )
    options.add_argument("--executorch", type=Path, default=ROOT / ".venv-executorch/bin/python")
    arguments = options.parse_args()
    names = [n for n in sorted(opinfo.entries()) if re.search(arguments.match, n)]
    database: dict[str, Outcomes] = {"Rushlight": ours(names)}
    suite: dict[str, Outcomes] = {}
    if not arguments.ours_only:
        peer = Peer(arguments.executorch)
        database["ExecuTorch"] = executorchs(names, peer)
        if not arguments.match:
            cases = suite_cases(arguments.executorch)
            suite["Rushlight"] = our_suite_outcomes(cases)
            suite["ExecuTorch"] = suite_outcomes(cases, peer)
        peer.close()
    print("\n" + coverage_page.figures(database, suite))
    if arguments.update:
        update(database["Rushlight"])
    if arguments.update and suite:
        samples = sample_counts(names)
        write_text(PAGE, coverage_page.page(SECONDS, database, samples, suite))


if __name__ == "__main__":
    main()
