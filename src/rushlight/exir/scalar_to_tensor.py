"""Numbers that an operator takes as tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from rushlight.edge import ExportPass
from rushlight.edge.export_pass import ArgSchema, NodeMetadata, ProxyValue, map_args


class ScalarToTensorPass(ExportPass):
    """Gives calls tensors, which the graph holds, in place of numbers where the schema has them."""

    def call_operator(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: NodeMetadata
    ) -> ProxyValue:
        """Emit the call with its tensors."""

        def made(value: Any, schema: ArgSchema) -> Any:
            is_number = isinstance(value, bool | int | float)
            if not is_number or not isinstance(schema.type, torch.TensorType):
                return value
            with _disable_current_modes():
                return torch.tensor(value)

        args, kwargs = map_args(op, made, args, kwargs)
        return super().call_operator(op, args, kwargs, meta)
