"""ExecuTorch's Python interface of the runtime: `Runtime.get().load_program(…)`.

A thin layer over the same extension as `rushlight.load`. Prefer `rushlight.load`, which rebuilds
structures and takes keywords; here inputs and outputs are flat sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from rushlight import _core
from rushlight.errors import Code, RunError
from rushlight.files import AnyPath
from rushlight.runtime.backends import BackendOptions, find_backends
from rushlight.runtime.check import check_inputs
from rushlight.runtime.contract import Contract
from rushlight.runtime.failures import load_error, missing_error, run_error
from rushlight.runtime.load import open_program, read_contracts, set_backend_options
from rushlight.runtime.registries import (
    BackendRegistry,
    OperatorRegistry,
    backend_registry,
    operator_registry,
)
from rushlight.runtime.source import Source, describe_source
from rushlight.runtime.state import State
from rushlight.runtime.trace import Recording, TraceOptions
from rushlight.schema.common import ScalarType
from rushlight.schema.sizes import scalar_type_of

# How C++ spells what Python's names, with a capital, do not.
_SPELLED = {
    ScalarType.BFLOAT16: "BFloat16",
    ScalarType.UINT16: "UInt16",
    ScalarType.UINT32: "UInt32",
    ScalarType.UINT64: "UInt64",
    ScalarType.FLOAT8E5M2: "Float8_e5m2",
    ScalarType.FLOAT8E4M3FN: "Float8_e4m3fn",
    ScalarType.FLOAT8E5M2FNUZ: "Float8_e5m2fnuz",
    ScalarType.FLOAT8E4M3FNUZ: "Float8_e4m3fnuz",
}


class Verification(Enum):
    """How much of a program is checked before it is used. Both check everything."""

    Minimal = 0
    InternalConsistency = 1


class TensorInfo:
    """What a program says about one of its tensors."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self._meta = meta

    def sizes(self) -> tuple[int, ...]:
        """The sizes; for a dynamic tensor the greatest."""
        return tuple(self._meta["sizes"])

    def dtype(self) -> ScalarType:
        """The element type, whose number is torch's: 6 for float32."""
        return scalar_type_of(self._meta["dtype"])

    def is_memory_planned(self) -> bool:
        """Whether it has memory in an arena, or is a constant."""
        return bool(self._meta["planned"] or self._meta["constant"])

    def nbytes(self) -> int:
        """The number of bytes for `sizes`."""
        return int(self._meta["nbytes"])

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.sizes()))
        kind = _SPELLED.get(self.dtype(), self.dtype().name.capitalize())
        return (
            f"TensorInfo(sizes=[{sizes}], dtype={kind}, "
            f"is_memory_planned={self.is_memory_planned()}, nbytes={self.nbytes()})"
        )


class MethodMeta:
    """What a program says about one of its methods."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self._meta = meta

    def name(self) -> str:
        """The method's name."""
        return str(self._meta["name"])

    def num_inputs(self) -> int:
        """How many flattened inputs it takes."""
        return len(self._meta["inputs"])

    def num_outputs(self) -> int:
        """How many flattened outputs it returns."""
        return len(self._meta["outputs"])

    def num_attributes(self) -> int:
        """How many buffers it keeps from one call to the next, of those with names."""
        return len(self._meta["attributes"])

    def input_tensor_meta(self, index: int) -> TensorInfo:
        """A tensor input; IndexError for an input of another kind, or if there are fewer."""
        return self._tensor("input", index)

    def output_tensor_meta(self, index: int) -> TensorInfo:
        """A tensor output; IndexError for an output of another kind, or if there are fewer."""
        return self._tensor("output", index)

    def attribute_tensor_meta(self, index: int) -> TensorInfo:
        """A buffer; IndexError if there are fewer."""
        return self._tensor("attribute", index)

    def _tensor(self, what: str, index: int) -> TensorInfo:
        listed = self._meta[f"{what}s"]
        if not 0 <= index < len(listed):
            raise IndexError(f"{self.name()}: there is no {what} {index}: it has {len(listed)}")
        kind = listed[index].get("kind", "tensor")
        if kind != "tensor":
            raise IndexError(f"{self.name()}: {what} {index} is not a tensor but of kind {kind}")
        return TensorInfo(listed[index])

    def __repr__(self) -> str:
        inputs, outputs = (
            [repr(TensorInfo(m)) if m["kind"] == "tensor" else m["kind"] for m in self._meta[what]]
            for what in ("inputs", "outputs")
        )
        return (
            f"MethodMeta(name={self.name()!r}, num_inputs={len(inputs)}, "
            f"input_tensor_meta={inputs}, num_outputs={len(outputs)}, "
            f"output_tensor_meta={outputs})"
        )


