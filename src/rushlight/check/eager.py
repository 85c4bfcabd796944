"""What eager gives, for programs to be compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram


def eager_results(
    program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """What eager gives, flattened; the program's buffers, which are the model's, stay as they are.

    Raises:
        whatever the model raises on these inputs.
    """
    with as_after_loading(program):
        found = program.module()(*clone(args), **clone(dict(kwargs)))
        return pytree.tree_leaves(clone(found))  # a result may be a view of a buffer


@contextmanager
def as_after_loading(program: ExportedProgram) -> Iterator[None]:
    """A run of eager like the first one of a loaded program: its generator is new, and no gradient
    is kept. What the run writes to buffers, and the caller's generator, are put back."""
    # A captured graph writes buffers in place, which its signature does not tell.
    held = {**program.constants, **program.state_dict}  # buffers that are not saved are the former
    # Whole memories: a buffer may be a view of another, or one element many times.
    memories = [held[name].untyped_storage() for name in program.graph_signature.buffers]
    before = [(m, m.clone()) for m in {m.data_ptr(): m for m in memories}.values()]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(torch.Generator().initial_seed())
            yield
    finally:
        for memory, value in before:
            memory.copy_(value)


def clone(tree: Any) -> Any:
    """The same tree with copies of its tensors."""
    return pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, tree)
