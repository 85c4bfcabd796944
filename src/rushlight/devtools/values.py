"""Values of a run beside those of a graph, matched by debug handles as ExecuTorch's tools do.

A place is a tuple of debug handles: one of a node, or those of all nodes that a delegate computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node

from rushlight.errors import Code, RunError
from rushlight.inspect.trace.numeric_gap import distances
from rushlight.schema import etdump as fb

DebugHandle: TypeAlias = tuple[int, ...]
Recorded: TypeAlias = tuple[int, Any, int]
"""The instruction that gave a value, the value, and how many values it gave."""


class UnfitError(RunError, ValueError):
    """A value or an event has nothing of what is asked for; ExecuTorch raises a ValueError here."""


@dataclass(frozen=True)
class NodeFilter:
    """Which nodes of a graph count.

    Attributes:
        metadata_key: what their `meta` must have.
        op_type: their kind, "call_function" or another.
        exclude_ops: what no part of their names may be.
    """

    metadata_key: str
    op_type: str
    exclude_ops: Sequence[str] = ()

    def matches(self, node: Node) -> bool:
        """Whether a node counts."""
        return (
            node.meta.get(self.metadata_key) is not None
            and node.op == self.op_type
            and not any(name in node.name for name in self.exclude_ops)
        )


COUNTED = NodeFilter("debug_handle", "call_function", ("getitem",))


def handles_of(value: int | Iterable[int]) -> DebugHandle:
    """A debug handle, or several, as a place."""
    return (value,) if isinstance(value, int) else tuple(value)


def get_aot_debug_handle_to_op_name_mapping(
    graph_module: GraphModule,
) -> dict[DebugHandle, list[str]]:
    """The names of a graph's calls by their places."""
    names: dict[DebugHandle, list[str]] = {}
    for node in filter(COUNTED.matches, graph_module.graph.nodes):
        names.setdefault(handles_of(node.meta["debug_handle"]), []).append(node.name)
    return names


def find_op_names(
    target_debug_handle: DebugHandle, debug_handle_to_op_names: Mapping[DebugHandle, list[str]]
) -> list[str]:
    """The names at all places that lie in one.

    Args:
        target_debug_handle: the place.
        debug_handle_to_op_names: names by place.
    """
    whole = set(target_debug_handle)
    return [n for place, some in debug_handle_to_op_names.items() if whole.issuperset(place)
            for n in some]  # fmt: skip


def merge_runtime_overlapping_debug_handles(
    runtime_intermediate_outputs: Mapping[DebugHandle, Recorded],
) -> dict[DebugHandle, Recorded]:
    """Places that have handles in common as one, with the value of the last instruction.

    Args:
        runtime_intermediate_outputs: the values of a run.

    Returns:
        Values at places without common handles; those of later instructions stand last in a place.
    """
    merged: dict[DebugHandle, Recorded] = {}
    place_of: dict[int, DebugHandle] = {}
    for place, recorded in runtime_intermediate_outputs.items():
        known = dict.fromkeys(place_of[handle] for handle in place if handle in place_of)
        parts = [(place, recorded), *((one, merged.pop(one)) for one in known)]
        parts.sort(key=lambda part: part[1][0])
        # Each where it stands last.
        handles = dict.fromkeys(h for some, _ in reversed(parts) for h in reversed(some))
        whole = tuple(reversed(handles))
        place_of |= dict.fromkeys(whole, whole)
        merged[whole] = parts[-1][1]
    return merged


def map_runtime_aot_intermediate_outputs(
    aot_intermediate_outputs: Mapping[DebugHandle, Any],
    runtime_intermediate_outputs: Mapping[DebugHandle, tuple[Any, int]],
) -> dict[tuple[DebugHandle, Any], tuple[DebugHandle, Any]]:
    """The pairs of values that are the same in a graph and in a run.

    Args:
        aot_intermediate_outputs: the graph's, each at the place of one handle.
        runtime_intermediate_outputs: the run's, with how many it gave; places have no handle in
            common. The last values of a place are those of its last handles.

    Returns:
        The graph's place and value to the run's; both places are the run's.
    """
    wanted = {place[0]: value for place, value in aot_intermediate_outputs.items()}
    pairs = {}
    for place, (given, count) in runtime_intermediate_outputs.items():
        for i, handle in enumerate(reversed(place[-count:])):
            if handle not in wanted:
                continue
            value = wanted[handle]
            pairs[place, _key(value)] = place, _key(_counterpart(value, given, count, i))
    return pairs


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _counterpart(wanted: Any, given: Any, count: int, from_end: int) -> Any:
    """Of the values of an instruction, the one that is to be like `wanted`."""
    if not isinstance(given, list | tuple):
        return given
    one = given[-1 - from_end]
    if isinstance(wanted, list | tuple):
        return one if isinstance(one, list | tuple) else given
    if count == 1 and isinstance(wanted, torch.Tensor):
        # A call with several results, of which the graph goes on with one.
        like = [v for v in given if isinstance(v, torch.Tensor) and v.shape == wanted.shape]
        like = like if len(like) == 1 else [v for v in like if v.dtype == wanted.dtype]
        return like[0] if len(like) == 1 else one
    return one


def is_inference_output_equal(output1: Any, output2: Any) -> bool:
    """Whether two outputs, tensors or lists of them or plain values, are equal to the last bit."""
    if isinstance(output1, torch.Tensor) and isinstance(output2, torch.Tensor):
        return torch.equal(output1, output2)
    if isinstance(output1, list) and isinstance(output2, list):
        return len(output1) == len(output2) and all(
            map(is_inference_output_equal, output1, output2)
        )
    return type(output1) is type(output2) and bool(output1 == output2)


def calculate_mse(ref_values: Sequence[Any], values: Sequence[Any]) -> list[float | None]:
    """The mean squared error of each pair of tensors, to two decimals; None for other values."""
    return _rounded(distances("mse", ref_values, values))


def calculate_snr(ref_values: Sequence[Any], values: Sequence[Any]) -> list[float | None]:
    """The signal-to-noise ratio of each pair of tensors in dB, to two decimals; None for other
    values."""
    return _rounded(distances("snr", ref_values, values))


def calculate_cosine_similarity(
    ref_values: Sequence[Any], values: Sequence[Any]
) -> list[float | None]:
    """The cosine of each pair of tensors, to two decimals; None for other values."""
    return _rounded(distances("cosine_similarity", ref_values, values))


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 2) for value in values]


def convert_to_float_tensor(input_data: Any) -> torch.Tensor:
    """A number or a tensor as a tensor of float64, with 0 for NaN.

    Args:
        input_data: of any shape and dtype.

    Raises:
        UnfitError: it is neither.
    """
    if not isinstance(input_data, torch.Tensor | int | float):
        raise UnfitError(
            f"a {type(input_data).__name__} has no distance from another value: give a tensor or a "
            "number, of several values one after the other",
            code=Code.INVALID_TYPE,
        )
    wide = torch.as_tensor(input_data).detach().cpu().to(torch.float64)
    return torch.nan_to_num(wide) if bool(wide.isnan().any()) else wide


def find_populated_event(event: fb.Event) -> fb.ProfileEvent | fb.DebugEvent:
    """What an event of a trace has: a time, or else a value.

    Raises:
        UnfitError: it has neither.
    """
    found = event.profile_event or event.debug_event
    if found is None:
        raise UnfitError(
            "the event has neither a time nor a value: skip events of memory",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    return found
