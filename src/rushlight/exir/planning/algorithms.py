"""Algorithms that place tensors: `greedy`, `naive`, and the suite that picks the best of several.

An algorithm of a user is a function like these:

    def place(alignment, specs, graph_module, graph_signature, extra_padding) -> MemoryAlgoResult

It is given specs with lifetimes, and returns where each of them goes.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule

from rushlight.errors import Code, ExportError
from rushlight.exir.planning.verify_plan import Verifier
from rushlight.exir.specs import TensorSpec

REGISTERED_ALGOS: dict[str, Callable[..., list[int]]] = {}
"""Algorithms of users by name; nothing here reads it."""


@dataclass
class AllocationSpec:
    """A tensor in a shared object, and its offset there."""

    offset: int
    spec: TensorSpec


@dataclass
class SharedObject:
    """A part of a memory that several tensors have in turn.

    Attributes:
        idx: its number among the objects of the memory.
        offset, size: in bytes; the offset is -1 until `materialize_buffer`.
        first_used_index, last_used_index: the nodes between which it is used.
        allocations: the tensors in it.
    """

    idx: int
    offset: int
    size: int
    first_used_index: int
    last_used_index: int
    allocations: list[AllocationSpec] = field(default_factory=list)

    def __repr__(self) -> str:
        life = (self.first_used_index, self.last_used_index)
        return f"SharedObject(idx={self.idx}, offset={self.offset}, size={self.size}, {life=})"

    def add(self, spec: TensorSpec, offset: int) -> None:
        """Put a tensor into it."""
        self.allocations.append(AllocationSpec(offset, spec))
        self.first_used_index = min(self.first_used_index, spec.lifetime[0])
        self.last_used_index = max(self.last_used_index, spec.lifetime[1])


@dataclass
class SpecAllocResult:
    """Where an algorithm puts a tensor."""

    mem_id: int
    mem_obj_id: int
    mem_offset: int


@dataclass
class MemoryAlgoResult:
    """Where an algorithm puts all tensors, and the bytes of each memory; memory 0 has constants."""

    spec_dict: dict[TensorSpec, SpecAllocResult]
    bufsizes: list[int]


def materialize_buffer(shared_objects: Sequence[SharedObject], input_total_size: int = 0) -> int:
    """Put shared objects one behind the other; returns the end of the last one.

    Args:
        shared_objects: of one memory.
        input_total_size: where the first one begins.
    """
    end = input_total_size
    for one in shared_objects:
        one.offset, end = end, end + one.size
    return end


def pick_shared_obj(
    shared_objects: list[SharedObject],
    spec: TensorSpec,
    allow_overlapping_allocations: bool = True,
) -> SharedObject:
    """Put a tensor into a shared object: the first that is free while the tensor lives, or else has
    room behind the tensors that live then, or else a new one of its size.

    Args:
        shared_objects: of one memory; a new one is appended. Tensors must come from the largest to
            the smallest, since an object never grows.
        spec: the tensor's.
        allow_overlapping_allocations: whether an object may hold several tensors at a time.
    """
    size = spec.allocated_memory
    best: tuple[SharedObject, int] | None = None
    for one in shared_objects:
        together = [
            allocated.offset + allocated.spec.allocated_memory
            for allocated in one.allocations
            if Verifier.has_overlap(allocated.spec.lifetime, spec.lifetime)
        ]
        if not together:
            best = (one, 0)
            break
        fits = max(together) + size <= one.size
        if best is None and allow_overlapping_allocations and fits and max(together) > 0:
            best = (one, max(together))
    if best is None:
        first, last = spec.lifetime
        best = (SharedObject(len(shared_objects), -1, size, first, last), 0)
        shared_objects.append(best[0])
    picked, offset = best
    if offset + size > picked.size:
        raise ExportError(
            f"a tensor of {size} bytes does not fit into an object of {picked.size}: give the "
            f"largest tensors first",
            code=Code.INVALID_ARGUMENT,
        )
    picked.add(spec, offset)
    return picked


def _start_sizes(graph_module: GraphModule, last: int) -> list[int]:
    """The bytes at the start of each memory, up to the memory `last`, that graphs inside this one
    use."""
    sizes: Any = getattr(graph_module, "input_mem_buffer_sizes", None) or []
    return [*sizes, *[0] * (last + 1 - len(sizes))]


def greedy(
    alignment: int,
    specs: Iterable[TensorSpec],
    graph_module: GraphModule,
    graph_signature: ExportGraphSignature | None,
    extra_padding: int = 0,
    *,
    allow_overlapping_allocations: bool = True,
) -> MemoryAlgoResult:
    """Place tensors from the largest to the smallest, each in the first object that has room.

    Args:
        alignment: of all offsets.
        specs: with lifetimes; those with a memory id are placed in that memory, others in 1.
        graph_module, graph_signature: the graph that they are of.
        extra_padding: bytes behind the last tensor of each memory.
        allow_overlapping_allocations: see `pick_shared_obj`.
    """
    result = MemoryAlgoResult({}, [0, 0])
    objects: dict[int, list[SharedObject]] = defaultdict(list)
    place: dict[TensorSpec, tuple[SharedObject, int]] = {}
    # Of equal tensors, the last comes first.
    ordered = sorted(specs, key=lambda spec: spec.allocated_memory)[::-1]
    for spec in ordered:
        spec.realign(alignment)
        result.spec_dict[spec] = SpecAllocResult(spec.mem_id or 1, 0, 0)
    for spec in ordered:
        if spec.inplace_base is None:
            memory = result.spec_dict[spec].mem_id
            picked = pick_shared_obj(objects[memory], spec, allow_overlapping_allocations)
            place[spec] = (picked, picked.allocations[-1].offset)
    _place_inplace([s for s in ordered if s.inplace_base is not None], place, result)
    result.bufsizes = _start_sizes(graph_module, max(objects, default=1))
    for memory, own in objects.items():
        end = materialize_buffer(own, result.bufsizes[memory])
        result.bufsizes[memory] = end + extra_padding
    for spec, (picked, offset) in place.items():
        told = result.spec_dict[spec]
        told.mem_obj_id, told.mem_offset = picked.idx, picked.offset + offset
    return result


def _place_inplace(
    waiting: list[TensorSpec],
    place: dict[TensorSpec, tuple[SharedObject, int]],
    result: MemoryAlgoResult,
) -> None:
    """Put tensors where the tensors are that they take over, which may do so, too."""
    while waiting:
        ready = [spec for spec in waiting if spec.inplace_base in place]
        if not ready:
            raise ExportError(
                f"{waiting[0].debug()} takes over the memory of a tensor that has none",
                code=Code.INVALID_STATE,
            )
        for spec in ready:
            base = spec.inplace_base
            assert base is not None
            picked, offset = place[spec] = place[base]
            picked.add(spec, offset)
            result.spec_dict[spec].mem_id = result.spec_dict[base].mem_id
        waiting = [spec for spec in waiting if spec not in place]


def naive(
    alignment: int,
    specs: Iterable[TensorSpec],
    graph_module: GraphModule,
    graph_signature: ExportGraphSignature | None,
    extra_padding: int,
) -> MemoryAlgoResult:
    """Place tensors one behind the other: no byte is used twice.

    Args:
        alignment: of all offsets.
        specs: those with a memory id are placed in that memory, others in 1.
        graph_module, graph_signature: the graph that they are of.
        extra_padding: not used.

    Raises:
        ExportError: a tensor takes over another's memory, which only `greedy` places.
    """
    sizes = _start_sizes(graph_module, 1)
    result = MemoryAlgoResult({}, sizes)
    for spec in specs:
        if spec.inplace_base is not None:
            raise ExportError(
                "naive places no tensors that take over others' memory: use greedy",
                code=Code.NOT_SUPPORTED,
            )
        spec.realign(alignment)
        memory = spec.mem_id or 1
        sizes.extend([0] * (memory + 1 - len(sizes)))
        result.spec_dict[spec] = SpecAllocResult(memory, 0, sizes[memory])
        sizes[memory] += spec.allocated_memory
    return result


class MemoryPlanningAlgorithmSuite:
    """Runs several algorithms and takes the result that needs the fewest bytes.

    Args:
        algo_list: the algorithms; default: `greedy` alone.
    """

    def __init__(self, algo_list: list[Callable[..., MemoryAlgoResult]] | None = None) -> None:
        self.algo_list = [greedy] if algo_list is None else algo_list

    def __call__(
        self,
        alignment: int,
        specs: Iterable[TensorSpec],
        graph_module: GraphModule,
        graph_signature: ExportGraphSignature | None,
        extra_padding: int,
    ) -> list[int]:
        """Write the best places into the specs; returns the bytes of each memory.

        Raises:
            ExportError: the algorithms use different numbers of memories.
        """
        given = list(specs)
        results = {
            algorithm_name(one): one(alignment, given, graph_module, graph_signature, extra_padding)
            for one in self.algo_list
        }
        if len({len(result.bufsizes) for result in results.values()}) != 1:
            used = ", ".join(f"{n}: {len(r.bufsizes)}" for n, r in results.items())
            raise ExportError(
                f"the algorithms of a suite use different numbers of memories ({used})",
                code=Code.INVALID_ARGUMENT,
            )
        best = min(results.values(), key=lambda result: sum(result.bufsizes))
        for spec, told in best.spec_dict.items():
            spec.mem_id, spec.mem_offset = told.mem_id, told.mem_offset
            spec.mem_obj_id = told.mem_obj_id
        return best.bufsizes


def algorithm_name(algorithm: Any) -> str:
    """The name of an algorithm, which may be a partial function or an object."""
    if isinstance(algorithm, functools.partial):
        algorithm = algorithm.func
    return getattr(algorithm, "__name__", None) or str(algorithm)
