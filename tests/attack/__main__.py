"""Attack the loader: mutants of files, each loaded and run in a process that may end.

    python -m tests.attack [--mutants 20000] [--first 0] [--runner build/sanitize/rushlight_runner]

The files are those of tests/golden and some that are exported for it; mutants damage the tables of
programs, payloads and data files, the JSON in named data, and bytes anywhere. With `--runner` each
is also run by that program, which may be built with sanitizers. Prints what became of the mutants,
and every finding with its number: a crash, a hang, or an error that is none of ours.
`--only NUMBER` does one again, `--write FOLDER` writes it there.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "python")]

from attack.seeds import write_seeds  # noqa: E402
from attack.worker import MEMORY, mutant, read_seeds  # noqa: E402

SECONDS = 100  # for one mutant; the slowest takes a few
SANITIZERS = {
    "ASAN_OPTIONS": "exitcode=99:detect_leaks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99:print_stacktrace=1",
}


def attack(folder: Path, first: int, last: int) -> Iterator[tuple[int, str, str]]:
    """(number, what was attacked and how, what became of it) of each mutant."""
    while first < last:
        for number, what, told in _run_worker(folder, first, last):
            yield number, what, told
            first = number + 1


def _run_worker(folder: Path, first: int, last: int) -> Iterator[tuple[int, str, str]]:
    """Until the worker ends, which is a finding if it was at work."""
    path = os.pathsep.join([str(TESTS), str(TESTS / "python")])
    worker = subprocess.Popen(
        [sys.executable, "-m", "attack.worker", str(folder), str(first), str(last)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert worker.stdout is not None and worker.stderr is not None
    os.set_blocking(worker.stderr.fileno(), False)
    begun: tuple[int, str] | None = None
    errors = b""
    for line in _lines(worker):
        errors = (errors + (worker.stderr.read() or b""))[-2000:]
        if line is None:
            worker.kill()
            worker.wait()
            assert begun is not None, "the worker does not start"
            yield *begun, f"finding hang: more than {SECONDS} s"
            return
        word, number, told = line.split(" ", 2)
        if word == "start":
            begun = int(number), told
        elif begun is not None:
            yield *begun, told
            begun = None
    status = worker.wait()
    errors = (errors + (worker.stderr.read() or b""))[-2000:]
    if begun is not None:
        yield *begun, f"finding ended with {status}: {errors.decode(errors='replace')}"
    elif status != 0:
        raise RuntimeError(f"the worker ended with {status}: {errors.decode(errors='replace')}")


def _lines(worker: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """What a worker prints; None if it prints nothing for too long."""
    assert worker.stdout is not None
    rest, seconds = b"", 5 * SECONDS  # its imports take longest
    while True:
        ready, _, _ = select.select([worker.stdout], [], [], seconds)
        if not ready:
            yield None
            return
        block = os.read(worker.stdout.fileno(), 1 << 16)
        if not block:
            return
        seconds = SECONDS
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.decode()


def run_runner(runner: Path, folder: Path, number: int) -> str:
    """What a runner makes of a mutant: "" or a finding."""
    _, one = mutant(read_seeds(folder), number)
    with tempfile.TemporaryDirectory() as temporary:
        pte, ptd = Path(temporary, "m.pte"), Path(temporary, "m.ptd")
        pte.write_bytes(one.files.pte)
        command = [str(runner), str(pte), "--memory-limit", str(MEMORY), "--threads", "1"]
        if one.files.ptd is not None:
            ptd.write_bytes(one.files.ptd)
            command += ["--data", str(ptd)]
        try:
            done = subprocess.run(
                command, capture_output=True, env={**os.environ, **SANITIZERS}, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"finding hang of the runner: more than {SECONDS} s"
    if done.returncode in (0, 1):
        return ""
    text = done.stderr.decode(errors="replace")[-3000:]
    return f"finding the runner ended with {done.returncode}: {text}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runner", type=Path)
    parser.add_argument("--only", type=int)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    first = options.first if options.only is None else options.only
    last = first + options.mutants if options.only is None else first + 1
    start, counts, findings = time.monotonic(), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="rushlight-attack-") as temporary:
        folder = Path(temporary)
        write_seeds(folder)
        if options.write is not None:
            _, one = mutant(read_seeds(folder), first)
            options.write.mkdir(parents=True, exist_ok=True)
            (options.write / "m.pte").write_bytes(one.files.pte)
            (options.write / "m.ptd").write_bytes(one.files.ptd or b"")
        for number, what, told in attack(folder, first, last):
            runner = run_runner(options.runner, folder, number) if options.runner else ""
            for text in (told, runner):
                if text.startswith("finding"):
                    findings += 1
                    print(f"{number} {what}: {text}", flush=True)
            counts[told.split(" ", 1)[0]] += 1
            if number % 1000 == 999:
                print(f"{number + 1 - first}: {dict(counts)}", file=sys.stderr, flush=True)
    print(
        f"{last - first} mutants: {counts['refused']} refused, {counts['loaded']} loaded, "
        f"{counts['ran']} ran, {findings} findings; {time.monotonic() - start:.0f} s"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
