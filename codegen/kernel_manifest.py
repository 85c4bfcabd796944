"""The manifest of kernels, as JSON in the Python package; export checks programs against it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import torch

from codegen.kernel_entries import CLASSES, Entry
from rushlight.ir.operators import SCALAR_RESULTS, out_variant, runtime_name

# The sets of operators outside ATen, by namespace: those of the Edge dialect, and those on numbers.
GROUPS = {"dim_order_ops": "edge", "executorch_prim": "prim"}


def functional_of(op: str) -> Any:
    """torch's functional overload that the kernel `op` runs; None if torch does not know it."""
    namespace, _, rest = op.partition("::")
    name = rest.partition(".")[0].removesuffix("_")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    overloads = [getattr(packet, o) for o in packet.overloads()] if packet is not None else []
    for overload in overloads:
        if SCALAR_RESULTS.get(overload) == op:
            return overload
        variant = out_variant(overload)
        if variant is not None and op in (runtime_name(variant), f"{overload._schema.name}_"):
            return overload
    return None


def group_of(op: str) -> str:
    """The set that an operator belongs to: "core" (of ATen), "edge", "prim" or "beyond core"."""
    namespace = op.partition("::")[0]
    if namespace in GROUPS:
        return GROUPS[namespace]
    functional = functional_of(op)
    core = functional is not None and torch.Tag.core in functional.tags
    return "core" if core else "beyond core"


def manifest(entries: Iterable[Entry]) -> str:
    """The text of kernels.json: a line for each operator."""
    lines = []
    for entry in entries:
        row: dict[str, Any] = {
            "library": "portable",
            "family": entry.family,
            "group": group_of(entry.op),
            "dtypes": entry.dtypes,
        }
        if entry.arguments:
            row["arguments"] = entry.arguments
        lines.append(f"  {json.dumps(entry.op)}: {json.dumps(row)}")
    classes = [f"  {json.dumps(name)}: {json.dumps(members)}" for name, members in CLASSES.items()]
    return "\n".join(
        [
            '{"version": 1,',
            ' "classes": {',
            ",\n".join(classes),
            " },",
            ' "operators": {',
            ",\n".join(lines),
            " }}",
            "",
        ]
    )
