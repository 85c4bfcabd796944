"""Eager's results, which programs are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import InputKind, OutputKind

from rushlight.capture.mutations import written_values
from rushlight.check.large_weights import RowInterpreter


def eager_results(
    program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Eager's results, flattened; the program's buffers, which are the model's, are not changed.

    Raises:
        Exception: whatever the model raises on these inputs.
    """
    return flat_results(program, flat_inputs(program, args, kwargs))


def flat_results(program: ExportedProgram, flat: Sequence[Any]) -> list[Any]:
    """Likewise, from inputs in the order of the graph's placeholders."""
    # Not `program.module()`, which takes time quadratic in inputs and parameters.
    values = placeholder_values(program, clone(flat))
    kinds = [spec.kind for spec in program.graph_signature.output_specs]
    with as_after_loading(program):
        outputs = RowInterpreter(program.graph_module).run(*values)
        results = zip(outputs, kinds, strict=True)
        # Copies, since a result may be a view of a buffer.
        return [clone(value) for value, kind in results if kind == OutputKind.USER_OUTPUT]


def placeholder_values(program: ExportedProgram, flat: Sequence[Any]) -> list[Any]:
    """A value for every placeholder of a program's graph, in order; its state itself, no copy."""
    inputs = iter(flat)
    held = {**program.constants, **program.state_dict}
    return [
        next(inputs) if spec.kind == InputKind.USER_INPUT else held[str(spec.target)]
        for spec in program.graph_signature.input_specs
    ]


def flat_inputs(
    program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """The inputs in the order of the graph's placeholders.

    Raises:
        ValueError: if they have another structure than the model's inputs.
    """
    wanted = program.call_spec.in_spec
    flat, spec = pytree.tree_flatten((tuple(args), reorder_kwargs(dict(kwargs), wanted)))
    if spec != wanted:
        raise ValueError(f"the inputs are arranged as {spec}, the model takes {wanted}")
    return flat


@contextmanager
def as_after_loading(program: ExportedProgram) -> Iterator[None]:
    """While active, eager runs like the first call of a loaded program: with a new random generator
    and without gradients. Afterwards the program's state and the caller's generator are restored.
    """
    # A captured graph writes its state in place; neither its signature nor the schemas of all
    # operators say so.
    written = {base.name for _, base in written_values(program.graph)}
    state = [
        str(spec.target)
        for spec in program.graph_signature.input_specs
        if spec.kind == InputKind.BUFFER
        or (spec.kind == InputKind.PARAMETER and spec.arg.name in written)
    ]
    held = {
        **program.constants,
        **program.state_dict,
    }  # constants include buffers that are not saved
    # Whole memories: a buffer may be a view of another, or one element many times.
    memories = [held[name].untyped_storage() for name in state]
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
