"""From a module to a program and a file, in one call each."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rushlight.edge import EdgeCompileConfig
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.manager import EdgeProgramManager, ExecutorchProgramManager, to_edge

_CONFIG = EdgeCompileConfig(_check_ir_validity=True, _skip_dim_order=True)
_LOG = logging.getLogger(__name__)


def export_to_edge(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    *,
    example_kwarg_inputs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    edge_constant_methods: Mapping[str, Any] | None = None,
    edge_compile_config: EdgeCompileConfig | None = _CONFIG,
    strict: bool = True,
    verbose: bool = True,
) -> EdgeProgramManager:
    """Capture a module, and lower it to the Edge dialect.

    Args:
        model: the module.
        example_inputs, example_kwarg_inputs, dynamic_shapes, strict: as `torch.export.export` takes
            them.
        edge_constant_methods, edge_compile_config: as `to_edge` takes them.
        verbose: log the graphs.

    Raises:
        ExportError: the module cannot be lowered.
    """
    captured = torch.export.export(
        model, example_inputs, example_kwarg_inputs, dynamic_shapes=dynamic_shapes, strict=strict
    )
    if verbose:
        _LOG.info("captured graph:\n%s", captured.graph)
    edge = to_edge(
        captured,
        constant_methods=edge_constant_methods,
        compile_config=edge_compile_config or EdgeCompileConfig(_check_ir_validity=False),
    )
    if verbose:
        _LOG.info("graph in the Edge dialect:\n%s", edge.exported_program())
    return edge


def export_to_exec_prog(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    *,
    example_kwarg_inputs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    edge_constant_methods: Mapping[str, Any] | None = None,
    edge_compile_config: EdgeCompileConfig | None = _CONFIG,
    backend_config: ExecutorchBackendConfig | None = None,
    strict: bool = True,
) -> ExecutorchProgramManager:
    """Capture a module, which is put into evaluation mode, and make a program of it.

    Args:
        model, example_inputs, example_kwarg_inputs, dynamic_shapes: as for `export_to_edge`.
        edge_constant_methods, edge_compile_config, strict: as for `export_to_edge`.
        backend_config: as `EdgeProgramManager.to_executorch` takes it.

    Raises:
        ExportError: the module cannot be lowered.
    """
    edge = export_to_edge(
        model.eval(),
        example_inputs,
        example_kwarg_inputs=example_kwarg_inputs,
        dynamic_shapes=dynamic_shapes,
        edge_constant_methods=edge_constant_methods,
        edge_compile_config=edge_compile_config,
        strict=strict,
    )
    made: Any = edge.to_executorch(backend_config)
    program: ExecutorchProgramManager = made
    return program


def save_pte_program(prog: ExecutorchProgramManager, model_name: str, output_dir: str = "") -> str:
    """Write a program to a file, and its data files into `output_dir`.

    Args:
        prog: the program.
        model_name: the file's path if it ends with ".pte", or else its name in `output_dir` without
            that ending.
        output_dir: a folder, which must exist.

    Returns:
        The file's path.

    Raises:
        OSError: a file cannot be written.
    """
    is_path = model_name.endswith(".pte")
    path = model_name if is_path else str(Path(output_dir) / f"{model_name}.pte")
    prog.save(path)
    prog.write_tensor_data_to_file(output_dir)
    _LOG.info("wrote %s", path)
    return path
