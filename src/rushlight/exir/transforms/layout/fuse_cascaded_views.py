"""Fuse a view with the views before it."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from rushlight.exir.transforms.bases import RemoveOrReplacePassInterface
from rushlight.exir.transforms.layout.orders import VIEW


class FuseCascadedViewOps(RemoveOrReplacePassInterface):
    """Lets a view of a view be one of the tensor that both begin with."""

    @property
    def targets(self) -> list[Any]:
        """Views."""
        return [VIEW]

    def maybe_remove_or_replace(self, node: Node) -> bool:
        """Let a view begin with its input's input."""
        before: Any = node.args[0]
        if before.target != VIEW:
            return False
        node.update_arg(0, before.args[0])
        return True
