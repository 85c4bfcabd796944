"""Loads and runs mutants, and reports each: a process of its own, which a mutant may end.

Usage: worker FOLDER FIRST LAST. The files in FOLDER are attacked in turns. Before each mutant its
number is printed, after it what became of it; "finding" is what must not be.
"""

from __future__ import annotations

import contextlib
import io
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import rushlight as rl
from attack.mutants import Files, Mutant, make
from rushlight import _core
from rushlight.bundled.bundle import load_bundle
from rushlight.inspect import report_of
from rushlight.inspect.html import page
from rushlight.inspect.terminal import details
from rushlight.serialize.bundle import is_bundle
from rushlight.serialize.ptd import read_ptd
from rushlight.serialize.pte import read_pte

MEMORY = 64 << 20  # of a module
PROCESS_MEMORY = 8 << 30
_MAX_VALUES = 1 << 18  # of an input
# As tests/golden/cpu_engine_v7_cached_attention.pte needs it; other methods do not look at it.
_CACHE = _core.KvCache("float32", 2, 2, 8, 8, 2, 64)


def read_seeds(folder: Path) -> list[tuple[str, Files]]:
    """The files that are attacked: NAME.pte, and NAME.ptd if there is one."""
    faults = []
    for pte in sorted(folder.glob("*.pte")):
        ptd = pte.with_suffix(".ptd")
        faults.append(
            (pte.stem, Files(pte.read_bytes(), ptd.read_bytes() if ptd.exists() else None))
        )
    return faults


def mutant(seeds: list[tuple[str, Files]], number: int) -> tuple[str, Mutant]:
    """The name of what is attacked, and the mutant of this number."""
    name, files = seeds[number % len(seeds)]
    return name, make(files, number)


def attack(one: Mutant, number: int) -> str:
    """How far a mutant comes: "refused", "loaded" or "ran"."""
    pte, ptd = one.files
    _only_ours(lambda: read_pte(pte))
    if ptd is not None:
        _only_ours(lambda: read_ptd(ptd))
    if number % 4 == 0:
        _only_ours(lambda: _inspect(pte, number))
    if is_bundle(pte):
        _only_ours(lambda: load_bundle(pte).cases)
        _only_ours(lambda: load_bundle(pte).test(threads=1))
    module = _only_ours(lambda: rl.load(pte, data=ptd, threads=1, memory_limit=MEMORY))
    if module is None:
        return "refused"
    _only_ours(lambda: (repr(module), module.memory, module.state.snapshot()))
    ran = [_run(module[name]) for name in module.methods[:8]]
    return "ran" if any(ran) else "loaded"


def _run(method: Any) -> bool:
    """Whether a method runs: at its greatest sizes, and then at small ones, from what the first run
    has left."""
    method.set_kv_cache(_CACHE)
    calls = [inputs for most in (1 << 31, 3) if (inputs := _inputs(method.contract, most))]
    if not method.contract.inputs:
        calls = [[], []]
    runs = [_only_ours(lambda leaves=inputs: _call(method, leaves)) for inputs in calls]
    return any(runs)


def _only_ours(use: Any) -> Any:
    """What `use` gives; None if it is refused by an error of ours. Any other is a finding."""
    try:
        return use()
    except rl.Error:
        return None


def _call(method: Any, inputs: list[Any]) -> bool:
    args, kwargs = method.contract.in_spec.unflatten(iter(inputs))
    for leaf in method.call_flat(args, kwargs):
        if isinstance(leaf, np.ndarray):
            leaf.tobytes()
    return True


def _inspect(pte: bytes, number: int) -> None:
    from rich.console import Console

    report = report_of(pte)
    out = Console(file=io.StringIO(), width=100)
    for part in details(report):
        out.print(part)
    if number % 32 == 0:
        page(report)


def _inputs(contract: Any, most: int) -> list[Any] | None:
    """Ones of sizes up to `most`, if the contract allows them; None if they would be too many."""
    values: list[Any] = []
    for value in contract.inputs:
        if value.kind != "tensor":
            values.append(value.value if value.value is not None else _plain(value.kind))
            continue
        shape = [max(d.min, min(d.max, most)) for d in value.shape]
        if any(d < 0 for d in shape) or np.prod([float(d) for d in shape]) > _MAX_VALUES:
            return None
        try:
            values.append(np.ones(shape, value.dtype))
        except TypeError:
            return None  # NumPy does not know bfloat16
    return values


def _plain(kind: str) -> Any:
    return {"int": 1, "float": 1.0, "bool": True, "str": ""}.get(kind)


def main() -> None:
    folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (PROCESS_MEMORY, PROCESS_MEMORY))
    warnings.simplefilter("ignore")
    seeds = read_seeds(folder)
    for number in range(first, last):
        name, one = mutant(seeds, number)
        print(f"start {number} {name}: {one.way}", flush=True)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                told = attack(one, number)
        except Exception as error:
            told = f"finding {type(error).__name__}: {str(error)[:300]!r} {_place(error)}"
        print(f"done {number} {told}", flush=True)


def _place(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"


if __name__ == "__main__":
    main()
