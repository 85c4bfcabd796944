"""Structures of inputs and outputs: torch's pytree specs as our JSON and as ExecuTorch's string."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree

Tree = dict[str, Any]


def tree_of(spec: pytree.TreeSpec) -> Tree:
    """`spec` as JSON: what the runtime needs to rebuild the structure without torch.

    A container of a class that JSON cannot name (a `ModelOutput`) becomes an "object": it comes
    back as a dict with attribute access.
    """
    if spec.is_leaf():
        return {"t": "leaf"}
    children = [tree_of(child) for child in spec.children()]
    kind, context = spec.type, spec.context
    if kind in (tuple, list):
        return {"t": kind.__name__, "c": children}
    if kind is torch.Size:
        return {"t": "tuple", "c": children}
    if kind.__module__ == "torch.return_types":  # what topk, max and others return
        fields = list(kind.__match_args__)
        return {"t": "namedtuple", "name": kind.__name__, "k": fields, "c": children}
    if isinstance(kind, type) and issubclass(kind, dict) and kind.__module__ in _DICT_MODULES:
        keys = list(context[1]) if kind.__name__ == "defaultdict" else list(context)
        return {"t": "dict", "k": keys, "c": children}
    if hasattr(context, "_fields"):  # a namedtuple: its class is the context
        return {
            "t": "namedtuple",
            "name": context.__name__,
            "k": list(context._fields),
            "c": children,
        }
    return {"t": "object", "name": kind.__name__, "k": _keys(spec), "c": children}


_DICT_MODULES = ("builtins", "collections")


def _keys(spec: pytree.TreeSpec) -> list[str]:
    """The field names of a registered container, as far as its context tells; else 0, 1, …"""
    n = spec.num_children
    for candidate in _sequences(spec.context):
        if len(candidate) == n and all(isinstance(k, str) for k in candidate):
            return list(candidate)
    return [str(i) for i in range(n)]


def _sequences(context: Any) -> list[Any]:
    sequences = [context] if isinstance(context, list | tuple) else []
    for item in list(sequences[0]) if sequences else []:
        if isinstance(item, list | tuple):
            sequences.append(item)
    return sequences


def encode_container(spec: pytree.TreeSpec) -> str:
    """`spec` as the string of the .pte's ContainerMetadata; "" if it has none."""
    try:
        return pytree.treespec_dumps(spec)
    except (NotImplementedError, ValueError, TypeError):
        return ""  # a type registered without a serialised name: our JSON describes it


def leaf_paths(spec: pytree.TreeSpec, names: list[str]) -> list[str]:
    """A readable path for every flattened input: "x", "batch['ids']", "states[0]".

    Args:
        spec: (positional args, keyword args), as torch.export records it.
        names: the names of the positional parameters.
    """
    args, kwargs = spec.children()
    paths: list[str] = []
    for i, child in enumerate(args.children()):
        _walk(child, names[i] if i < len(names) else f"args[{i}]", paths)
    for key, child in zip(kwargs.context, kwargs.children(), strict=True):
        _walk(child, str(key), paths)
    return paths


def _walk(spec: pytree.TreeSpec, path: str, paths: list[str]) -> None:
    if spec.is_leaf():
        paths.append(path)
        return
    tree = tree_of(spec)
    for i, child in enumerate(spec.children()):
        suffix = f"[{tree['k'][i]!r}]" if tree["t"] == "dict" else f"[{i}]"
        if tree["t"] in ("object", "namedtuple"):
            suffix = f".{tree['k'][i]}"
        _walk(child, path + suffix, paths)
