"""`Inspector` for scripts that expect recorded values to be torch's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from rushlight.inspect.trace import inspector as trace


class Inspector(trace.Inspector):
    """`rushlight.inspect.Inspector`, whose recorded values are tensors of torch, not arrays.

    Args:
        args, kwargs: as there.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for block in self.event_blocks:
            block.run_output = _tensors(block.run_output)
            block.reference_output = _tensors(block.reference_output)
            for event in block.events:
                event.debug_data = _tensors(event.debug_data)


def _tensors(values: Any) -> Any:
    """The values, with copies of arrays, which may lie in a file, as tensors."""
    return tree_map_only(np.ndarray, lambda array: torch.from_numpy(array.copy()), values)
