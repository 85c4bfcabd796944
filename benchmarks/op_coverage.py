"""What of PyTorch's operator database runs here, and in ExecuTorch's portable library.

Every operator's calls (three in float32, one in integers or bools) are exported, run and compared
with eager; tests/ops/test_opinfo_path.py holds ours to that. ExecuTorch's outcomes are kept in
build/op_coverage, as its process is slow; remove the folder to measure them anew.

  python benchmarks/op_coverage.py --match 'linalg|special' --ours-only
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

from benchmarks import side  # noqa: E402

from ops import opinfo, opinfo_path  # noqa: E402
from ops.opinfo import Outcome  # noqa: E402

PEER = ROOT / "tests" / "peer" / "opinfo_side.py"
CACHE = ROOT / "build" / "op_coverage" / "executorch.json"
SUITE_CACHE = CACHE.with_name("executorch_suite.json")
SECONDS = 120  # for one call there
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
        timer = threading.Timer(SECONDS, self._side.kill)
        timer.start()
        try:
            found = self._side.call(command, **arguments)
        except side.SideError as error:
            if self._side.alive():
                return Outcome("broken", str(error)[-300:])
            self.close()
            return Outcome("broken", f"crash, or no answer in {SECONDS} s")
        finally:
            timer.cancel()
        return None if found is None else Outcome(*found)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._side is not None:
            self._side.close()
            self._side = None


def ours(names: Sequence[str]) -> Outcomes:
    """Outcomes of this runtime, by operator."""
    found = {}
    for name in names:
        found[name] = opinfo_path.outcomes(name, whole=True)
        print(f"\r{len(found)} of {len(names)} ", end="", file=sys.stderr, flush=True)
    return found


def executorchs(names: Sequence[str], peer: Peer) -> Outcomes:
    """Outcomes of ExecuTorch, by operator: kept ones where there are any."""
    kept = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in kept:
            continue
        count = len(list(opinfo.calls_to_export(name, whole=True)))
        kept[name] = [peer.call("outcome", name=name, index=i) for i in range(count)]
        CACHE.write_text(json.dumps(kept))
        print(f"\r{len(kept)} of {len(names)} ", end="", file=sys.stderr, flush=True)
    return {n: [Outcome(*o) for o in kept[n] if o is not None] for n in names}


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
                done.write_text(str(count))
    return sorted(folder.glob("*.pt2"))


def suite_outcomes(paths: Sequence[Path], peer: Peer) -> Outcomes:
    """What ExecuTorch's portable library makes of its own suite, by case."""
    kept = json.loads(SUITE_CACHE.read_text()) if SUITE_CACHE.exists() else {}
    for path in paths:
        if path.stem not in kept:
            kept[path.stem] = [peer.call("program", path=str(path))]
            SUITE_CACHE.write_text(json.dumps(kept))
            print(f"\r{len(kept)} of {len(paths)} ", end="", file=sys.stderr, flush=True)
    return {p.stem: [Outcome(*o) for o in kept[p.stem] if o is not None] for p in paths}


def summary(title: str, found: Outcomes) -> str:
    """Operators and calls by outcome."""
    calls = Counter(o.kind for some in found.values() for o in some)
    whole = sum(all(o.kind == "passes" for o in some) for some in found.values())
    part = sum(any(o.kind == "passes" for o in some) for some in found.values()) - whole
    share = calls["passes"] / max(sum(calls.values()), 1)
    return (
        f"{title:<12}{whole:>5} operators pass in all calls, {part} in some, of {len(found)}; "
        f"calls: {calls['passes']} pass ({share:.1%}), {calls['refused']} are refused at export, "
        f"{calls['broken']} fail"
    )


def refusals(found: Outcomes) -> str:
    """Refused calls and operators by the table's reasons."""
    by: dict[str, list[str]] = {}
    for name, some in found.items():
        for o in some:
            if o.kind == "refused":
                row = opinfo_path.row_of(o.reason)
                by.setdefault(row["reason"] if row else "not in the table", []).append(name)
    lines = [f"  {len(set(v)):4} operators, {len(v):4} calls: {k}" for k, v in by.items()]
    return "\n".join(["Refused here, by reason:", *lines])


def update(found: Mapping[str, Sequence[Outcome]]) -> None:
    """Write the lists of the table anew; its reasons and messages stay."""
    lines = []
    text = opinfo_path.TABLE.read_text(encoding="utf-8")
    lines += [line for line in text.splitlines() if line.startswith("#")]
    for row in opinfo_path.table():
        sections: dict[str, set[str]] = {s: set() for s in opinfo_path.SECTIONS}
        for name, some in found.items():
            refused = [o for o in some if o.kind == "refused"]
            if any(opinfo_path.row_of(o.reason) is row for o in refused):
                all_refused = len(refused) == len(some)
                sections["always" if all_refused else "sometimes"].add(name)
        if row["message"] == "the operators under `broken` fail":
            sections["broken"] = {n for n, s in found.items() if any(o.kind == "broken" for o in s)}
        lines += ["", f"- reason: {json.dumps(row['reason'])}"]
        lines += [f"  message: {json.dumps(row['message'])}"]
        for section, names in sections.items():
            if names:
                lines += [f"  {section}: >-", *_wrapped(sorted(names))]
    opinfo_path.TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    options.add_argument("--update", action="store_true", help="write the table's lists anew")
    options.add_argument("--executorch", type=Path, default=ROOT / ".venv-executorch/bin/python")
    given = options.parse_args()
    names = [n for n in sorted(opinfo.entries()) if re.search(given.match, n)]
    found = ours(names)
    print("\n" + summary("rushlight", found))
    if not given.ours_only:
        peer = Peer(given.executorch)
        theirs = executorchs(names, peer)
        print("\n" + summary("ExecuTorch", theirs))
        if not given.match:
            own = suite_outcomes(suite_cases(given.executorch), peer)
            print("\n" + summary("  own suite", own))
        peer.close()
    print(refusals(found))
    for name, some in found.items():
        for o in some:
            if o.kind == "broken":
                print(f"BROKEN {name}: {o.reason}")
    if given.update:
        update(found)


if __name__ == "__main__":
    main()
