"""The key-value cache for checking a program that a language model's runner would lend one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch.export import ExportedProgram

from rushlight import _core
from rushlight.check.eager import eager_results
from rushlight.ir.custom_ops.cached_attention import EagerCache, cached_attention


@contextmanager
def lent_cache(
    program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[_core.KvCache | None]:
    """A cache that has room for what these inputs store; within it, eager has one as well.

    It is None for a program without cached attention, and where eager fails on the inputs.

    Args:
        program: the captured program.
        args, kwargs: the inputs.
    """
    if not any(node.target is cached_attention for node in program.graph.nodes):
        yield None
        return
    with EagerCache().active() as eager:
        try:
            eager_results(program, args, kwargs)  # tells what is stored
        except (RuntimeError, AssertionError, ValueError, IndexError):
            yield None
            return
        sizes = eager.sizes()
        yield None if sizes is None else _core.KvCache("float32", *sizes)
