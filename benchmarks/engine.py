"""The cpu backend beside ExecuTorch with XNNPACK, ONNX Runtime and OpenVINO.

Each engine is in a process of its own, and all take turns. A turn waits until the threads of the
one before are asleep, makes one call that is not counted, and then as many as take 50 ms or so.
Ratios are those of medians over the turns, the time of the peer to ours, with the lower end of the
95 % confidence interval (bootstrap over turns). The peaks are measured between the turns.

Results of all are held to eager's. Export is the lowering of the same traced program, in CPU
seconds. Loads are measured in fresh processes: the load itself, and from opening the file to the
first output, with the file in the page cache and with none of it there. Memory is the growth of the
resident size as a ratio of the file.

  python -m benchmarks engine --models minilm --peers openvino --threads 1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import ROOT
from tables import engine_tables
from tables.engine_tables import Loads, Speed

from rushlight.inspect.work import flops_of
from rushlight.peers import runtimes
from rushlight.peers.side import Side, SideError
from rushlight.peers.turns import take_turns

MODELS = ("mobilenet_v2", "resnet50", "vit_b16", "minilm", "gpt2")
PEERS = {
    "executorch": (".venv-executorch", "make peer"),
    "onnxruntime": (".venv-onnxruntime", "make onnxruntime"),
    "openvino": (".venv-backends", "make backends"),
}
TOLERANCE = 2e-4  # of the greatest output


def main() -> None:
    options = options_of(__doc__, models=MODELS)
    options.add_argument(
        "--loads", type=int, default=2, help="loads of each kind; 0: none (default: %(default)s)"
    )
    arguments = options.parse_args()
    pythons = pythons_of(arguments)
    speeds: list[Speed] = []
    loads: list[Loads] = []
    with ExitStack() as stack:
        work = stack.enter_context(common.workshop(arguments.work))
        makers = stack.enter_context(started(pythons))
        for name in arguments.models:
            files, exported = _lower_all(work, makers, name)
            flops = flops_of(files["rushlight"])
            speeds += _measure(work, pythons, name, files, flops, arguments)
            loads.append(_load(work, pythons, name, files, exported, arguments.loads))
    engine_tables.show(speeds, loads)
    if arguments.json is not None:
        engine_tables.write(arguments.json, speeds, loads)


def options_of(description: str | None, models: Sequence[str]) -> argparse.ArgumentParser:
    """The command line of a benchmark beside peers."""
    options = common.parser(description, models=models, repeat=30)
    options.add_argument(
        "--threads",
        type=lambda text: [int(n) for n in text.split(",")],
        default=[1, 2],
        help="numbers of threads, with commas (default: 1,2)",
    )
    options.add_argument(
        "--peers",
        type=lambda text: [name for name in text.split(",") if name],
        default=list(PEERS),
        help="who to measure beside, with commas (default: %(default)s)",
    )
    for name in ("onnxruntime", "openvino"):
        folder, target = PEERS[name]
        options.add_argument(
            f"--{name}",
            default=str(ROOT / folder / "bin" / "python"),
            metavar="PYTHON",
            help=f"Python with it (`{target}` makes the default one)",
        )
    return options


def pythons_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The interpreter of each engine's environment, ours first; ends the run if one is missing."""
    pythons = {"rushlight": sys.executable}
    for name in arguments.peers:
        if name not in PEERS:
            sys.exit(f"--peers {name!r}: there are {', '.join(PEERS)}")
        pythons[name] = getattr(arguments, name)
        if not Path(pythons[name]).exists():
            sys.exit(f"{pythons[name]} is missing: `{PEERS[name][1]}` makes it")
    return pythons


Sides = Mapping[str, Side]
Files = Mapping[str, str]


def side_of(python: str) -> Side:
    """A process that runs programs."""
    return Side(python, Path(runtimes.__file__), threads=2)


