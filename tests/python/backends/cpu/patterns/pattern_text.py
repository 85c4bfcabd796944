"""The graphs that patterns of the engine's compiler make, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pass_text import text, traced

from rushlight.backends.cpu.graph.rewrite import Rewriter
from rushlight.backends.cpu.integers import calls
from rushlight.backends.cpu.patterns.integers import fuse
from rushlight.backends.cpu.patterns.integers.results import fuse_result
from rushlight.edge.constants import Constants
from rushlight.edge.passes.scalar_to_tensor import scalar_to_tensor
from rushlight.edge.passes.views_to_copies import views_to_copies
from rushlight.ir.rewrite import remove_dead


def after(
    pattern: Callable[[Rewriter], Any],
    function: Callable[..., Any],
    *args: torch.Tensor,
    dynamic: bool = False,
    **constants: Any,
) -> str:
    """The text of `function`'s graph in the Edge dialect, after the pattern was applied."""
    program = traced(function, *args, dynamic=dynamic, **constants)
    views_to_copies(program.graph)
    own = Constants(program)
    scalar_to_tensor(own)
    own.drop_unused()
    pattern(Rewriter(program))
    remove_dead(program.graph)
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in constants and not node.users:
            program.graph.erase_node(node)
    return text(program)


def on_bytes(*patterns: Callable[[Rewriter], Any]) -> Callable[[Rewriter], None]:
    """Patterns of quantised calls, one after the other, on a graph whose values are bytes.

    That is how `fuse_quantized` begins.
    """

    def in_order(r: Rewriter) -> None:
        fuse._name_bytes(r)
        for pattern in patterns:
            pattern(r)

    return in_order


def fuse_results(r: Rewriter) -> None:
    """`fuse_result` for each call that quantises."""
    for node in list(r.graph.find_nodes(op="call_function", target=calls.quantize)):
        new = fuse_result(r, node)
        if new is not None:
            r.replace(node, new)
    r.clean()
