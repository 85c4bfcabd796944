"""The operators by dialect: in ours, nodes of every dialect call torch's own operators."""

from __future__ import annotations

from types import SimpleNamespace

import torch

__all__ = ["ops"]

ops = SimpleNamespace(edge=torch.ops, backend=torch.ops)
