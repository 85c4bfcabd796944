"""Every portable kernel beside eager PyTorch and ExecuTorch's portable kernel, on one thread.

  python benchmarks/kernels.py                                # 65536 elements, every dtype
  python benchmarks/kernels.py --size 16,256 --dtypes float32
  python benchmarks/kernels.py --size models --only conv --isa avx2

The engines take turns and the best of several rounds counts. Eager runs the functional operator, so
its time includes a dispatch (microseconds) and an allocation; ours writes into an out that exists.
ExecuTorch (float32 only; none with `--peer ''`) runs a program of that one operator, its time
includes a call from Python; `-` where it has no such kernel or refuses. A dtype that eager refuses
is left out; one that only we refuse is listed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from cases.executorch_cases import executorch_cases
from cases.kernel_cases import Case, Inputs, all_cases, untimed
from cases.linalg_cases import linalg_cases
from cases.model_cases import model_cases
from cases.order_cases import order_cases
from cases.pool_cases import pool_cases
from cases.signal_cases import signal_cases
from common import EXECUTORCH_SIDE, ROOT

from rushlight.files import write_text
from rushlight.peers.side import Side

sys.path.insert(0, str(ROOT))  # the operators' schemas and references are the tests'
from tests.ops import harness

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int32",
    "int64",
    "int16",
    "uint8",
    "int8",
    "bool",
)
ROUND_SECONDS = 0.004
SLOW = 3.0  # a ratio that is listed in the summary
EAGER_REFUSES = (RuntimeError, TypeError, ValueError, AssertionError)
Timed = Callable[[int], float]


@dataclass
class Row:
    """Microseconds of one case in one dtype and size."""

    op: str
    note: str
    dtype: str
    size: str
    ours: float
    eager: float
    executorch: float | None

    @property
    def ratio(self) -> float:
        """Ours over eager's."""
        return self.ours / self.eager

    def text(self) -> str:
        """A line of the table."""
        peer = "-" if self.executorch is None else f"{self.executorch:.1f}"
        return (
            f"{self.ratio:7.2f} {self.ours:10.1f} {self.eager:10.1f} {peer:>10}  "
            f"{self.size:>7} {self.dtype:<9} {self.op} {self.note}"
        )


class Call:
    """One call of an operator by all engines."""

    def __init__(self, case: Case, inputs: Inputs) -> None:
        self.op = case.op
        self.args = dense(case.make(inputs))
        try:
            self.function = harness.functional(case.op)
        except (AssertionError, AttributeError):  # torch has no operator of these arguments
            self.function = REFERENCES[case.op]
        self.results = harness.as_list(self.run())  # raises if eager refuses

    def run(self) -> Any:
        """Eager's result."""
        return apply(self.function, self.args)

    def eager(self, repeats: int) -> float:
        """Mean seconds of a call."""
        start = time.perf_counter()
        for _ in range(repeats):
            self.run()
        return (time.perf_counter() - start) / repeats

    def native(self, isa: str | None, threads: int = 1) -> Timed:
        """The same of our kernel."""
        schema = harness.out_schema(self.op)
        bound = [
            harness.native_argument(v) for v in harness.bind(schema, harness.Sample(*self.args))
        ]
        outs: list[Any] = []
        if any(a.is_out for a in schema.arguments):
            outs = [torch.empty_like(r) for r in self.results]
        if outs and "List" in str(schema.arguments[-1].type):
            outs = [outs]
        native = harness.native()
        return lambda repeats: float(
            native.time_kernel(
                self.op, [*bound, *outs], repeats, isa=isa, scratch=1 << 20, threads=threads
            )
        )

    def peer(self, side: Side, folder: Path) -> Timed | None:
        """The same of ExecuTorch; None if it does not run a program of this operator alone."""
        pte, data = folder / "one.pte", folder / "one.npz"
        try:
            write_program(self, pte, data)
            side.call("forget")
            side.call("latency", pte=str(pte), data=str(data), calls=1)
        except Exception:  # no such kernel there, or the operator is decomposed on the way
            return None
        return lambda repeats: min(
            side.call("latency", pte=str(pte), data=str(data), calls=repeats, warmup=0)
        )


REFERENCES = {cases.op: cases.reference for cases in harness.all_ops()}


def write_program(call: Call, pte: Path, data: Path) -> None:
    """A program of the one operator and its inputs.

    Raises:
        ValueError: the program does not consist of the operator.
    """
    import numpy as np

    import rushlight

    tensors = [v for v in flatten(call.args) if isinstance(v, torch.Tensor)]

    class One(torch.nn.Module):
        def forward(self, *tensors: torch.Tensor) -> Any:
            rest = iter(tensors)
            return apply(call.function, fill(call.args, rest))

    exported = torch.export.export(One(), tuple(tensors))
    program = rushlight.to_edge(exported).to_executorch()
    operators = [
        f"{o.name}.{o.overload}" for o in program.executorch_program.execution_plan[0].operators
    ]
    if operators != [call.op]:
        raise ValueError(f"{call.op} became {operators}")
    pte.write_bytes(program.buffer)
    np.savez(data, **{f"in{i}": t.numpy() for i, t in enumerate(tensors)})


def apply(function: Any, args: list[Any]) -> Any:
    """The call, arguments by name where the schema wants that."""
    schema = getattr(function, "_schema", None)
    names = [a.name for a in schema.arguments if a.kwarg_only] if schema is not None else []
    count = len(schema.arguments) - len(names) if schema is not None else len(args)
    return function(*args[:count], **dict(zip(names, args[count:], strict=False)))


