"""Reads the kernels in ops/ops.yaml, checks each row and derives its signature from torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml

OPS_FILE = Path(__file__).resolve().parent.parent / "ops" / "ops.yaml"

FLOATING = ("float16", "bfloat16", "float32", "float64")
INTEGRAL = ("uint8", "int8", "int16", "int32", "int64")
UNSIGNED = ("uint16", "uint32", "uint64")
ANY8 = (*INTEGRAL, *FLOATING, "bool", *UNSIGNED, "complex64", "float8_e5m2", "float8_e4m3fn")
# Classes of dtypes, the widest first: a text for a set of dtypes uses the first that fits.
CLASSES = {
    "any": (*ANY8, "complex128"),
    "any8": ANY8,
    "real": (*INTEGRAL, *FLOATING),
    "floating": FLOATING,
    "integral": INTEGRAL,
    "unsigned": UNSIGNED,
    "none": (),
}
# The keys that a row of ops.yaml may have.
DTYPES = {**CLASSES, **{dtype: (dtype,) for dtype in CLASSES["any"]}}

FIELDS = {"op", "kernel", "dtypes", "arguments", "schema"}

# Letters of cpp/kernel/kernel.h by the type's name in torch's schemas.
LETTERS = {
    "Tensor": "t",
    "List[Tensor]": "T",
    "List[Optional[Tensor]]": "O",
    "int": "i",
    "SymInt": "i",
    "List[int]": "I",
    "List[SymInt]": "I",
    "float": "d",
    "List[float]": "D",
    "bool": "b",
    "List[bool]": "B",
    "number": "s",
    "Scalar": "s",
    "str": "S",
}
# Always None in a program, so any optional letter will do.
ONLY_NONE = {"Optional[Device]": "?i", "Optional[Generator]": "?i"}


@dataclass(frozen=True)
class Entry:
    """One kernel of ops.yaml."""

    op: str
    kernel: str
    signature: str
    family: str
    dtypes: str
    arguments: dict[str, str] = field(default_factory=dict)


def letter(type_name: str) -> str:
    """Returns the signature letter (with ``?`` for an optional) of a torch schema type."""
    if type_name in ONLY_NONE:
        return ONLY_NONE[type_name]
    if type_name.startswith("Optional[") and type_name.endswith("]"):
        return "?" + letter(type_name[len("Optional[") : -1])
    return LETTERS[type_name]


def argument_letter(argument: Any) -> str:
    """Returns the letter of one argument: ``w`` and ``W`` for tensors that the operator writes."""
    code = letter(str(argument.type))
    written = argument.alias_info is not None and argument.alias_info.is_write
    return {"t": "w", "T": "W"}[code] if written else code


def schema_of(row: dict[str, Any]) -> Any:
    """Returns torch's schema of the row's operator, or the schema in the row itself."""
    op = row["op"]
    if "schema" in row:
        return torch._C.parse_schema("rushlight::op" + row["schema"])
    namespace_and_name, _, overload = op.partition(".")
    schema = torch._C._get_schema(namespace_and_name, overload)
    if schema is None:
        raise ValueError(f"{op}: torch has no such operator; give its schema in ops.yaml")
    return schema


def signature_of(row: dict[str, Any]) -> str:
    """Derives the signature letters of cpp/kernel/kernel.h for one row of ops.yaml."""
    schema = schema_of(row)
    letters = "".join(argument_letter(argument) for argument in schema.arguments)
    if not schema.returns:
        # torch's out operators on lists return nothing, but programs pass the list once more.
        return letters if "schema" in row else letters + "="
    aliased = any(result.alias_info is not None for result in schema.returns)
    return letters + ("=" if aliased else "r")


def check_dtypes(op: str, text: str) -> None:
    """Raises ValueError unless `text` is dtypes and classes joined by ``+``."""
    wrong = set(text.split("+")) - set(DTYPES)
    if wrong:
        raise ValueError(f"{op}: unknown dtypes {sorted(wrong)}; see the top of {OPS_FILE.name}")


def entry_of(row: dict[str, Any], family: str) -> Entry:
    """Checks one row of ops.yaml."""
    op = row.get("op", "?")
    unknown = set(row) - FIELDS
    missing = {"op", "kernel", "dtypes"} - set(row)
    if unknown or missing:
        raise ValueError(f"{op}: unknown fields {sorted(unknown)}, missing {sorted(missing)}")
    arguments = row.get("arguments", {})
    tensors = {a.name for a in schema_of(row).arguments if "Tensor" in str(a.type)}
    if not set(arguments) <= tensors:
        raise ValueError(f"{op}: these are not tensors of it: {sorted(set(arguments) - tensors)}")
    for text in (row["dtypes"], *arguments.values()):
        check_dtypes(op, text)
    return Entry(op, row["kernel"], signature_of(row), family, row["dtypes"], arguments)


def load_entries(path: Path = OPS_FILE) -> list[Entry]:
    """Reads ops.yaml and checks each row; entries come sorted by operator name.

    A family is the rows below a line ``# --- file.cpp``.
    """
    entries: dict[str, Entry] = {}
    parts = re.split(r"^# --- (\w+)\.cpp$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for family, text in zip(parts[1::2], parts[2::2], strict=True):
        for row in yaml.safe_load(text) or []:
            entry = entry_of(row, family)
            if entry.op in entries:
                raise ValueError(f"{entry.op}: listed twice")
            entries[entry.op] = entry
    return sorted(entries.values(), key=lambda entry: entry.op)
