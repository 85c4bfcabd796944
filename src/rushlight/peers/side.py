"""A peer in its own process: the server loop it runs, and the client that talks to it.

Runtimes that are compared live in separate processes (and may live in separate Python
environments), stay up for a whole benchmark and answer one request at a time, so that runs can
be interleaved. A request is one line of JSON ``{"command": name, "arguments": {...}}``, the
answer one line ``{"result": ...}`` or ``{"error": text}``. Needs only the standard
library, and NumPy to read inputs: scripts in any environment may import it by its path.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")
Command = Callable[..., Any]
Call = Callable[[], Any]


def main(commands: Mapping[str, Command], usage: str | None) -> None:
    """Run the command line of a peer's script: ``serve``, or ``COMMAND name=value ...``."""
    if sys.argv[1:] == ["serve"]:
        serve(commands)
    elif len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(usage)
    else:
        print(commands[sys.argv[1]](**dict(pair.split("=", 1) for pair in sys.argv[2:])))


def serve(commands: Mapping[str, Command]) -> None:
    """Answer requests from standard input until it ends.

    Whatever the commands print goes to standard error, so that it cannot be mistaken for an
    answer; that holds for native libraries too.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": commands[request["command"]](**request["arguments"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def read_inputs(path: str | Path) -> list[Any]:
    """The arrays ``in0``, ``in1`` ... of an .npz."""
    import numpy as np

    with np.load(path) as arrays:
        count = sum(name.startswith("in") for name in arrays)
        return [arrays[f"in{i}"] for i in range(count)]


def measure_once(call: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """The result of `call`, and its CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return result, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def measure_calls(call: Call, calls: int, warmup: int = 1) -> list[float]:
    """Wall time of each of `calls` calls, in seconds, after `warmup` unmeasured ones."""
    for _ in range(warmup):
        call()
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times


def measure_loop(call: Call, calls: int) -> float:
    """Mean wall time of a call in seconds, over one loop (for calls of microseconds)."""
    for _ in range(min(calls, 100)):
        call()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def status_bytes(field: str) -> int:
    """One memory field of /proc/self/status (VmRSS, VmHWM, RssAnon), in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def measure_load(load: Callable[[], Call]) -> dict[str, float]:
    """Time and memory of `load`, which returns the call of the loaded program.

    Returns:
        seconds: wall time of the load; first: the same until after the first call. In bytes, and
        only if the system reports it (Linux): resident: growth of the resident size while loading;
        peak: growth of its peak while loading; run_peak: the same until after the first call;
        anonymous: growth, after that call, of resident pages without a file.
    """
    clear = Path("/proc/self/clear_refs")
    if not clear.exists():
        return _timed_load(load)[1]
    clear.write_text("5")  # resets the peak of the resident size
    resident, anonymous = status_bytes("VmRSS"), status_bytes("RssAnon")
    memory = {}

    def loaded() -> None:
        memory["resident"] = status_bytes("VmRSS") - resident
        memory["peak"] = status_bytes("VmHWM") - resident

    kept, seconds = _timed_load(load, loaded)
    memory["run_peak"] = status_bytes("VmHWM") - resident
    memory["anonymous"] = status_bytes("RssAnon") - anonymous
    del kept
    return {**seconds, **memory}


def _timed_load(
    load: Callable[[], Call], loaded: Callable[[], None] = lambda: None
) -> tuple[Call, dict[str, float]]:
    """The call, and the seconds; `loaded` is called before the first call and not counted."""
    begin = time.perf_counter()
    call = load()
    seconds = time.perf_counter() - begin
    loaded()
    begin = time.perf_counter()
    call()
    return call, {"seconds": seconds, "first": seconds + time.perf_counter() - begin}


def drop_pages(files: Iterable[str | Path]) -> None:
    """Remove these files from the page cache, so that they are read from the disk; works only on
    Linux, and for files that no process has mapped."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in files:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)  # only clean pages can be removed
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def measure_sizes(load: Callable[[], Callable[[int], Any]], sizes: Sequence[int]) -> list[int]:
    """The growth in bytes of resident memory without a file, since before `load`, after a call of
    its result with each of `sizes`."""
    before = status_bytes("RssAnon")
    call = load()
    grown = []
    for size in sizes:
        call(size)
        grown.append(status_bytes("RssAnon") - before)
    return grown


class SideError(RuntimeError):
    """A command failed on the other side; the text is its traceback."""

    @property
    def reason(self) -> str:
        """The traceback's last line: the error itself."""
        lines = [line.strip() for line in str(self).splitlines() if line.strip()]
        return lines[-1] if lines else "no reason given"


class Side:
    """A running peer process; a context manager.

    Args:
        python: the interpreter of the environment to run in.
        script: a script that calls `serve`.
        threads: how many threads its native code may use.
        environment: further environment variables.
    """

    def __init__(
        self,
        python: str | Path,
        script: Path,
        *,
        threads: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        variables = dict(os.environ)
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            variables[name] = str(threads)
        variables["PYTHONWARNINGS"] = "ignore"
        variables.update(environment or {})
        # `close` closes it; output of native libraries may not be valid text.
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(python), str(script), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=variables,
        )

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, command: str, **arguments: Any) -> Any:
        """Run one command in the process and return its result.

        Raises:
            SideError: the command raised, or the process has ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        request = json.dumps({"command": command, "arguments": arguments})
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status = self._process.wait()
            raise SideError(f"{command}: the process ended (status {status})\n{self._log_tail()}")
        answer = json.loads(line)
        if "error" in answer:
            raise SideError(f"{command}:\n{answer['error']}")
        return answer["result"]

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def cpu_seconds(self) -> float:
        """The CPU seconds of the process so far, of all threads together; 0 if it has ended."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """End the process at once, also while a call waits for it: that call raises."""
        self._process.kill()

    def close(self) -> None:
        """End the process and wait for it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._log.close()

    def _log_tail(self, lines: int = 20) -> str:
        self._log.seek(0)
        return "".join(self._log.readlines()[-lines:])
