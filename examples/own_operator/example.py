"""From an operator of one's own to an app: a rotary embedding in Python, C and Java.

    python examples/own_operator/example.py

It trains a small language model, exports it twice, with the operator and with PyTorch's own
operators in its place, builds a runtime that has only what the program uses, runs the program from
Python, C and Java, compares the results bit by bit, and prints sizes and times beside the
decomposed form. It needs CMake, a compiler for C and C++, and, for Java, a JDK.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from rotary import LENGTH, Model, reference, rotary, train

import rushlight as rl
from rushlight.runtime import include_path

HERE = Path(__file__).resolve().parent
RUNS = 200


def run(*command: str | Path) -> str:
    """The output of a command."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def export(folder: Path, library: Path, iterations: int) -> None:
    """Train the model, and write own.pte and decomposed.pte."""
    torch.manual_seed(0)
    decomposed, own = Model(reference), Model(rotary)
    print(f"{iterations} iterations, loss {train(decomposed, iterations):.2f}")
    own.load_state_dict(decomposed.state_dict())
    tokens = torch.randint(256, (1, 100))
    shapes = ({1: torch.export.Dim("length", min=2, max=LENGTH)},)
    for name, model, kernels in (("own", own, [library]), ("decomposed", decomposed, [])):
        program = rl.export(
            model.eval(), (tokens,), backend="cpu", dynamic_shapes=shapes, kernels=kernels
        )
        program.save(folder / f"{name}.pte", quiet=True)


def build(folder: Path) -> None:
    """Build runtimes, programs and the kernel's library into `folder`/build."""
    options = ["-D", f"rushlight_DIR={rl.cmake_dir()}", "-D", f"MODELS={folder}"]
    options += ["-D", f"Python3_EXECUTABLE={sys.executable}"]
    run("cmake", "-S", HERE, "-B", folder / "build", *options)
    targets = ["main_own", "main_decomposed"]
    targets += ["main_jar", "rushlight_jni"] if shutil.which("javac") else []
    run("cmake", "--build", folder / "build", "--parallel", "2", "--target", *targets)


def build_kernel(folder: Path) -> Path:
    """The kernel as a shared library, for export and for Python and Java."""
    library = folder / "rotary.so"
    compiler = shutil.which("c++") or sys.exit("there is no c++: install a C++17 compiler")
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", "-I", include_path()]
    run(compiler, *flags, HERE / "rotary.cpp", "-o", library)
    return library


def measure(modules: dict[str, rl.Module], tokens: np.ndarray) -> dict[str, float]:
    """The median microseconds of a run of each module, in turns."""
    times: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(RUNS):
        for name, module in modules.items():
            begin = time.perf_counter()
            module(tokens)
            times[name].append((time.perf_counter() - begin) * 1e6)
    return {name: sorted(taken)[RUNS // 2] for name, taken in times.items()}


def compare(folder: Path, library: Path) -> None:
    """Run the program from every language, and print what came of it."""
    tokens = np.random.default_rng(0).integers(0, 256, (1, 200))
    tokens.tofile(folder / "tokens.bin")
    modules = {
        "own": rl.load(folder / "own.pte", threads=1, kernels=[library]),
        "decomposed": rl.load(folder / "decomposed.pte", threads=1),
    }
    wanted = np.asarray(modules["own"](tokens))
    apart = np.abs(wanted - modules["decomposed"](tokens)).max()
    print(f"largest difference from the decomposed form: {apart:.1e}")
    made = folder / "build"
    commands = {"C": [made / "main_own", folder / "own.pte"]}
    if shutil.which("javac"):
        java = ["java", f"-Drushlight.library={made / 'librushlight_jni.so'}", "-cp"]
        commands["Java"] = [*java, made / "main.jar", "Main", folder / "own.pte", library]
    for language, command in commands.items():
        logits = folder / f"{language}.bin"
        taken = run(*command, folder / "tokens.bin", logits, str(RUNS)).strip()
        same = logits.read_bytes() == wanted.tobytes()
        print(f"{language}: {'the same bits as Python' if same else 'OTHER RESULTS'}, {taken} us")
        if not same:
            sys.exit(1)
    times = measure(modules, tokens)
    for form in ("own", "decomposed"):
        program = (folder / f"{form}.pte").stat().st_size
        app = (made / f"main_{form}").stat().st_size
        print(f"{form}: {times[form]:.0f} us in Python, {program:,} bytes, app {app:,} bytes")


def main() -> None:
    """Do all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/own_operator"))
    parser.add_argument("--iterations", type=int, default=300)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    library = build_kernel(folder)
    export(folder, library, arguments.iterations)
    build(folder)
    compare(folder, library)


if __name__ == "__main__":
    main()
