"""ExecuTorch's older Python interface of the runtime, `extension.pybindings.portable_lib`.

Inputs and outputs are flat lists of torch tensors and numbers. Prefer `rushlight.load`, which gives
the structure that the model returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rushlight.errors import Code, RunError
from rushlight.files import AnyPath
from rushlight.runtime.registries import backend_registry, operator_registry
from rushlight.runtime.runtime import Method, MethodMetadata, Program, Runtime, Verification
from rushlight.runtime.source import Source


class ExecuTorchModule:
    """A program whose methods are loaded when they first run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._methods: dict[str, Method] = {}

    def run_method(
        self, method_name: str, inputs: Sequence[Any] = (), clone_outputs: bool = True
    ) -> list[Any]:
        """Run a method.

        Args:
            method_name: its name.
            inputs: torch tensors, numbers and None, flat.
            clone_outputs: outputs own their memory in any case.

        Raises:
            RunError: there is no such method, the inputs are refused, or the run fails.
        """
        return self._method(method_name).call(inputs, clone_outputs)

    def forward(self, inputs: Sequence[Any] = (), clone_outputs: bool = True) -> list[Any]:
        """Run `forward`; see `run_method`."""
        return self.run_method("forward", inputs, clone_outputs)

    __call__ = forward

    def plan_execute(self, method_name: str) -> None:
        """Load a method and take its memory."""
        self._method(method_name)

    def method_names(self) -> list[str]:
        """The names of the methods."""
        return sorted(self._program.method_names)

    def method_meta(self, method_name: str) -> MethodMetadata:
        """What a method takes and returns."""
        return _metadata(self._program, method_name)

    def has_etdump(self) -> bool:
        """Whether runs are recorded."""
        return self._program.is_traced

    def write_etdump_result_to_file(
        self, path: AnyPath, debug_buffer_path: AnyPath | None = None
    ) -> None:
        """Write what was recorded; see `Program.write_etdump_result_to_file`."""
        self._program.write_etdump_result_to_file(path, debug_buffer_path)

    def _method(self, name: str) -> ExecuTorchMethod:
        if name not in self._methods:
            _metadata(self._program, name)
            self._methods[name] = self._program.load_method(name)
        return ExecuTorchMethod(self._methods[name])


class ExecuTorchProgram:
    """A program whose methods are loaded one by one."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def num_methods(self) -> int:
        """How many methods there are."""
        return len(self._program.method_names)

    def get_method_name(self, index: int) -> str:
        """The name of a method; IndexError if there are fewer."""
        return sorted(self._program.method_names)[index]

    def load_method(self, name: str) -> ExecuTorchMethod:
        """Load a method."""
        _metadata(self._program, name)
        return ExecuTorchMethod(self._program.load_method(name))

    def method_meta(self, name: str) -> MethodMetadata:
        """What a method takes and returns."""
        return _metadata(self._program, name)

    def has_etdump(self) -> bool:
        """Whether runs are recorded."""
        return self._program.is_traced

    def write_etdump_result_to_file(
        self, path: AnyPath, debug_buffer_path: AnyPath | None = None
    ) -> None:
        """Write what was recorded; see `Program.write_etdump_result_to_file`."""
        self._program.write_etdump_result_to_file(path, debug_buffer_path)


class ExecuTorchMethod:
    """A loaded method."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self._inputs: Sequence[Any] = ()
        self._outputs: list[Any] = []

    def set_inputs(self, inputs: Sequence[Any]) -> None:
        """The inputs of the next `execute()`."""
        self._inputs = inputs

    def execute(self) -> None:
        """Run the method; `get_outputs()` has what it returned."""
        self._outputs = [_in_torch(value) for value in self._method.execute(_checked(self._inputs))]

    def get_outputs(self, clone_outputs: bool = True) -> list[Any]:
        """What the last run returned."""
        return list(self._outputs)

    def call(self, inputs: Sequence[Any] = (), clone_outputs: bool = True) -> list[Any]:
        """Run the method with inputs; see `ExecuTorchModule.run_method`."""
        self.set_inputs(inputs)
        self.execute()
        return self.get_outputs(clone_outputs)

    __call__ = call

    def method_meta(self) -> MethodMetadata:
        """What the method takes and returns."""
        return self._method.metadata


def _load_for_executorch(
    path: AnyPath,
    data_path: AnyPath | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Open a program in a file; the arguments are those of `Runtime.load_program`."""
    program = Runtime.get().load_program(
        path,
        verification=program_verification,
        enable_etdump=enable_etdump,
        debug_buffer_size=debug_buffer_size,
        data_path=data_path,
    )
    return ExecuTorchModule(program)


def _load_for_executorch_from_buffer(
    buffer: bytes,
    data_map_buffer: bytes | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Open a program in memory; the arguments are those of `Runtime.load_program`."""
    program = Runtime.get().load_program(
        buffer,
        verification=program_verification,
        enable_etdump=enable_etdump,
        debug_buffer_size=debug_buffer_size,
        data_path=data_map_buffer,
    )
    return ExecuTorchModule(program)


def _load_program(
    path: Source,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.Minimal,
) -> ExecuTorchProgram:
    """Open a program whose methods are loaded one by one."""
    program = Runtime.get().load_program(
        path,
        verification=program_verification,
        enable_etdump=enable_etdump,
        debug_buffer_size=debug_buffer_size,
    )
    return ExecuTorchProgram(program)


_load_program_from_buffer = _load_program


def _get_operator_names() -> list[str]:
    """The operators that have a kernel."""
    return list(operator_registry.operator_names)


def _get_registered_backend_names() -> list[str]:
    """The ids of the backends that are registered."""
    return list(backend_registry.registered_backend_names)


def _is_available(backend_name: str) -> bool:
    """Whether a backend is registered."""
    return backend_name in backend_registry.registered_backend_names


def _metadata(program: Program, name: str) -> MethodMetadata:
    """The metadata of a method.

    Raises:
        RunError: there is no such method.
    """
    if name not in program.method_names:
        raise RunError(
            f"there is no method {name!r}; the program has: "
            f"{', '.join(sorted(program.method_names))}",
            code=Code.INVALID_ARGUMENT,
        )
    return program.metadata(name)


def _checked(inputs: Sequence[Any]) -> Sequence[Any]:
    for index, value in enumerate(inputs):
        if isinstance(value, str):
            raise RunError(
                f"input {index} is a string: give torch tensors, numbers or None",
                code=Code.INVALID_ARGUMENT,
            )
    return inputs


def _in_torch(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
