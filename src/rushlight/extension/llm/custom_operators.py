"""Defines ExecuTorch's operators for language models in torch, when it is imported."""

from __future__ import annotations

from rushlight.ir.custom_ops import executorch

executorch.define()
