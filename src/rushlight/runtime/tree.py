"""Structures of inputs and results without torch: flattens the former and builds the latter.

A tree is written in JSON as `{"t": "leaf"}`, `{"t": "tuple" | "list", "c": [tree, …]}`,
`{"t": "dict", "k": [key, …], "c": […]}`, `{"t": "namedtuple" | "object", "name": …, "k": […],
"c": […]}`. Flattening goes through children in order. ExecuTorch's own string (torch's pytree
specs) is read as well, as far as a `Tree` can express it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Json = Any

_SEQUENCES = {"tuple": tuple, "list": list}


class Record(dict[str, Any]):
    """A result whose class the program cannot name (a `ModelOutput`): a dict whose entries are
    attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"this result has no {name!r}; it has {', '.join(map(str, self))}"
            ) from None


@dataclass(frozen=True)
class Tree:
    """One node of a structure.

    Attributes:
        kind: "leaf", "none", "tuple", "list", "dict", "namedtuple" or "object".
        keys: one key per child of a dict, a namedtuple or an object.
        children: the children in flattening order.
        name: the class name of a namedtuple or object.
        n_leaves: the number of leaves under this node.
        make: builds the value from its children; None for kinds that need no class.
    """

    kind: str
    keys: tuple[Any, ...] = ()
    children: tuple[Tree, ...] = ()
    name: str = ""
    n_leaves: int = 1
    make: Callable[..., Any] | None = None

    def unflatten(self, leaves: Iterator[Any]) -> Any:
        """The structure, with `leaves` in place of the leaves."""
        if self.kind == "leaf":
            return next(leaves)
        values = [child.unflatten(leaves) for child in self.children]
        if self.kind == "list":
            return values
        if self.kind == "tuple":
            return tuple(values)
        if self.kind == "dict":
            return dict(zip(self.keys, values, strict=True))
        if self.kind == "object":
            return Record(zip(self.keys, values, strict=True))
        if self.make is not None:
            return self.make(*values)
        return None

    def flatten(self, value: Any, path: str, leaves: list[Any]) -> None:
        """Append the leaves of `value` to `leaves`.

        A list is accepted for a tuple and an object with attributes for a mapping, and vice versa.

        Raises:
            TreeError: if `value` has another structure, with the path to the first difference.
        """
        if self.kind == "leaf":
            leaves.append(value)
        elif self.kind == "none":
            if value is not None:
                raise TreeError(path, f"expected None, got {type(value).__name__}")
        elif self.kind in ("list", "tuple", "namedtuple"):
            self._flatten_sequence(value, path, leaves)
        else:
            self._flatten_keys(value, path, leaves)

    def leaves(self, value: Any) -> list[Any]:
        """The leaves of `value`; TreeError if it does not have this structure."""
        leaves: list[Any] = []
        self.flatten(value, "value", leaves)
        return leaves

    def paths(self, path: str = "") -> list[str]:
        """The path to each leaf: "0", "'logits'", "'past'[1].key"; "" for a single leaf."""
        if self.kind == "leaf":
            return [path]
        paths: list[str] = []
        for i, child in enumerate(self.children):
            key = self.keys[i] if self.keys else i
            suffix = f".{key}" if self.kind in ("namedtuple", "object") else f"[{key!r}]"
            paths += child.paths(path + suffix if path else repr(key))
        return paths

    def written(self, leaves: Iterator[str]) -> str:
        """The structure as Python code, with `leaves` as the texts of its leaves."""
        if self.kind == "leaf":
            return next(leaves)
        if self.kind == "none":
            return "None"
        parts = [child.written(leaves) for child in self.children]
        joined = ", ".join(parts)
        if self.kind == "list":
            return f"[{joined}]"
        if self.kind == "tuple":
            return f"({joined},)" if len(parts) == 1 else f"({joined})"
        if self.kind == "dict":
            keys = [_written_key(key) for key in self.keys]
            return f"{{{', '.join(f'{k}: {p}' for k, p in zip(keys, parts, strict=True))}}}"
        fields = ", ".join(f"{k}={p}" for k, p in zip(self.keys, parts, strict=True))
        return f"{self.name or 'object'}({fields})"

    def _flatten_sequence(self, value: Any, path: str, leaves: list[Any]) -> None:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise TreeError(path, f"expected {self}, got {_what(value)}")
        if len(value) != len(self.children):
            raise TreeError(path, f"expected {self}, got a {type(value).__name__} of {len(value)}")
        for i, child in enumerate(self.children):
            child.flatten(value[i], f"{path}[{i}]", leaves)

    def _flatten_keys(self, value: Any, path: str, leaves: list[Any]) -> None:
        entries = value
        if self.kind == "object" and not isinstance(value, Mapping):
            entries = getattr(value, "__dict__", None)
        if not isinstance(entries, Mapping):
            raise TreeError(path, f"expected {self}, got {_what(value)}")
        missing = [k for k in self.keys if k not in entries]
        extra = [k for k in entries if k not in self.keys]
        if self.kind == "object":  # fields that were None in eager are no part of the structure
            extra = [k for k in extra if entries[k] is not None]
        if missing or extra:
            raise TreeError(
                path,
                f"expected the keys {', '.join(map(repr, self.keys))}"
                + (f"; missing: {', '.join(map(repr, missing))}" if missing else "")
                + (f"; not expected: {', '.join(map(repr, extra))}" if extra else ""),
            )
        for key, child in zip(self.keys, self.children, strict=True):
            suffix = f"[{key!r}]" if self.kind == "dict" else f".{key}"
            child.flatten(entries[key], path + suffix, leaves)

    def __str__(self) -> str:
        if self.kind in _SEQUENCES:
            n = len(self.children)
            return f"a {self.kind} of {n} value{'' if n == 1 else 's'}"
        if self.kind == "namedtuple":
            return f"{self.name}({', '.join(map(str, self.keys))})"
        if self.keys:
            return f"a {self.name or 'dict'} with {', '.join(map(repr, self.keys))}"
        return {"leaf": "a value", "none": "None"}.get(self.kind, "an empty dict")


