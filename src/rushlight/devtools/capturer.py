"""`IntermediateOutputCapturer`: the values of all calls of a graph, by their debug handles."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Interpreter, Node
from torch.utils._pytree import tree_map_only

from rushlight.devtools.values import COUNTED, DebugHandle, handles_of


class IntermediateOutputCapturer(Interpreter):
    """Runs a graph whose calls have debug handles, and keeps what they give."""

    def run_and_capture(self, *args: Any, **kwargs: Any) -> dict[DebugHandle, Any]:
        """Run it.

        Args:
            args, kwargs: as the graph takes them.

        Returns:
            Copies of the values, of several results as a list; of calls that share handles, the
            last one's.
        """
        self._captured: dict[DebugHandle, Any] = {}
        self.run(*args, **kwargs)
        return self._captured

    def run_node(self, n: Node) -> Any:
        """Run a node, and keep its value if it is such a call."""
        result = super().run_node(n)
        if COUNTED.matches(n):
            kept = tree_map_only(torch.Tensor, lambda value: value.detach().clone(), result)
            kept = list(kept) if isinstance(kept, tuple) else kept
            self._captured[handles_of(n.meta["debug_handle"])] = kept
        return result
