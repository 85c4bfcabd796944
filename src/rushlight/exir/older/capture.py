"""ExecuTorch's older way to lower a function, `exir.capture(f, args).to_edge().to_executorch()`.

It is `torch.export.export`, `to_edge` and `to_executorch` in other words; new code calls those.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram

from rushlight.edge import EdgeCompileConfig
from rushlight.errors import Code, ExportError
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.manager import EdgeProgramManager, ExecutorchProgramManager, to_edge
from rushlight.exir.transform import transform


class CallSpec(NamedTuple):
    """The containers of a captured function's inputs and outputs."""

    in_spec: Any
    out_spec: Any


@dataclass
class CaptureConfig:
    """Options of `capture`.

    Attributes:
        pt2_mode, enable_functionalization: must be True: graphs come from torch.export, and
            to_edge makes them functional.
        enable_dynamic_shape, enable_aot: not needed: sizes are dynamic where `dynamic_shapes` of
            `capture` says so, and parameters are always inputs of the graph.
    """

    pt2_mode: bool = True
    enable_functionalization: bool = True
    enable_dynamic_shape: bool = False
    enable_aot: bool = False

    def __post_init__(self) -> None:
        for name in ("pt2_mode", "enable_functionalization"):
            if not getattr(self, name):
                raise ExportError(
                    f"CaptureConfig({name}=False) is not supported: leave it out",
                    code=Code.NOT_SUPPORTED,
                )


class ExirExportedProgram:
    """A captured program on its way.

    Attributes:
        exported_program: the program.
        after_to_edge_passes: whether it is of the Edge dialect.
        compile_config: how it was or will be lowered to it.
    """

    def __init__(
        self,
        exported_program: ExportedProgram,
        after_to_edge_passes: bool,
        compile_config: EdgeCompileConfig | None = None,
    ) -> None:
        self.exported_program = exported_program
        self.after_to_edge_passes = after_to_edge_passes
        self.compile_config = compile_config or EdgeCompileConfig()

    def __call__(self, *args: Any) -> Any:
        """Run the program in PyTorch."""
        return self.exported_program.module()(*args)

    def transform(self, *passes: Any) -> ExirExportedProgram:
        """Run passes over the program; returns itself."""
        self.exported_program = transform(self.exported_program, *passes)
        return self

    def to_edge(self, config: EdgeCompileConfig | None = None) -> ExirExportedProgram:
        """The program in the Edge dialect."""
        config = config or EdgeCompileConfig()
        edge = to_edge(self.exported_program, compile_config=config)
        return ExirExportedProgram(edge.exported_program(), True, config)

    def to_executorch(
        self, config: ExecutorchBackendConfig | None = None
    ) -> ExecutorchProgramManager:
        """The finished program; ExportError before `to_edge`."""
        if not self.after_to_edge_passes:
            raise ExportError("Must run to_edge before to_executorch.", code=Code.INVALID_STATE)
        manager = EdgeProgramManager(self.exported_program, compile_config=self.compile_config)
        made: Any = manager.to_executorch(config)
        return made  # type: ignore[no-any-return]

    def dump(self) -> None:
        """Print the graph."""
        print(self.exported_program.graph_module.graph)


class _Called(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def capture(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    config: CaptureConfig | None = None,
    dynamic_shapes: Any = None,
) -> ExirExportedProgram:
    """Capture a function, a module, or a method of one.

    Args:
        f: what to capture.
        args: example inputs.
        config: see `CaptureConfig`; changes nothing.
        dynamic_shapes: as those of `torch.export.export`.

    Raises:
        ExportError: `args` is no tuple.
    """
    warnings.warn(
        "exir.capture is deprecated: call torch.export.export, and give its result to to_edge",
        DeprecationWarning,
        stacklevel=2,
    )
    if not isinstance(args, tuple):
        raise ExportError(
            f"args is a {type(args).__name__}: give the example inputs as a tuple",
            code=Code.INVALID_TYPE,
        )
    owner = f.__self__ if isinstance(f, MethodType) else f
    module = owner if isinstance(owner, torch.nn.Module) else _Called(f)
    chosen = _forward(module, f) if owner is not f and module is owner else contextlib.nullcontext()
    with chosen:
        program = torch.export.export(module, args, dynamic_shapes=dynamic_shapes, strict=True)
    return ExirExportedProgram(program, False)


@contextlib.contextmanager
def _forward(module: torch.nn.Module, method: Any) -> Any:
    """A module whose `forward` is another method of it."""
    module.forward = method
    try:
        yield
    finally:
        del module.forward
