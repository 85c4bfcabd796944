"""The user's names for torch's symbols of sizes and values (s77, u0)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.printers import PythonPrinter

from rushlight.ir.branches import branches
from rushlight.ir.source import in_users_code, source_of

# Source text that makes a Python number from a tensor, such as `k.item()`.
ITEM = re.compile(r"\w+(?:\.\w+(?:\(\))?|\[[^\[\]]*\])*\.(?:item|tolist)\(\)")
_ASSIGNED = re.compile(r"^(\w+)\s*(?::[^=]+)?=(?!=)")

Origins = dict[sympy.Symbol, Node]


def origins_of(module: GraphModule) -> Origins:
    """The node that introduces each symbol that depends on data: the first whose value has it."""
    origins: Origins = {}
    for one in (module, *branches(module)):
        for node in one.graph.nodes:
            for value in pytree.tree_leaves(node.meta.get("val")):
                for symbol in _symbols(value):
                    origins.setdefault(symbol, node)
    return origins


def _symbols(value: Any) -> Any:
    sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
    numbers = [s for s in sizes if isinstance(s, torch.SymInt | torch.SymFloat | torch.SymBool)]
    return [symbol for number in numbers for symbol in free_unbacked_symbols(number)]


def origin_text(symbol: sympy.Symbol, node: Node) -> str:
    """A text for a symbol that `node` introduces: "the value of `k.item()` (model.py:8)", or
    "size 0 of found (model.py:9)"."""
    source = source_of(node)
    place = f" ({source.brief})" if in_users_code(source.file) else ""
    assigned = _ASSIGNED.match(source.text)
    for value in pytree.tree_leaves(node.meta.get("val")):
        if isinstance(value, torch.Tensor) and symbol in _symbols(value):
            dim = next(d for d, size in enumerate(value.shape) if symbol in _symbols(size))
            name = assigned[1] if assigned else f"what {node.name} gives"
            return f"size {dim} of {name}{place}"
    item = ITEM.search(source.text)
    name = f"`{item[0]}`" if item else assigned[1] if assigned else node.name
    return f"the value of {name}{place}"


def in_words(expression: sympy.Basic | str, names: Mapping[str, str]) -> str:
    """The text of an expression, with the user's names for its symbols."""
    text = expression if isinstance(expression, str) else PythonPrinter().doprint(expression)
    return re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), text)
