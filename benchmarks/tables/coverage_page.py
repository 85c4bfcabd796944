"""Writes docs/coverage.md from the outcomes of ``op_coverage.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch

from ops import opinfo_path
from ops.opinfo import Outcome

Outcomes = Mapping[str, Sequence[Outcome]]

EXECUTORCH = "1.4.1"
HEAD = """\
<!-- Written by `python -m benchmarks op_coverage --update`; do not edit. -->
# Coverage

What of PyTorch's own operator database, and of ExecuTorch's own operator test suite, runs here and
in ExecuTorch's portable library. Every call goes the whole way: a module that makes it is exported,
written as a program, loaded and run, and its results, their dtypes and shapes are compared with
eager's. A call *passes* if they agree, is *refused* if export says that it cannot be, and else
*fails*: an error or a crash at run time, no answer in {seconds} seconds, or another result. Calls
that eager itself refuses are not counted. Of results that are random or undefined only dtypes and
shapes are compared; whether random numbers are torch's is tested elsewhere.

PyTorch {torch}, ExecuTorch {executorch}, on one thread.
"""
DATABASE = """
## PyTorch's operator database

`torch.testing._internal` describes {operators} operators that take a dtype of ours. Three of each
one's samples in float32 and one in integers or bools go the whole way.
"""
SAMPLES = """
Besides, `tests/ops/test_opinfo_kernels.py` (in `make test-full`) takes all samples of the database
in every dtype apart to Core ATen, and runs each operator that it reaches over our kernel and over
eager's, on plain, AVX2 and AVX-512 instructions, with one thread and with several, and once more
under AddressSanitizer and UBSan. It fails if one differs.
"""
REFUSED = """
## Refused here

By reason, each with operators of which all calls are refused, and of which some are; other calls of
the latter pass. Their names stand in `tests/ops/opinfo_refused.yaml`, to which a test holds export.
"""
SUITE = """
## ExecuTorch's operator suite

`executorch.backends.test.suite.operators`, every test with every one of its parameters: the
{cases} cases that eager runs and torch.export captures, of {tests} tests.
"""


def counted(outcomes: Outcomes) -> Counter[str]:
    """Calls by outcome: passes, refused, or how they fail."""
    return Counter(kind_of(o) for some in outcomes.values() for o in some)


def kind_of(outcome: Outcome) -> str:
    """An outcome's column."""
    if outcome.kind != "broken":
        return outcome.kind
    how = outcome.reason.split(":")[0].split(",")[0]
    return {"result": "another result", "crash": "crash or hang"}.get(how, "error")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown's; numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n" + "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def calls_table(sides: Mapping[str, Outcomes]) -> str:
    """One row per runtime: its calls by outcome."""
    kinds = ("passes", "refused", "error", "another result", "crash or hang")
    rows = []
    for title, outcomes in sides.items():
        counts = counted(outcomes)
        total = counts.total()
        share = f"{counts['passes'] / max(total, 1):.1%}"
        rows.append([title, total, share, *(counts[k] for k in kinds)])
    return table(["calls", "all", "pass", *kinds], rows)


def operators_table(sides: Mapping[str, Outcomes]) -> str:
    """One row per runtime: its operators by how many of their calls pass."""
    rows = []
    for title, outcomes in sides.items():
        passing = [[o.kind == "passes" for o in some] for some in outcomes.values() if some]
        whole = sum(map(all, passing))
        part = sum(map(any, passing)) - whole
        rows.append([title, len(passing), whole, part, len(passing) - whole - part])
    return table(["operators", "all", "all calls pass", "some pass", "none passes"], rows)


def dtypes_table(sides: Mapping[str, Outcomes]) -> str:
    """Calls and passing calls by dtype."""
    counts = {
        title: Counter(
            (o.dtype, passing)
            for some in outcomes.values()
            for o in some
            for passing in {o.kind == "passes", None}
        )
        for title, outcomes in sides.items()
    }
    first = next(iter(counts.values()))
    dtypes = sorted({d for d, _ in first}, key=lambda d: -first[d, None])
    rows = [[d, first[d, None], *(c[d, True] for c in counts.values())] for d in dtypes]
    return table(["dtype", "calls", *(f"pass in {t}" for t in sides)], rows)


def refused_table(outcomes: Outcomes) -> str:
    """Refused operators and calls by the reasons of opinfo_refused.yaml."""
    by: dict[str, Counter[str]] = {}
    for some in outcomes.values():
        refused = [o for o in some if o.kind == "refused"]
        for reason, calls in Counter(map(reason_of, refused)).items():
            counts = by.setdefault(reason, Counter())
            counts["calls"] += calls
            counts["always" if len(refused) == len(some) else "sometimes"] += 1
    ordered = sorted(by.items(), key=lambda item: -item[1]["calls"])
    head = ["reason", "operators: always", "sometimes", "calls"]
    return table(head, ([r, c["always"], c["sometimes"], c["calls"]] for r, c in ordered))


def reason_of(refusal: Outcome) -> str:
    """The table's words for a refusal."""
    row = opinfo_path.row_of(refusal.reason)
    return str(row["reason"]) if row else "not in the table"


def failing(sides: Mapping[str, Outcomes]) -> str:
    """The calls that fail here, by name."""
    ours = next(iter(sides.values()))
    lines = [
        f"* `{name}`: {' '.join(o.reason.split())[:200]}\n"
        for name, some in ours.items()
        for o in some
        if o.kind == "broken"
    ]
    return "".join(["\nFailing here:\n\n", *lines]) if lines else ""


def samples_table(samples: Mapping[str, tuple[int, int]]) -> str:
    """Operators and samples by dtype."""
    return table(["dtype", "operators", "samples"], ([d, *n] for d, n in samples.items()))


def figures(database: Mapping[str, Outcomes], suite: Mapping[str, Outcomes]) -> str:
    """The text that the command prints: tables of outcomes, and every call that fails here."""
    ours = next(iter(database.values()))
    parts = [calls_table(database), operators_table(database), dtypes_table(database)]
    parts += [refused_table(ours), failing(database)]
    if suite:
        parts += ["\nExecuTorch's own suite:\n", calls_table(suite), failing(suite)]
    return "".join(parts)


def page(
    seconds: int,
    database: Mapping[str, Outcomes],
    samples: Mapping[str, tuple[int, int]],
    suite: Mapping[str, Outcomes],
) -> str:
    """The whole page; the first runtime of `database` and `suite` is ours.

    Args:
        seconds: how long ExecuTorch may take for a call.
        samples: operators and samples by dtype.
    """
    ours = next(iter(database.values()))
    cases = next(iter(suite.values()))
    tests = {name.rsplit(".", 1)[0] for name in cases}
    parts = [
        HEAD.format(seconds=seconds, torch=torch.__version__.split("+")[0], executorch=EXECUTORCH),
        DATABASE.format(operators=sum(map(bool, ours.values()))),
        calls_table(database),
        operators_table(database),
        dtypes_table(database),
        failing(database),
        SAMPLES,
        samples_table(samples),
        REFUSED,
        refused_table(ours),
        SUITE.format(cases=len(cases), tests=len(tests)),
        calls_table(suite),
        failing(suite),
    ]
    return "".join(parts)
