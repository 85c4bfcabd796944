"""ExecuTorch's older Python interface of the runtime, `extension.pybindings.portable_lib`.

Inputs and outputs are flat lists of torch tensors and numbers. Prefer `rushlight.load`, which gives
the structure that the model returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from rushlight.errors import Code, RunError
from rushlight.files import AnyPath
from rushlight.runtime.arrays import value_of
from rushlight.runtime.load import load
from rushlight.runtime.registries import backend_registry, operator_registry
from rushlight.runtime.runtime import Method, MethodMeta, Program, Runtime, Verification
from rushlight.runtime.source import Source
from rushlight.serialize.bundle import read_bundle


class ExecuTorchModule:
    """A program whose methods are loaded when they first run.

    Args:
        program: the program without data files, which tells of its methods.
        open_with_data: opens it with its data file, before the first method is loaded; None: there
            is none.
    """

    def __init__(
        self, program: Program, open_with_data: Callable[[], Program] | None = None
    ) -> None:
        self._program = program
        self._open_with_data = open_with_data
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

    def __call__(
        self, inputs: Sequence[Any] | torch.Tensor = (), clone_outputs: bool = True
    ) -> list[Any]:
        """Run `forward`; see `run_method`. A tensor is its one input."""
        return self.run_method("forward", _several(inputs), clone_outputs)

    def plan_execute(self, method_name: str, clone_outputs: bool = True) -> list[Any]:
        """Run a method that takes no inputs; see `run_method`."""
        return self.run_method(method_name, (), clone_outputs)

    def method_names(self) -> list[str]:
        """The names of the methods."""
        return sorted(self._program.method_names)

    def method_meta(self, method_name: str) -> MethodMeta:
        """What a method takes and returns."""
        return _metadata(self._program, method_name)

    def has_etdump(self) -> bool:
        """Whether runs are recorded."""
        return self._running.is_traced

    def write_etdump_result_to_file(
        self, path: AnyPath, debug_buffer_path: AnyPath | None = None
    ) -> None:
        """Write what was recorded; see `Program.write_etdump_result_to_file`."""
        self._running.write_etdump_result_to_file(path, debug_buffer_path)

    @cached_property
    def _running(self) -> Program:
        return self._open_with_data() if self._open_with_data is not None else self._program

    def _method(self, name: str) -> ExecuTorchMethod:
        if name not in self._methods:
            _metadata(self._program, name)
            self._methods[name] = self._running.load_method(name)
        return ExecuTorchMethod(self._methods[name])


class ExecuTorchProgram:
    """A program whose methods are loaded one by one."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def num_methods(self) -> int:
        """How many methods there are."""
        return len(self._program.method_names)

    def get_method_name(self, index: int) -> str:
        """The name of a method.

        Raises:
            RunError: there are fewer.
        """
        names = sorted(self._program.method_names)
        if not 0 <= index < len(names):
            raise RunError(
                f"there is no method {index}: the program has {len(names)}",
                code=Code.INVALID_ARGUMENT,
            )
        return names[index]

    def load_method(self, name: str) -> ExecuTorchMethod:
        """Load a method."""
        _metadata(self._program, name)
        return ExecuTorchMethod(self._program.load_method(name))

    def method_meta(self, name: str) -> MethodMeta:
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

    def __call__(
        self, inputs: Sequence[Any] | torch.Tensor = (), clone_outputs: bool = True
    ) -> list[Any]:
        """Run the method; see `ExecuTorchModule.run_method`. A tensor is its one input."""
        return self.call(_several(inputs), clone_outputs)

    def method_meta(self) -> MethodMeta:
        """What the method takes and returns."""
        return self._method.metadata

    def get_attribute(self, name: str) -> torch.Tensor:
        """A copy of a buffer that the method keeps; see `rushlight.runtime.runtime.Method`."""
        value: torch.Tensor = self._method.get_attribute(name, as_torch=True)
        return value


class BundledModule:
    """A bundled program: a program with test cases.

    Args:
        content: the bytes of its file (.bpte).

    Raises:
        LoadError: they are no bundled program.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._suites = read_bundle(content).method_test_suites

    def verify_result_with_bundled_expected_output(
        self, method_name: str, testset_idx: int, rtol: float = 1e-5, atol: float = 1e-8
    ) -> list[Any]:
        """Run a test case, and compare with its expected outputs.

        Args:
            method_name: whose case.
            testset_idx: which of its cases.
            rtol, atol: how far outputs may be from expected ones.

        Returns:
            the outputs.

        Raises:
            RunError: there is no such case, the run fails, or outputs differ.
        """
        result = load(self.content, methods=[method_name])[method_name].verify(
            testset_idx, rtol=rtol, atol=atol
        )
        if not result.passed:
            raise RunError(result.message, code=Code.INVALID_STATE, where=method_name)
        cases = [c for s in self._suites if s.method_name == method_name for c in s.test_cases]
        inputs = [value_of(value) for value in cases[testset_idx].inputs]
        return _load_for_executorch_from_bundled_program(self).run_method(method_name, inputs)


def _load_for_executorch(
    path: AnyPath,
    data_path: AnyPath | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Open a program in a file; the arguments are those of `Runtime.load_program`."""
    return _opened(path, data_path, enable_etdump, debug_buffer_size, program_verification)


def _load_for_executorch_from_buffer(
    buffer: bytes,
    data_map_buffer: bytes | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Open a program in memory; the arguments are those of `Runtime.load_program`."""
    return _opened(buffer, data_map_buffer, enable_etdump, debug_buffer_size, program_verification)


def _load_bundled_program_from_buffer(
    buffer: bytes, non_const_pool_size: int = 16384
) -> BundledModule:
    """Read a bundled program; `non_const_pool_size` is not needed: arenas are as large as they must
    be."""
    return BundledModule(buffer)


def _load_for_executorch_from_bundled_program(
    module: BundledModule,
    data_map_buffer: Source | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
) -> ExecuTorchModule:
    """Open the program of a bundled program, with a data file: its path or its bytes."""
    return _opened(module.content, data_map_buffer, enable_etdump, debug_buffer_size)


def _opened(
    source: Source,
    data: Source | None,
    enable_etdump: bool,
    debug_buffer_size: int,
    verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    def opened(data_path: Source | None) -> Program:
        return Runtime.get().load_program(
            source,
            verification=verification,
            enable_etdump=enable_etdump,
            debug_buffer_size=debug_buffer_size,
            data_path=data_path,
        )

    # A data file that does not fit is an error of the first run, as in ExecuTorch.
    return ExecuTorchModule(opened(None), None if data is None else lambda: opened(data))


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


def _metadata(program: Program, name: str) -> MethodMeta:
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


def _several(inputs: Sequence[Any] | torch.Tensor) -> Sequence[Any]:
    return (inputs,) if isinstance(inputs, torch.Tensor) else inputs


def _in_torch(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
