"""Move permutes behind the views that add or remove a dimension of size 1."""

from __future__ import annotations

from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.exir.transforms.bases import RemoveOrReplacePassInterface
from rushlight.exir.transforms.layout.orders import (
    PERMUTE,
    VIEWS,
    extra_one,
    order_of,
    size_arguments,
)
from rushlight.exir.transforms.refresh import call_like, sizes_of

_ROUNDS = 4


class PostponePermuteOpBelowSqueezeOrUnsqueezeLikeView(RemoveOrReplacePassInterface):
    """Turns a permute and a view after it into a view and a permute.

    Views then stand in a row, and so do permutes, for `FuseCascadedViewOps` and
    `FuseCascadedTransposeOrPermuteOps`.
    """

    @property
    def targets(self) -> list[Any]:
        """Permutes."""
        return [PERMUTE]

    def maybe_remove_or_replace(self, node: Node) -> bool:
        """Swap a permute and the view that is its only user."""
        (view, *others) = node.users
        source: Any = node.args[0]
        if others or view.target not in VIEWS or not view.users:
            return False
        into, out = sizes_of(node.meta["val"]), sizes_of(view.meta["val"])
        if into == out:
            view.replace_all_uses_with(node, propagate_meta=False)
            return True
        order = order_of(node)
        sizes: list[int | None] = list(range(len(order)))
        if (added := extra_one(out, into)) is not None:
            sizes.insert(added, None)
            order = [d + 1 if d >= added else d for d in order]
            order.insert(added, added)
        elif (removed := extra_one(into, out)) is not None:
            gone = order.pop(removed)
            del sizes[gone]
            order = [d - 1 if d > gone else d for d in order]
        else:
            return False
        first = call_like(view, view.target, (source, size_arguments(source, sizes, view)))
        second = call_like(view, PERMUTE, (first, order))
        view.replace_all_uses_with(second, propagate_meta=False)
        node.graph.erase_node(view)
        node.graph.erase_node(node)
        return True

    def call(self, graph_module: GraphModule) -> PassResult:
        """Swap until nothing changes; a permute moves at most four times."""
        modified = False
        for _ in range(_ROUNDS):
            if not super().call(graph_module).modified:
                break
            modified = True
        return PassResult(graph_module, modified)
