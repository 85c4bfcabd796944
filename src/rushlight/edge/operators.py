"""Operators of the Edge dialect by ExecuTorch's names: `ops.edge.aten.add.Tensor`.

ExecuTorch wraps each operator of torch for its dialects. Here a graph holds torch's own operators
in every dialect, so `ops.edge.aten.add.Tensor` is `torch.ops.aten.add.Tensor`.
"""

from __future__ import annotations

import torch
from torch._ops import OpOverload, OpOverloadPacket

EdgeOpOverload = OpOverload
EdgeOpOverloadPacket = OpOverloadPacket


class _Operators:
    """Operators of one dialect after the other, as `exir_ops` of ExecuTorch."""

    edge = torch.ops
    backend = torch.ops


ops = _Operators()
