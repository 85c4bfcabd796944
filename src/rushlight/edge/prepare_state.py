"""Rewrites a program so that each tensor of state that it writes has one name.

A module that is used twice, or a tensor that is registered twice, gives a captured program two
inputs for the same memory. A write through one must be seen through the other. A functional graph
cannot express that, so the two inputs become one. Buffers that share only a part of their memory,
such as a buffer and a view of it, are refused by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from rushlight.capture.mutations import written_values
from rushlight.edge.constants import tensor_named
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.programs import copy_program
from rushlight.ir.source import source_of


def prepare_state(program: ExportedProgram) -> ExportedProgram:
    """`program` if no state that it writes has two names, else a changed copy; tensors are shared.

    Args:
        program: of the ATen dialect.

    Raises:
        ExportError: if the model writes a buffer that shares a part of its memory with another;
            it names both.
    """
    writes: dict[str, Node] = {}
    for node, base in written_values(program.graph):
        writes.setdefault(base.name, node)
    aliases: dict[str, str] = {}
    for held in _in_one_memory(program) if writes else ():
        if writes.keys().isdisjoint(one.input for one in held):
            continue
        kept: dict[Any, _Held] = {}
        for one in held:
            first = kept.setdefault(_layout(one.tensor), one)
            if first is not one:
                aliases[one.input] = first.input
                if one.input in writes:
                    writes.setdefault(first.input, writes[one.input])
        _refuse_overlaps(list(kept.values()), writes)
    return _merged(program, aliases) if aliases else program


@dataclass(frozen=True)
class _Held:
    """A parameter, buffer or constant: the graph's input, its name in the model, its elements."""

    input: str
    name: str
    tensor: torch.Tensor


def _in_one_memory(program: ExportedProgram) -> list[list[_Held]]:
    """The program's tensors, grouped by the memory that they share, buffers first."""
    tensors: dict[int, list[_Held]] = defaultdict(list)
    specs = program.graph_signature.input_specs
    for spec in sorted(specs, key=lambda spec: spec.kind != InputKind.BUFFER):
        tensor = None if spec.target is None else tensor_named(program, spec.target)
        if not isinstance(tensor, torch.Tensor) or tensor.numel() == 0:
            continue
        # A wrapper of other tensors, such as torchao's weights, has no memory of its own.
        if not is_traceable_wrapper_subclass(tensor):
            memory = tensor.untyped_storage().data_ptr()
            tensors[memory].append(_Held(spec.arg.name, str(spec.target), tensor))
    return list(tensors.values())


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def _refuse_overlaps(held: list[_Held], writes: Mapping[str, Node]) -> None:
    """Raise if one of the tensors in the same memory is written and shares elements with others or
    with itself."""
    for one in held:
        if one.input not in writes:
            continue
        source = source_of(writes[one.input])
        if _overlaps_itself(one.tensor):
            raise refusal(
                Finding(
                    "not-lowered",
                    f"the model writes {one.name!r}, whose elements share memory",
                    "Register a copy that has memory for each of them, made with clone()",
                    source,
                )
            )
        for other in held:
            if other is not one and _meet(one.tensor, other.tensor):
                raise refusal(
                    Finding(
                        "not-lowered",
                        f"the model writes {one.name!r}, which has a part of its memory in common "
                        f"with {other.name!r}, so that the write changes both",
                        "Register one of them and take the other from it in forward, as in part = "
                        "self.whole[:3]; or register a copy made with clone() if they are to "
                        "differ",
                        source,
                    )
                )


def _overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two indices of the tensor refer to the same element."""
    reach = 0  # the largest offset within the dimensions with smaller strides
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _meet(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the memory ranges of two tensors, first to last element, overlap."""
    (first, last), (start, end) = map(_span, (one, other))
    return first <= end and start <= last


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    strides = zip(tensor.stride(), tensor.shape, strict=True)
    bytes_between = tensor.itemsize * (1 + sum(stride * (size - 1) for stride, size in strides))
    return tensor.data_ptr(), tensor.data_ptr() + bytes_between - 1


def _merged(program: ExportedProgram, aliases: dict[str, str]) -> ExportedProgram:
    """A copy of the program in which each input in `aliases` is replaced by the one it names."""
    new = copy_program(program)
    nodes = {node.name: node for node in new.graph.find_nodes(op="placeholder")}
    for name, kept in aliases.items():
        nodes[name].replace_all_uses_with(nodes[kept], propagate_meta=False)
        new.graph.erase_node(nodes[name])
    specs = new.graph_signature.input_specs
    specs[:] = [spec for spec in specs if spec.arg.name not in aliases]
    new.graph_module.recompile()
    return new
