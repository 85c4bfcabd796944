"""The overhead of one call of a delegate: programs of 1 and of 101 delegates in a row, whose
backend only looks at its arguments, two tensors of four numbers.

The difference, by 100, is the price of one more call. Backends: one in C++, one behind the C struct
of rl_backend_v1.h, one in Python; and the same in C++ for real ExecuTorch, called from Python (its
wheel has no library to link a program with; the difference leaves that call out). Compiles what it
needs with g++ and gcc; wants `make ext` first.

  python benchmarks/delegate_call.py --repeat 5 --calls 20000
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import common
import numpy as np

from rushlight import runtime
from rushlight.schema import program as fb
from rushlight.schema.common import ScalarType
from rushlight.serialize.file import PTEFile
from rushlight.serialize.pte import write_pte

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).resolve().parent / "delegate_call"
BUILD = ROOT / "build" / "dev"
EXTRA = 100
SHORT, LONG = 1, 1 + EXTRA


def main() -> None:
    options = common.parser(__doc__, models=(), repeat=5)
    options.add_argument("--calls", type=int, default=20_000, help="runs in a measurement")
    arguments = options.parse_args()
    with common.workshop(arguments.work) as work:
        programs = {n: _write_program(n, work.folder) for n in (SHORT, LONG)}
        callers = _callers(work.folder, Path(arguments.executorch), programs, arguments.calls)
        times = {name: [] for name in callers}
        for _ in range(arguments.repeat):
            for name, measure in callers.items():
                times[name].append(measure())
    report = common.Report("One call of a delegate", ["backend", "ns, median", "ns, best"])
    for name, slopes in times.items():
        median, best = common.median(slopes), min(slopes)
        report.add(name, f"{median:.0f}", f"{best:.0f}", backend=name, median=median, best=best)
    report.finish(arguments.json)


def _write_program(n: int, folder: Path) -> Path:
    """A program of `n` delegates, each on the result of the one before."""
    tensors = [
        fb.Tensor(
            scalar_type=ScalarType.FLOAT,
            sizes=[4],
            dim_order=[0],
            allocation_info=fb.AllocationDetails(1, 16 * i),
        )
        for i in range(n + 1)
    ]
    place = fb.BackendDelegateDataReference(fb.DataLocation.SEGMENT, 0)
    plan = fb.ExecutionPlan(
        name="forward",
        container_meta_type=fb.ContainerMetadata("", ""),
        values=[fb.EValue(tensor) for tensor in tensors],
        inputs=[0],
        outputs=[n],
        chains=[
            fb.Chain(
                instructions=[fb.Instruction(fb.DelegateCall(i, [i, i + 1])) for i in range(n)]
            )
        ],
        delegates=[fb.BackendDelegate("Nothing", place) for _ in range(n)],
        non_const_buffer_sizes=[0, 16 * (n + 1)],
    )
    path = folder / f"delegates_{n}.pte"
    path.write_bytes(write_pte(PTEFile(fb.Program(execution_plan=[plan]), delegate_blobs=[b"x"])))
    return path


def _callers(
    folder: Path, peer: Path, programs: dict[int, Path], calls: int
) -> dict[str, Callable[[], float]]:
    """Name to what measures the nanoseconds of one more call."""
    runner, plugin = _build_ours(folder)

    def compiled(*arguments: str) -> float:
        short, long = (float(_run(runner, programs[n], calls, *arguments)) for n in (SHORT, LONG))
        return (long - short) / EXTRA

    callers: dict[str, Callable[[], float]] = {
        "rushlight, C++": compiled,
        "rushlight, C struct": lambda: compiled(str(plugin)),
        "rushlight, Python": lambda: _measure_python(programs, max(calls // 20, 100)),
    }
    if peer.exists():
        library = _build_executorch(folder, peer)

        def executorch() -> float:
            script = FOLDER / "executorch_calls.py"
            files = [programs[n] for n in (SHORT, LONG)]
            short, long = map(float, _run(peer, script, library, calls, *files).split())
            return (long - short) / EXTRA

        callers["ExecuTorch, C++"] = executorch
    else:
        print(f"without ExecuTorch: {peer} is missing; `make peer` makes it", file=sys.stderr)
    return callers


def _build_ours(folder: Path) -> tuple[Path, Path]:
    runner, plugin = folder / "delegate_calls", folder / "libnothing.so"
    include = BUILD / "include"
    libraries = [BUILD / "librushlight_module.a"]
    libraries += [BUILD / "cpp" / "kernels" / "portable" / "librushlight_kernels_portable.a"]
    libraries += [BUILD / "librushlight_core.a"]
    flags = ["-O2", "-DNDEBUG", "-std=c++17", f"-I{include}"]
    source = FOLDER / "rushlight.cpp"
    _run("g++", *flags, source, *libraries, "-pthread", "-ldl", "-o", runner)
    header = f"-I{ROOT / 'cpp' / 'delegate'}"
    _run("gcc", "-O2", "-fPIC", "-shared", header, FOLDER / "plugin.c", "-o", plugin)
    return runner, plugin


def _build_executorch(folder: Path, peer: Path) -> Path:
    """Linked with the library of the wheel that holds the table of its backends."""
    code = "import executorch; print(list(executorch.__path__)[0])"
    package = Path(_run(peer, "-c", code).strip())
    table = package / "backends" / "qualcomm" / "libqnn_executorch_backend.so"
    library = folder / "libnothing_executorch.so"
    flags = ["-O2", "-DNDEBUG", "-std=c++17", "-fPIC", "-shared", f"-I{package / 'include'}"]
    flags += [f"-I{package / 'include/executorch/runtime/core/portable_type/c10'}"]
    flags += ["-DC10_USING_CUSTOM_GENERATED_MACROS"]
    _run("g++", *flags, FOLDER / "executorch.cpp", table, "-o", library)
    return library


def _measure_python(programs: dict[int, Path], calls: int) -> float:
    class Nothing:
        def init(self, context: runtime.BackendContext) -> None: ...

        def execute(self, context: runtime.BackendContext, handle: None, args: tuple) -> None: ...

    runtime.register_backend("Nothing", Nothing)
    ones = np.ones(4, np.float32)
    seconds = {}
    for n, path in programs.items():
        module = runtime.load(path, threads=1)
        for _ in range(calls // 10):
            module(ones)
        begin = time.perf_counter()
        for _ in range(calls):
            module(ones)
        seconds[n] = (time.perf_counter() - begin) / calls
        module.close()
    runtime.unregister_backend("Nothing")
    return (seconds[LONG] - seconds[SHORT]) / EXTRA * 1e9


def _run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
