"""Fuse a transpose or permute with the one before it."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from rushlight.exir.transforms.bases import RemoveOrReplacePassInterface
from rushlight.exir.transforms.layout.orders import (
    PERMUTE,
    REORDERS,
    VIEW,
    VIEWS,
    extra_one,
    order_of,
    reordered,
    size_arguments,
)
from rushlight.exir.transforms.refresh import call_like, sizes_of


class FuseCascadedTransposeOrPermuteOps(RemoveOrReplacePassInterface):
    """Replaces two transposes or permutes in a row by one permute, or by nothing.

    A view between them may add or remove a dimension of size 1, if both together leave the others
    in order: then a view alone is left.
    """

    @property
    def targets(self) -> list[Any]:
        """Transposes and permutes."""
        return list(REORDERS)

    def maybe_remove_or_replace(self, node: Node) -> bool:
        """Fuse a call with those before it."""
        before: Any = node.args[0]
        if before.target in REORDERS:
            return _fuse(node, before)
        return before.target in VIEWS and _fuse_across(node, before)


def _fuse(node: Node, before: Node) -> bool:
    source: Any = before.args[0]
    order = reordered(node, order_of(before))
    if order == sorted(order):
        node.replace_all_uses_with(source, propagate_meta=False)
    else:
        made = call_like(node, PERMUTE, (source, order))
        node.replace_all_uses_with(made, propagate_meta=False)
    return True


def _fuse_across(node: Node, view: Node) -> bool:
    first: Any = view.args[0]
    if len(view.users) != 1 or first.target not in REORDERS:
        return False
    source: Any = first.args[0]
    dims: list[int | None] = [*order_of(first)]
    into, out = sizes_of(first.meta["val"]), sizes_of(view.meta["val"])
    if (added := extra_one(out, into)) is not None:
        dims.insert(added, None)
    elif (removed := extra_one(into, out)) is not None:
        del dims[removed]
    else:
        return False
    dims = [dims[i] for i in order_of(node)]
    kept = [d for d in dims if d is not None]
    if kept != sorted(kept):
        return False
    sizes = size_arguments(source, dims, node)
    made = call_like(node, VIEW, (source, sizes))
    same = sizes_of(made.meta["val"]) == sizes_of(source.meta["val"])
    node.replace_all_uses_with(source if same else made, propagate_meta=False)
    return True