@contextmanager
def started(
    pythons: Mapping[str, str], runtime: Callable[[str], str] = str
) -> Iterator[dict[str, Side]]:
    """A process for each engine, with the runtime imported that `runtime` returns for its name."""
    with ExitStack() as stack:
        sides = {name: stack.enter_context(side_of(python)) for name, python in pythons.items()}
        for name, side in sides.items():
            side.call("start", runtime=runtime(name))
        yield sides


def _lower_all(
    work: common.Workshop, makers: Sides, name: str
) -> tuple[Files, dict[str, float | None]]:
    """The file of each engine, and the CPU seconds that it took; None for one that was there."""
    files: dict[str, str] = {}
    seconds: dict[str, float | None] = {}
    for by, side in makers.items():
        # A process lowers something before it is timed, so that its imports are done.
        _lower(work, side, by, "linear_relu")
        files[by], seconds[by] = _lower(work, side, by, name)
    return files, seconds


def _lower(work: common.Workshop, side: Side, by: str, name: str) -> tuple[str, float | None]:
    path = work.folder / f"{name}.{by}{runtimes.RUNTIMES[by].suffix}"
    options = {"backend": "cpu"} if by == "rushlight" else {}
    if path.exists() and by != "rushlight":
        return str(path), None
    print(f"{name}: lowering for {by}", file=sys.stderr, flush=True)
    program = work.traced(name)
    figures = side.call("lower", runtime=by, program=program, file=str(path), **options)
    return str(path), figures["cpu"]


def _measure(
    work: common.Workshop,
    pythons: Mapping[str, str],
    name: str,
    files: Files,
    flops: int,
    arguments: argparse.Namespace,
) -> list[Speed]:
    speeds = []
    with started(pythons) as sides:
        for threads in arguments.threads:
            for by, side in sides.items():
                side.call("open", runtime=by, file=files[by], data=work.data(name), threads=threads)
                if threads == arguments.threads[0]:
                    _check(work, side, name, by)
            peaks: list[dict[str, float]] = []

            def between(threads: int = threads, measured: list[Any] = peaks) -> None:
                measured.append(sides["rushlight"].call("peaks", threads=threads))

            times = take_turns(sides, arguments.repeat, between=between)
            best = {key: max(p[key] for p in peaks) for key in ("flops", "bandwidth")}
            speeds.append(Speed(name, threads, times, flops, best["flops"], best["bandwidth"]))
            engine_tables.say(speeds[-1])
    return speeds


def _check(work: common.Workshop, side: Side, name: str, by: str) -> None:
    """Exit if a result departs from eager's."""
    path = str(work.folder / "out.npz")
    side.call("outputs", path=path)
    with np.load(work.data(name)) as eager, np.load(path) as outputs:
        worst = np.abs(outputs["out0"] - eager["out0"]).max() / np.abs(eager["out0"]).max()
    if not worst <= TOLERANCE:
        sys.exit(f"{name}: {by} is {worst:.1e} of the greatest output off")


def _load(
    work: common.Workshop,
    pythons: Mapping[str, str],
    name: str,
    files: Files,
    exported: dict[str, float | None],
    repeat: int,
) -> Loads:
    """Cold and warm loads by turns, each in a fresh process."""
    rounds: dict[str, dict[bool, list[dict[str, float]]]]
    rounds = {by: {True: [], False: []} for by in files}
    for _ in range(repeat):
        for cold in (True, False):
            for by, file in files.items():
                with side_of(pythons[by]) as fresh:
                    arguments = {"runtime": by, "file": file, "data": work.data(name)}
                    figures = fresh.call("open", **arguments, threads=1, cold=cold)
                rounds[by][cold].append(figures)
    sizes = {
        by: sum(path.stat().st_size for path in runtimes.RUNTIMES[by].files(file))
        for by, file in files.items()
    }
    return Loads(name, rounds, sizes, exported)


if __name__ == "__main__":
    try:
        main()
    except SideError as error:
        sys.exit(str(error))