class Method:
    """A loaded method."""

    def __init__(self, core: _core.Method, program: _core.Program, contract: Contract, meta: Any):
        core.narrow(contract.input_specs(), len(contract.symbols))
        core.set_structure("list")
        self._core = core
        self._program = program
        self._contract = contract
        self.metadata = MethodMeta(meta)

    def execute(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Run the method on flattened inputs and return flattened outputs, which own their memory.

        Torch tensors are returned if an input is one, else NumPy arrays.

        Raises:
            RunError: if the inputs are refused or the run fails.
        """
        name, expected = self.metadata.name(), self._contract.inputs
        if len(inputs) != len(expected):
            raise RunError(
                f"got {len(inputs)} inputs, the method takes {len(expected)}",
                code=Code.INVALID_ARGUMENT,
                where=name,
            )
        try:
            if not self._contract.needs_python:
                outputs = self._core.call(list(inputs))
                if outputs is not NotImplemented:
                    return outputs  # type: ignore[no-any-return]
            check_inputs(name, self._contract, inputs)
            outputs = self._core.call(self._contract.to_program(inputs))
        except _core.Failure as failure:
            raise run_error(failure, self._program) from failure.__cause__
        if outputs is NotImplemented:
            raise RunError("the inputs do not fit", code=Code.INVALID_ARGUMENT, where=name)
        return outputs  # type: ignore[no-any-return]

    def get_attribute(self, name: str, *, as_torch: bool = False) -> Any:
        """A copy of a buffer that the method keeps from one call to the next.

        Args:
            name: the buffer's name in the model.
            as_torch: return a torch tensor instead of a NumPy array.

        Raises:
            RunError: the method keeps none of that name.
        """
        state, method = State(self._program), self.metadata.name()
        for known in (f"{method}:{name}", name):
            if known in state:
                return state.read(known, as_torch=as_torch)
        raise RunError(
            f"there is no attribute {name!r}; kept are: {', '.join(state) or 'none'}",
            code=Code.NOT_FOUND,
            where=method,
        )


class Program:
    """An opened program; its methods are loaded one by one and share arenas for shared state.

    Attributes:
        is_traced: whether it was loaded with `enable_etdump`.
    """

    def __init__(self, core: _core.Program, where: str, is_traced: bool = False) -> None:
        self._core = core
        self._where = where
        self.is_traced = is_traced

    @property
    def method_names(self) -> set[str]:
        """The names of the methods."""
        return set(self._core.method_names())

    def load_method(self, name: str) -> Method:
        """Load a method.

        Raises:
            KeyError: if there is no such method.
            LoadError: if it needs what this runtime does not have.
        """
        meta = self._meta(name)
        problems: dict[str, str] = {}
        try:
            contract = read_contracts(self._core, [name])[name]
            problems = find_backends(self._core, [name])
            return Method(self._core.method(name), self._core, contract, meta)
        except _core.Failure as failure:
            error = missing_error([failure], self._core, self._where, problems)
            raise error from failure.__cause__

    def metadata(self, method_name: str) -> MethodMeta:
        """The metadata of a method; KeyError if there is no method of that name."""
        return MethodMeta(self._meta(method_name))

    def write_etdump_result_to_file(
        self, etdump_path: AnyPath, debug_buffer_path: AnyPath | None = None
    ) -> None:
        """Write what was recorded since the program was loaded, as `Recording.save` does.

        Args:
            etdump_path: the trace.
            debug_buffer_path: the values that it refers to; None: the trace's path with ".values"
                at its end.

        Raises:
            RunError: if the program was loaded without `enable_etdump`, or a file cannot be
                written.
        """
        Recording(self._core).save(etdump_path, debug_buffer_path)

    def _meta(self, name: str) -> dict[str, Any]:
        if name not in self._core.method_names():
            raise KeyError(name)
        try:
            return self._core.meta(name)
        except _core.Failure as failure:
            raise load_error(failure, self._where) from None


class Runtime:
    """The runtime of this process; `Runtime.get()` gives it.

    Attributes:
        backend_registry: the backends that are registered.
        operator_registry: the operators that have a kernel.
    """

    _instance: Runtime | None = None

    def __init__(self) -> None:
        self.backend_registry: BackendRegistry = backend_registry
        self.operator_registry: OperatorRegistry = operator_registry

    @classmethod
    def get(cls) -> Runtime:
        """The one runtime."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def load_program(
        self,
        data: Source,
        *,
        verification: Verification = Verification.InternalConsistency,
        enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        data_path: Source | None = None,
        backend_options: BackendOptions | None = None,
    ) -> Program:
        """Open a program.

        Args:
            data: a path, bytes, or an open binary file.
            verification: either member; everything is checked anyway.
            enable_etdump: record what runs, for `Program.write_etdump_result_to_file`.
            debug_buffer_size: bytes for the values of a trace; 0: none are recorded.
            data_path: a data file (.ptd).
            backend_options: as for `rushlight.load`.

        Raises:
            LoadError: if the program is not valid, or options name a method or backend that is not
                in it.
        """
        if not isinstance(verification, Verification):
            raise TypeError(f"verification is {verification!r}: give a member of Verification")
        values = TraceOptions(values="all", value_bytes=debug_buffer_size)
        trace = values if enable_etdump and debug_buffer_size else enable_etdump
        core, where = open_program(data, data=data_path, trace=trace), describe_source(data)
        try:
            set_backend_options(core, backend_options, {m: [m] for m in core.method_names()})
        except _core.Failure as failure:
            raise load_error(failure, where) from None
        return Program(core, where, bool(enable_etdump))
