"""Replace transposes and permutes that move no element by views."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from rushlight.exir.transforms.bases import RemoveOrReplacePassInterface
from rushlight.exir.transforms.layout.orders import REORDERS, VIEW, order_of, size_arguments
from rushlight.exir.transforms.refresh import call_like


class ReplaceNopTransposeOrPermuteWithViewPass(RemoveOrReplacePassInterface):
    """Replaces transposes and permutes that move only dimensions of size 1 by views.

    A permute that leaves all dimensions in order is removed.
    """

    @property
    def targets(self) -> list[Any]:
        """Transposes and permutes."""
        return list(REORDERS)

    def maybe_remove_or_replace(self, node: Node) -> bool:
        """Replace a call whose larger dimensions stay in order."""
        source: Any = node.args[0]
        order, sizes = order_of(node), source.meta["val"].shape
        moved = [d for d in order if not isinstance(sizes[d], int) or sizes[d] != 1]
        if moved != sorted(moved):
            return False
        if order == sorted(order):
            node.replace_all_uses_with(source, propagate_meta=False)
            return True
        view = call_like(node, VIEW, (source, size_arguments(source, order, node)))
        node.replace_all_uses_with(view, propagate_meta=False)
        return True
