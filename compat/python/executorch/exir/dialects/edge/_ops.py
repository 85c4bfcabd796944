"""The classes of the Edge dialect's operators: torch's own."""

from __future__ import annotations

from torch._ops import OpOverload as EdgeOpOverload
from torch._ops import OpOverloadPacket as EdgeOpOverloadPacket

from executorch._absent import absent

__all__ = ["EdgeOpOverload", "EdgeOpOverloadPacket"]

__getattr__ = absent(__name__, "ops/ops.yaml has the dtypes that kernels take")
