"""Separate scales for values that are joined with others and also used elsewhere.

The inputs of `cat` and `stack` share one scale, that of the widest. With it a value that is also
used elsewhere would lose accuracy there: beside values of 0.1, those of 1e-4 become zeros. So the
join gets an `alias` of the value, which is quantised again. If calibration finds that both scales
are about the same, they share one.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import DerivedObserverOrFakeQuantize

from rushlight.quantization.annotate import CLAMPS, JOINS, MOVES, PARTED, SIZES

aten = torch.ops.aten

# Scales within this ratio are shared: it costs less than 4 dB, and saves a requantization.
_NEAR = 1.5


def part_joins(model: GraphModule) -> None:
    """Replace joined values that are used elsewhere by aliases in the join; `model` is changed."""
    for node in list(model.graph.nodes):
        if node.target not in JOINS:
            continue
        for x in node.all_input_nodes:
            if PARTED in x.meta or not _is_used_elsewhere(x):
                continue
            with model.graph.inserting_before(node):
                same = model.graph.call_function(aten.alias.default, (x,))
            same.meta = {k: v for k, v in x.meta.items() if k != "quantization_annotation"}
            same.meta[PARTED] = True
            node.replace_input_with(x, same)


def _is_used_elsewhere(x: Any) -> bool:
    """Whether a computed value, or a value that it was moved from, has other users."""
    while isinstance(x, Node) and x.op in ("call_function", "placeholder"):
        if sum(user.target not in SIZES for user in x.users) > 1:
            return True
        if not (x.target in MOVES or x.target in CLAMPS or x.target is operator.getitem):
            return False
        x = x.args[0]
    return False


def drop_parted(model: GraphModule, nodes: list[Node]) -> None:
    """Remove these aliases, so that joins read the values themselves; `model` is changed."""
    for node in nodes:
        node.replace_all_uses_with(node.args[0])  # type: ignore[arg-type]
        model.graph.erase_node(node)
    model.recompile()


def parted(model: GraphModule) -> list[Node]:
    """The aliases that `part_joins` made."""
    return [n for n in model.graph.nodes if PARTED in n.meta and n.target is aten.alias.default]


def share_near_scales(prepared: GraphModule) -> None:
    """Give a value and its join one observer, if their scales are about the same.

    Args:
        prepared: the calibrated model; it is changed.
    """
    for node in parted(prepared):
        before: Any = node.args[0]
        behind = next(iter(node.users))
        if before.op != "call_module" or behind.op != "call_module":
            continue
        own, joint = (prepared.get_submodule(str(n.target)) for n in (before, behind))
        if own is not joint and _scale(joint) <= _NEAR * _scale(own):
            _replace(prepared, own, joint)


def _scale(observer: Any) -> float:
    return float(observer.calculate_qparams()[0])


def _replace(prepared: GraphModule, module: torch.nn.Module, by: torch.nn.Module) -> None:
    for name, child in list(prepared.named_modules(remove_duplicate=False)):
        if child is module:
            prepared.set_submodule(name, by)
        elif isinstance(child, DerivedObserverOrFakeQuantize):
            child.obs_or_fqs = [by if one is module else one for one in child.obs_or_fqs]


def requantise_joined(converted: GraphModule) -> None:
    """Remove the aliases from a converted graph; only a requantization remains of one, if the
    scales differ. `converted` is changed."""
    for node in parted(converted):
        back: Any = node.args[0]
        [there] = node.users
        again = next(iter(there.users))
        node.replace_all_uses_with(back)
        if back.args[1:] == again.args[1:]:
            again.replace_all_uses_with(back)
            converted.graph.erase_node(again)
            converted.graph.erase_node(there)
        converted.graph.erase_node(node)
    converted.recompile()
