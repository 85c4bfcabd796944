"""Give inputs without dimensions two of size 1."""

from __future__ import annotations

import torch
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.exir.transforms.refresh import outdate, refresh

_HELD = ("p_", "b_", "c_")  # torch.export's names of parameters, buffers and constants


class Rank0ToRank1Pass(ExportPass):
    """Lets inputs that are 0-d tensors have the sizes [1, 1]: the program then takes such inputs,
    and what is computed from them has their rank."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        for node in graph_module.graph.find_nodes(op="placeholder"):
            value = node.meta.get("val")
            is_input = not str(node.target).startswith(_HELD)
            if is_input and isinstance(value, torch.Tensor) and value.dim() == 0:
                node.meta["val"] = value.reshape(1, 1)
                for user in node.users:
                    if user.op == "call_function":
                        outdate(user)
                modified = True
        return PassResult(refresh(graph_module) if modified else graph_module, modified)
