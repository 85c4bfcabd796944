"""Writes docs/operators.md, the table of operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import torch
from torch._ops import OpOverload

from codegen.kernel_entries import Entry
from codegen.kernel_manifest import group_of
from rushlight.edge.decompositions import decomposition_table
from rushlight.ir.dialect import VIEW_NAMES
from rushlight.ir.executorch_kernels import NAMES
from rushlight.ir.operators import SCALAR_RESULTS, out_variant, runtime_name

HEAD = """\
<!-- Written by codegen/kernel_table.py from ops/ops.yaml; do not edit. -->
# Operators

What a program may call, as programs name it. `rushlight ops` prints this table, and export refuses
what is not in it: an operator without kernel, or a tensor of a dtype that the kernel does not take.

* **dtypes**: what the input tensors may be (the results, of an operator that takes none); arguments
  of which something else is true follow by name. `real` is `integral` (uint8, int8 to int64) and
  `floating` (float16, bfloat16, float32, float64); `unsigned` is uint16 to uint64; `any` is
  whatever has a size, `any8` whatever has at most 8 bytes an element. Results have the dtype that
  eager gives.
* **ExecuTorch**: whether ExecuTorch 1.4.1 registers a kernel of the name, so that a file with it
  runs there too.
* **set**: `core` is what torch tags as Core ATen, `edge` and `prim` are ExecuTorch's operators on
  layouts and on numbers.

A kernel may be joined by others of its operator that are made for certain dtypes and dim orders:
see [runtime](runtime.md).
"""
NOT_HERE = """
## Core ATen operators without a kernel of their own

Of the {total} functional operators that torch tags as core, {here} have a kernel above. The others:

| operator | what becomes of it |
|---|---|
"""
DECOMPOSED = """
## Decomposed operators

These are written with operators of the tables above before anything else sees the program:
torch's own decompositions, but for those that `rushlight/edge/decompositions.py` names. An operator
that stands here and above is decomposed unless `EdgeCompileConfig(preserve_ops=[...])` keeps it.

"""


def table(entries: Iterable[Entry]) -> Iterator[str]:
    """One section for each family."""
    by_family = sorted(entries, key=lambda entry: (entry.family, entry.op))
    for family, rows in groupby(by_family, key=lambda entry: entry.family):
        yield f"\n### {family}\n"
        yield "| operator | dtypes | library | ExecuTorch | set |\n|---|---|---|---|---|"
        for entry in rows:
            runs = "yes" if entry.op in NAMES else "no"
            dtypes = [entry.dtypes, *(f"{a}: {d}" for a, d in entry.arguments.items())]
            text = "; ".join(dtypes).replace("+", ", ")
            yield f"| `{entry.op}` | {text} | portable | {runs} | {group_of(entry.op)} |"


def core_operators() -> list[OpOverload]:
    """All functional operators that torch tags as core."""
    operators = []
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            operator = getattr(packet, overload)
            if torch.Tag.core in operator.tags and not operator._schema.is_mutable:
                operators.append(operator)
    return sorted(operators, key=runtime_name)


def kernel_of(operator: OpOverload) -> str | None:
    """The name of the kernel for an operator."""
    if operator in SCALAR_RESULTS:
        return SCALAR_RESULTS[operator]
    variant = out_variant(operator)
    return runtime_name(variant) if variant is not None else None


def fate(operator: OpOverload, decomposed: Any, kernels: Sequence[str]) -> str:
    """The text that says how an operator without a kernel of its own is exported."""
    name = operator._schema.name
    if operator in decomposed:
        return "decomposed"
    overload = operator._schema.overload_name
    copy = f"{name}_copy.{overload}_out" if overload else f"{name}_copy.out"
    if name in VIEW_NAMES and copy in kernels:
        return f"runs as `{copy}`, or as a view that moves no byte"
    if name in ("aten::clone", "aten::_to_copy"):
        return "runs as `dim_order_ops`"
    return "refused at export, with the Python line"


def document(entries: Sequence[Entry]) -> str:
    """The text of docs/operators.md."""
    kernels = [entry.op for entry in entries]
    decomposed = decomposition_table()
    core = core_operators()
    here = [operator for operator in core if kernel_of(operator) in kernels]
    rest = [operator for operator in core if operator not in here]
    runs = sum(op in NAMES for op in kernels)
    counts = f"{len(kernels)} operators have a kernel; ExecuTorch registers {runs} of them."
    # If torch.distributed is imported, torch's rules contain its collectives too.
    here_too = [target for target in decomposed if "c10d" not in target.namespace]
    names = sorted({target._schema.name.partition("::")[2] for target in here_too})
    return "\n".join(
        [
            HEAD,
            f"{counts}\n\n## Kernels",
            *table(entries),
            NOT_HERE.format(total=len(core), here=len(here))
            + "\n".join(f"| `{runtime_name(o)}` | {fate(o, decomposed, kernels)} |" for o in rest),
            DECOMPOSED + ", ".join(f"`{name}`" for name in names if not name.startswith("_")) + ".",
            "",
        ]
    )