def dense(values: Iterable[Any]) -> list[Any]:
    """The arguments, tensors with gaps or repeats in memory copied."""
    return [
        dense(v) if isinstance(v, list) else v.clone() if isinstance(v, torch.Tensor) else v
        for v in values
    ]


def flatten(values: Iterable[Any]) -> Iterable[Any]:
    """The arguments, those in lists too."""
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def fill(values: Iterable[Any], tensors: Any) -> list[Any]:
    """The arguments with the next tensors in the places of tensors."""
    return [
        fill(v, tensors)
        if isinstance(v, list)
        else next(tensors)
        if isinstance(v, torch.Tensor)
        else v
        for v in values
    ]


def best(calls: dict[str, Timed | None], rounds: int) -> dict[str, float]:
    """The engines' best microseconds, taking turns."""
    times: dict[str, float] = {}
    repeats: dict[str, int] = {}
    for name, call in calls.items():
        if call is not None:
            times[name] = max(call(1), 1e-7)
            repeats[name] = max(1, int(ROUND_SECONDS / times[name]))
    if max(times.values()) > 50 * ROUND_SECONDS:
        rounds = 1
    for _ in range(rounds):
        for name in times:
            times[name] = min(times[name], calls[name](repeats[name]))  # type: ignore[misc]
    return {name: 1e6 * seconds for name, seconds in times.items()}


def summary(rows: list[Row]) -> str:
    """Geometric mean and the slowest rows by size and dtype."""
    lines = []
    for size, dtype in dict.fromkeys((row.size, row.dtype) for row in rows):
        group = [row for row in rows if (row.size, row.dtype) == (size, dtype)]
        mean = math.exp(sum(math.log(row.ratio) for row in group) / len(group))
        counts = ", ".join(f"{sum(r.ratio > k for r in group)} over {k}" for k in (1.5, 3, 5))
        lines.append(
            f"{size:>7} {dtype:<9} {len(group):4} rows, geometric mean {mean:.2f}, {counts}"
        )
        for row in sorted(group, key=lambda row: -row.ratio)[:10]:
            if row.ratio > SLOW:
                lines.append(f"{'':18} {row.ratio:6.2f}  {row.op} {row.note}")
    return "\n".join(lines)


def sized_cases() -> list[Case]:
    """Every case whose number of elements can be chosen."""
    return [
        *all_cases(),
        *order_cases(),
        *pool_cases(),
        *signal_cases(),
        *executorch_cases(),
        *linalg_cases(),
    ]


def without_case() -> list[str]:
    """Operators of ops/ops.yaml that have neither a case nor a reason to have none."""
    timed = {case.op for case in sized_cases()}
    return [op for op in harness.listed() if op not in timed and untimed(op) is None]


def words(text: str) -> list[str]:
    """A list with commas."""
    return [word for word in text.split(",") if word]


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--size", type=words, default=["65536"], help="16, 256, 65536, 1048576, models"
    )
    parser.add_argument("--dtypes", type=words, default=list(DTYPES))
    parser.add_argument("--only", type=words, default=[], help="parts of the operator or its note")
    parser.add_argument("--isa", help="plain, avx2 or avx512 instead of the widest")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    parser.add_argument(
        "--peer",
        default=str(ROOT / ".venv-executorch" / "bin" / "python"),
        help="Python with ExecuTorch; empty for none",
    )
    return parser.parse_args()


def measure(
    arguments: argparse.Namespace, side: Side | None, folder: Path
) -> tuple[list[Row], Counter[str]]:
    """All rows, and what only our kernels refuse."""
    rows: list[Row] = []
    refused: Counter[str] = Counter()
    for size in arguments.size:
        cases = list(model_cases()) if size == "models" else sized_cases()
        for case in cases:
            if arguments.only and not any(
                word in f"{case.op} {case.note}" for word in arguments.only
            ):
                continue
            for dtype in arguments.dtypes:
                inputs = Inputs(65536 if size == "models" else int(size), getattr(torch, dtype))
                try:
                    call = Call(case, inputs)
                except EAGER_REFUSES:
                    continue
                calls: dict[str, Timed | None] = {
                    "ours": call.native(arguments.isa),
                    "eager": call.eager,
                }
                if side is not None and dtype == "float32":
                    calls["executorch"] = call.peer(side, folder)
                try:
                    seconds = best(calls, arguments.rounds)
                except (RuntimeError, TypeError) as error:
                    refused[f"{case.op} {case.note} {dtype}: {error}"] += 1
                    continue
                times = (seconds["ours"], seconds["eager"], seconds.get("executorch"))
                rows.append(Row(case.op, case.note, dtype, size, *times))
    return rows, refused


def main() -> None:
    """Prints the table and its summary."""
    arguments = options()
    torch.set_num_threads(1)
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        side = None
        if arguments.peer:
            side = stack.enter_context(Side(arguments.peer, EXECUTORCH_SIDE))
        rows, refused = measure(arguments, side, folder)
    head = f"{'ratio':>7} {'ours us':>10} {'eager us':>10} {'ExecuTorch':>10}  {'size':>7} dtype"
    print(head)
    for row in sorted(rows, key=lambda row: -row.ratio):
        print(row.text())
    print(summary(rows))
    for text in refused:
        print(f"refused: {text}")
    for op in without_case():
        print(f"no case: {op}")
    if arguments.json is not None:
        write_text(arguments.json, json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
