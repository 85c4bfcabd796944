"""Reads the shape contract and the debug map of a file for a report.

Both are in the program's named data, and may be missing or damaged. A report is useful without
them, so data that cannot be read counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.inspect.model import Covered
from rushlight.runtime import tree as trees
from rushlight.schema import program as fb
from rushlight.schema.debug import DebugMap, DebugMethod, DebugNode
from rushlight.schema.source import Source
from rushlight.serialize.debug import KEY as DEBUG
from rushlight.serialize.debug import read_debug
from rushlight.serialize.segments import Data, as_bytes

CONTRACT = "rushlight/contract"
KERNELS = "rushlight/kernels"  # the kernel libraries of operators that are not ours


@dataclass(slots=True)
class Row:
    """The graph node's name and the Python line of one instruction."""

    name: str = ""
    source: Source | None = None


@dataclass(slots=True)
class Signature:
    """The signature of one method, from the contract.

    Attributes:
        names: the names of the flattened inputs.
        inputs, outputs: their types, such as "float32[s0 in 2..8, 6]".
        relations: the conditions between sizes, in words.
        varying: the names of the scalar inputs that may vary.
        takes, gives: all inputs, and all outputs, in the model's structures; "" if these are not
            in the contract.
    """

    names: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    varying: list[str] = field(default_factory=list)
    takes: str = ""
    gives: str = ""


def read_json(named_data: Mapping[str, Data], key: str) -> dict[str, Any]:
    """The JSON object under `key`; empty if there is none or it is not one."""
    try:
        document = json.loads(bytes(as_bytes(named_data.get(key, b"{}"))))
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _tolerant(read: Callable[..., Any], empty: Any) -> Any:
    """`read()`, or `empty` if the data cannot be read."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return empty


def debug_of(named_data: Mapping[str, Data]) -> DebugMap:
    """The debug map of a program; empty if the file has none."""
    return read_debug(as_bytes(named_data.get(DEBUG, b"")))


def rows_of(nodes: Sequence[DebugNode], plan: fb.ExecutionPlan) -> list[Row]:
    """One row for each instruction of a method, from the debug map or from stack traces."""
    count = len(plan.chains[0].instructions) if plan.chains else 0
    rows = [Row(node.name, _source(node)) for node in nodes]
    if not rows and plan.chains:
        rows = [_traced_row(frames) for frames in plan.chains[0].stacktrace or []]
    return [*rows, *(Row() for _ in range(count - len(rows)))][:count]


def coverage_of(debug: DebugMethod) -> list[Covered]:
    """The operator calls of a method with their backends; empty if the file does not list them."""
    return [
        Covered(
            *(call.node.name, call.node.operator, call.backend, call.part, call.cost),
            dict(call.reasons),
            _source(call.node),
        )
        for call in debug.coverage
    ]


def delegate_rows(debug: DebugMethod, delegate: int) -> dict[str, list[Row]]:
    """The graph nodes of each place inside a delegate, by the backend's id for it; the rows' names
    are operators ("linear"). Empty if the file does not list them."""
    if delegate >= len(debug.delegates):
        return {}
    return {
        place: [Row(_without_namespace(node.operator), _source(node)) for node in nodes]
        for place, nodes in debug.delegates[delegate].items()
    }


def unique_sources(rows: Sequence[Row]) -> list[Source]:
    """The Python lines of `rows`, each once."""
    sources = (row.source for row in rows if row.source is not None)
    return list({(str(source), source.module): source for source in sources}.values())


def _without_namespace(operator: str) -> str:
    """The name "linear" for "aten.linear.default"; the whole name of a function."""
    name = operator.partition(".")[2] or operator
    return name.partition(".")[0]


def _source(node: DebugNode) -> Source | None:
    """The Python line of a node; None if nothing is known."""
    if not node.line.file and not node.module:
        return None
    return node.source


def _traced_row(frames: fb.FrameList) -> Row:
    """The innermost frame that is not in torch's own files."""
    for frame in reversed(frames.items):
        if "/torch/" not in frame.filename:
            return Row("", Source(frame.filename, frame.lineno, frame.name, frame.context.strip()))
    return Row()


def signature_of(contract: Mapping[str, Any], method: str) -> Signature | None:
    """The signature of a method in the contract; None if it has none."""

    def read() -> Signature:
        entry = contract["methods"][method]
        return Signature(
            names=[str(item["name"]) for item in entry["inputs"]],
            inputs=[_type_of(item) for item in entry["inputs"]],
            outputs=[_type_of(item) for item in entry["outputs"]],
            relations=[str(item["text"]) for item in entry["relations"]],
            varying=[
                str(item["name"])
                for item in entry["inputs"]
                if item["kind"] in ("int", "float", "bool") and "value" not in item
            ],
        )

    signature: Signature | None = _tolerant(read, None)
    if signature is not None:
        entry = contract["methods"][method]
        written = _tolerant(lambda: _in_structures(entry, signature), ("", ""))
        signature.takes, signature.gives = written
    return signature


def _in_structures(entry: Mapping[str, Any], signature: Signature) -> tuple[str, str]:
    parameters = [str(name) for name in entry["parameters"]]
    try:
        in_spec, out_spec = trees.parse(entry["in_spec"]), trees.parse(entry["out_spec"])
    except RecursionError:
        return "", ""
    sizes = (len(signature.inputs), len(signature.outputs))
    if (in_spec.n_leaves, out_spec.n_leaves) != sizes:
        return "", ""
    leaves = zip(signature.names, signature.inputs, strict=True)
    takes = trees.written_arguments(in_spec, parameters, leaves)
    return takes, out_spec.written(iter(signature.outputs))


def _type_of(item: Mapping[str, Any]) -> str:
    if item["kind"] == "tensor":
        return f"{item['dtype']}[{', '.join(_dim(dim) for dim in item['shape'])}]"
    if "value" in item:
        return f"{item['kind']} = {item['value']!r}"
    if isinstance(item.get("range"), dict):
        return f"{item['kind']} in {item['range']['min']}..{item['range']['max']}"
    return str(item["kind"])


def _dim(dim: Any) -> str:
    if isinstance(dim, dict):
        name = dim.get("sym") or dim.get("expr") or "?"
        return f"{name}={dim['min']}..{dim['max']}"
    return str(int(dim))
