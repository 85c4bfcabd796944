"""Runs a graph of the Edge dialect; lists calls with dtypes that their operators do not take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Interpreter, Node

from rushlight.edge.dtype_trials import TensorNames
from rushlight.edge.operators import EdgeOpOverload
from rushlight.errors import Code, ExportError


class EdgeOpArgValidator(Interpreter):
    """Runs a graph and checks the dtypes of each call.

    Attributes:
        violating_ops: for each operator with a call that it does not take: the dtypes by the names
            of its tensors (results are `__ret_0`…), and the node.
    """

    def __init__(self, graph_module: GraphModule) -> None:
        super().__init__(graph_module)
        self.violating_ops: dict[EdgeOpOverload, tuple[dict[str, torch.dtype | None], Node]] = {}

    def run_node(self, n: Node) -> Any:
        """Run one node.

        Raises:
            ExportError: it fails, or is a call of a lowered module or of another function over
                graphs, which are not run here.
        """
        if isinstance(n.target, HigherOrderOperator):
            raise ExportError(
                f"{n.name} calls {n.target}, which cannot be run here: validate the graph before "
                f"to_backend, and each branch on its own",
                code=Code.NOT_SUPPORTED,
            )
        try:
            result = super().run_node(n)
        except ExportError:
            raise
        except Exception as error:
            raise ExportError(f"{n.name} fails: {error}", code=Code.INVALID_ARGUMENT) from error
        if isinstance(n.target, EdgeOpOverload):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            types = _types(n.target, args, kwargs, n.meta["val"])
            if not n.target._schema.dtype_constraint.validate(types):
                self.violating_ops[n.target] = (types, n)
        return result


def _types(
    op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
) -> dict[str, torch.dtype | None]:
    """The dtypes of a call's tensors; None for an empty list."""
    schema = op._schema
    names = TensorNames.of(schema)
    given = dict(zip((a.name for a in schema.arguments), args, strict=False)) | dict(kwargs)
    results = result if isinstance(result, tuple | list) and len(names.results) > 1 else (result,)
    values = {name: given.get(name) for name in names.inputs}
    values |= dict(zip(names.results, results, strict=False))
    types: dict[str, torch.dtype | None] = {}
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            types[name] = value.dtype
        elif isinstance(value, list | tuple):
            types[name] = value[0].dtype if value else None
    return types
