"""The configurations that scripts for ExecuTorch lower to XNNPACK with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig


def get_xnnpack_edge_compile_config(skip_dim_order: bool = False) -> EdgeCompileConfig:
    """How to lower to the Edge dialect.

    Args:
        skip_dim_order: keep operators that take memory formats, as `EdgeCompileConfig` says.
    """
    return EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=skip_dim_order)


def get_xnnpack_executorch_backend_config(
    additional_passes: Sequence[Any] | None = None,
) -> ExecutorchBackendConfig:
    """How to finish a program.

    Args:
        additional_passes: run first.
    """
    return ExecutorchBackendConfig(passes=list(additional_passes or ()))