class TreeError(ValueError):
    """A value does not have the structure of a tree; `path` leads to the difference."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def written_arguments(
    in_spec: Tree, parameters: Sequence[str], leaves: Iterator[tuple[str, str]]
) -> str:
    """The arguments of a method as a signature shows them: "x: float32[2], options: {...}".

    Args:
        in_spec: tuple(tuple(args…), dict(kwargs…)).
        parameters: names for the positional arguments; arguments of `*args` have none.
        leaves: the name and type of each leaf.
    """
    args, kwargs = in_spec.children
    names = list(parameters[: len(args.children)])
    names += [f"args[{i}]" for i in range(len(names), len(args.children))]
    names += map(str, kwargs.keys)
    parts = []
    for name, part in zip(names, args.children + kwargs.children, strict=True):
        if part.kind == "leaf":  # it has a name of its own
            name, text = next(leaves)
        else:
            text = part.written(text for _, text in leaves)
        parts.append(f"{name}: {text}" if name else text)
    return ", ".join(parts)


def _written_key(key: Any) -> str:
    import json

    return json.dumps(key, ensure_ascii=False) if isinstance(key, str) else repr(key)


def _what(value: Any) -> str:
    return f"a {type(value).__name__}"


LEAF = Tree("leaf")


def flat(kind: str, n: int) -> Tree:
    """A tuple or list of `n` leaves."""
    return Tree(kind, (), (LEAF,) * n, n_leaves=n)


def parse(json: Json) -> Tree:
    """A tree from its JSON.

    Raises:
        ValueError: if the JSON does not describe a tree.
    """
    if not isinstance(json, dict):
        raise ValueError(f'a structure is an object with "t", not {json!r:.60}')
    kind = json.get("t")
    if kind == "leaf":
        return LEAF
    if kind == "none":
        return Tree("none", n_leaves=0)
    children = tuple(parse(child) for child in _list(json, "c"))
    n_leaves = sum(child.n_leaves for child in children)
    if kind in ("tuple", "list"):
        return Tree(kind, (), children, n_leaves=n_leaves)
    keys = tuple(k for k in _list(json, "k") if isinstance(k, str | int | float | bool))
    if kind not in ("dict", "namedtuple", "object") or len(keys) != len(children):
        raise ValueError(f"not a structure: {json!r:.60}")
    name = str(json.get("name", ""))
    if kind == "namedtuple":
        make = _namedtuple(name, tuple(map(str, keys)))
        return Tree(kind, keys, children, name, n_leaves, make)
    return Tree(kind, keys, children, name, n_leaves)


@lru_cache(maxsize=256)  # one class for equal results of different calls and modules
def _namedtuple(name: str, fields: tuple[str, ...]) -> Callable[..., Any]:
    return namedtuple(name, fields)


def _list(json: dict[str, Json], key: str) -> list[Json]:
    value = json.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"a structure's {key!r} is a list, not {value!r:.60}")
    return value


_PYTREE = {
    "builtins.tuple": "tuple",
    "builtins.list": "list",
    "builtins.dict": "dict",
    "collections.OrderedDict": "dict",
}


def parse_pytree(text: str) -> Tree | None:
    """A tree from the string in the .pte's container metadata; None if it cannot be read."""
    if not text:
        return None
    import json

    try:
        _, node = json.loads(text)
        return _from_pytree(node)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _from_pytree(node: Json) -> Tree:
    import json

    if node["type"] is None:
        return LEAF
    children = tuple(_from_pytree(child) for child in node["children_spec"])
    n_leaves = sum(child.n_leaves for child in children)
    kind = _PYTREE[node["type"]]
    if kind != "dict":
        return Tree(kind, (), children, n_leaves=n_leaves)
    keys = tuple(json.loads(node["context"]))
    if len(keys) != len(children):
        raise ValueError("one key per child is needed")
    return Tree(kind, keys, children, n_leaves=n_leaves)
