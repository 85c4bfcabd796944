"""The kernels that a runtime has, and which dtypes each of their tensors may have.

`kernels.json` beside this file is the manifest of the runtime in this package.
`codegen/kernel_table.py` writes it from ops/ops.yaml, together with the C++ table and
docs/operators.md. Export checks programs against it, `rushlight ops` prints it. Needs no torch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from rushlight.errors import Code, Error

# The user's own operators, by name; `register_operator` adds them.
_REGISTERED: dict[str, Kernel] = {}


@dataclass(frozen=True)
class Kernel:
    """One operator that a kernel library runs.

    Attributes:
        name: the name in a program, such as "aten::add.out".
        library: the kernel library that has it.
        family: the group of operators of one source file that it belongs to.
        dtypes: the dtypes that its input tensors may have (its outs, if it takes none), or None if
            they are not known (any may be tried). Other outs have the dtype that eager gives for
            the inputs.
        arguments: the dtypes of single arguments, by name, where they differ.
        group: "core" (of ATen), "edge", "prim" or "beyond core"; "" if that is not known.
    """

    name: str
    library: str
    family: str = ""
    dtypes: frozenset[str] | None = None
    arguments: Mapping[str, frozenset[str]] = field(default_factory=dict)
    group: str = ""

    def takes(self, argument: str) -> frozenset[str] | None:
        """The dtypes that an argument may have; None if that is not known."""
        return self.arguments.get(argument, self.dtypes)


class Manifest:
    """The operators of one runtime, by name."""

    def __init__(self, kernels: Mapping[str, Kernel], classes: Mapping[str, frozenset[str]]):
        self._kernels = dict(kernels)
        self.classes = dict(classes)

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels.values())

    def __contains__(self, name: object) -> bool:
        return name in self._kernels

    def __len__(self) -> int:
        return len(self._kernels)

    def find(self, name: str) -> Kernel | None:
        """The kernel of an operator, the user's registered ones included; None if there is none."""
        return self._kernels.get(name) or _REGISTERED.get(name)

    def including(self, names: Iterable[str]) -> Manifest:
        """The manifest with further kernels of the user, for any dtypes.

        Args:
            names: the operators that they compute; those that are there stay as they are.
        """
        more = {name: Kernel(name, "yours") for name in names if name not in self}
        return Manifest(self._kernels | more, self.classes)

    def class_text(self, dtypes: frozenset[str]) -> str:
        """A short text for a set of dtypes, such as "real, bool"."""
        parts = []
        rest = set(dtypes)
        for name, members in self.classes.items():  # the widest first
            if members and members <= rest:
                parts.append(name)
                rest -= members
        return ", ".join([*parts, *sorted(rest)]) or "none"

    def to_json(self) -> dict[str, Any]:
        """The manifest as a dictionary for JSON, which `read` reads."""
        operators = {}
        for kernel in self:
            row: dict[str, Any] = {"library": kernel.library, "family": kernel.family}
            row |= {"group": kernel.group, "dtypes": self._classes_of(kernel.dtypes)}
            if kernel.arguments:
                row["arguments"] = {a: self._classes_of(d) for a, d in kernel.arguments.items()}
            operators[kernel.name] = row
        classes = {name: sorted(members) for name, members in self.classes.items()}
        return {"version": 1, "classes": classes, "operators": operators}

    def _classes_of(self, dtypes: frozenset[str] | None) -> str:
        return "any" if dtypes is None else self.class_text(dtypes).replace(", ", "+")

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Manifest:
        """The manifest of another runtime.

        Args:
            path: a JSON file in the format of `kernels.json`, or the text that `rushlight_runner
                --ops` prints: a line for each operator, which begins with its name. Such a list has
                no dtypes; for operators that are known here, the dtypes known here are used.

        Raises:
            Error: if the file cannot be read, or has neither format.
        """
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, str(error), Code.ACCESS_FAILED) from error
        if not text.lstrip().startswith("{"):
            return _of_names(path, text)
        try:
            return _of_json(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f"it is not a manifest of kernels ({error!r})"
            raise _unreadable(path, problem, Code.INVALID_ARGUMENT) from error


@cache
def manifest() -> Manifest:
    """The manifest of the runtime in this package."""
    return _of_json(json.loads(files(__package__).joinpath("kernels.json").read_text("utf-8")))


def _of_json(document: Any) -> Manifest:
    if document["version"] != 1:
        raise ValueError(f"version {document['version']}, not 1")
    classes = {name: frozenset(members) for name, members in document["classes"].items()}

    def dtypes(text: str) -> frozenset[str]:
        return frozenset().union(*(classes.get(part, {part}) for part in text.split("+")))

    kernels = {}
    for name, row in document["operators"].items():
        kernels[name] = Kernel(
            name,
            row["library"],
            row["family"],
            dtypes(row["dtypes"]),
            {argument: dtypes(text) for argument, text in row.get("arguments", {}).items()},
            row["group"],
        )
    return Manifest(kernels, classes)


def _of_names(path: str | os.PathLike[str], text: str) -> Manifest:
    known = manifest()
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    wrong = [name for name in names if "::" not in name]
    if wrong or not names:
        problem = f"{wrong[0]!r} is not the name of an operator" if wrong else "it is empty"
        raise _unreadable(path, problem, Code.INVALID_ARGUMENT)
    kernels = {name: known.find(name) or Kernel(name, "of that runtime") for name in names}
    return Manifest(kernels, known.classes)


def _unreadable(path: str | os.PathLike[str], problem: str, code: Code) -> Error:
    return Error(
        f"cannot read {os.fspath(path)!r}: {problem}; write it with `rushlight ops --json`, or "
        f"with `rushlight_runner --ops` of the runtime",
        code=code,
    )


def registered(name: str) -> Kernel | None:
    """The kernel that the user registered for an operator; None if there is none."""
    return _REGISTERED.get(name)


def register_operator(
    name: str,
    *,
    library: str,
    dtypes: str | None = None,
    arguments: Mapping[str, str] | None = None,
) -> None:
    """Declare that a runtime will have a kernel for your own operator, so that export accepts it.

    torch.library defines what the operator computes and the dtype of its result; this adds the
    facts about the kernel.

    Args:
        name: the out-variant's name in a program, such as "mylib::gelu.out".
        library: the library to link into the runtime; the program's report names it.
        dtypes: what input tensors may be: dtypes ("float32") and classes ("floating", "integral",
            "real", "bool", "any") joined by "+". None allows every dtype.
        arguments: the same for single arguments, by name, where they differ.

    Raises:
        Error: if the name is that of a built-in operator, or a dtype is not known.
    """
    known = manifest()
    if "::" not in name or name in {kernel.name for kernel in known}:
        problem = "is in the portable library" if "::" in name else 'must be "namespace::op.out"'
        raise Error(
            f"{name!r} {problem}: register an operator of yours", code=Code.INVALID_ARGUMENT
        )

    def read(text: str) -> frozenset[str]:
        parts = text.split("+")
        wrong = [p for p in parts if p not in known.classes and p not in known.classes["any"]]
        if wrong:
            have = ", ".join([*known.classes, *sorted(known.classes["any"])])
            problem = f"{name}: unknown dtype {wrong[0]!r}; there are {have}"
            raise Error(problem, code=Code.INVALID_ARGUMENT)
        return frozenset().union(*(known.classes.get(part, {part}) for part in parts))

    _REGISTERED[name] = Kernel(
        name,
        library,
        "yours",
        None if dtypes is None else read(dtypes),
        {argument: read(text) for argument, text in (arguments or {}).items()},
    )
