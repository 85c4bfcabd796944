"""Small handwritten programs, so that the runtime's tests need neither the compiler nor torch."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rushlight.schema import program as fb
from rushlight.schema.common import ScalarType
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.schema.sizes import tensor_bytes
from rushlight.serialize.file import PTEFile
from rushlight.serialize.ptd import NamedTensor, write_ptd
from rushlight.serialize.pte import write_pte

TYPES = {
    "float32": ScalarType.FLOAT,
    "float64": ScalarType.DOUBLE,
    "float16": ScalarType.HALF,
    "bfloat16": ScalarType.BFLOAT16,
    "int64": ScalarType.LONG,
    "int32": ScalarType.INT,
    "int16": ScalarType.SHORT,
    "int8": ScalarType.CHAR,
    "uint8": ScalarType.BYTE,
    "bool": ScalarType.BOOL,
}
LEAF = {"t": "leaf"}


@dataclass
class MethodBuilder:
    """The values and instructions of one method; every tensor has its own memory in arena 1."""

    name: str = "forward"
    values: list[fb.EValue] = field(default_factory=list)
    instructions: list[fb.Instruction] = field(default_factory=list)
    operators: list[fb.Operator] = field(default_factory=list)
    delegates: list[fb.BackendDelegate] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    arenas: list[int] = field(default_factory=lambda: [0, 0])
    containers: tuple[str, str] = ("", "")

    def value(self, val: Any) -> int:
        self.values.append(fb.EValue(val))
        return len(self.values) - 1

    def tensor(
        self,
        *sizes: int,
        dtype: str = "float32",
        planned: bool = True,
        dynamic: bool = False,
        constant: int = 0,
        memory_id: int = 1,
        dim_order: list[int] | None = None,
    ) -> int:
        dynamism = (
            fb.TensorShapeDynamism.DYNAMIC_BOUND if dynamic else fb.TensorShapeDynamism.STATIC
        )
        tensor = fb.Tensor(
            scalar_type=TYPES[dtype],
            sizes=list(sizes),
            dim_order=list(range(len(sizes))) if dim_order is None else dim_order,
            data_buffer_idx=constant,
            shape_dynamism=dynamism,
        )
        if planned and not constant:
            while len(self.arenas) <= memory_id:
                self.arenas.append(0)
            tensor.allocation_info = fb.AllocationDetails(memory_id, self.arenas[memory_id])
            self.arenas[memory_id] += -(-tensor_bytes(tensor.scalar_type, tensor.sizes) // 16) * 16
        return self.value(tensor)

    def call(self, operator: str, *args: int) -> None:
        name, _, overload = operator.partition(".")
        op = fb.Operator(name, overload)
        if op not in self.operators:
            self.operators.append(op)
        call = fb.KernelCall(self.operators.index(op), list(args))
        self.instructions.append(fb.Instruction(call))

    def binary(self, operator: str, a: int, b: int, out: int) -> None:
        """Add a call of `aten::add.out` or a similar operator, with alpha 1."""
        alpha = [self.value(fb.Int(1))] if operator in ("aten::add.out", "aten::sub.out") else []
        self.call(operator, a, b, *alpha, out, out)

    def delegate(
        self, backend: str, *args: int, payload: int = 0, specs: dict[str, bytes] | None = None
    ) -> None:
        """Add a delegate and a call of it with `args`: inputs, then outputs."""
        reference = fb.BackendDelegateDataReference(fb.DataLocation.SEGMENT, payload)
        compile_specs = [fb.CompileSpec(key, value) for key, value in (specs or {}).items()]
        self.delegates.append(fb.BackendDelegate(backend, reference, compile_specs))
        call = fb.DelegateCall(len(self.delegates) - 1, list(args))
        self.instructions.append(fb.Instruction(call))

    def plan(self) -> fb.ExecutionPlan:
        return fb.ExecutionPlan(
            name=self.name,
            container_meta_type=fb.ContainerMetadata(*self.containers),
            values=self.values,
            inputs=self.inputs,
            outputs=self.outputs,
            chains=[fb.Chain(instructions=self.instructions)],
            operators=self.operators,
            delegates=self.delegates,
            non_const_buffer_sizes=self.arenas,
        )


def program(
    *methods: MethodBuilder,
    contract: dict[str, Any] | None = None,
    debug: dict[str, Any] | None = None,
    constants: list[bytes] | None = None,
    blobs: list[bytes] | None = None,
    named_data: dict[str, bytes] | None = None,
) -> bytes:
    """The bytes of a program.

    Args:
        methods: its methods.
        contract: the shape contract of each method, by name.
        debug: a whole debug map.
        constants: the constants, from index 1.
        blobs: the payloads of delegates.
        named_data: further named data.
    """
    named = dict(named_data or {})
    if contract is not None:
        named["rushlight/contract"] = json.dumps({"version": 1, "methods": contract}).encode()
    if debug is not None:
        named["rushlight/debug"] = json.dumps(debug).encode()
    file = PTEFile(
        fb.Program(execution_plan=[m.plan() for m in methods]),
        constants=[b"", *(constants or [])],
        named_data=named,
        delegate_blobs=blobs or [],
    )
    return write_pte(file)


def binary(operator: str = "aten::add.out", *sizes: int, **tensor: Any) -> MethodBuilder:
    """A method `forward(x, y)` with one instruction; all tensors have these sizes and options."""
    method = MethodBuilder()
    x, y, out = (method.tensor(*sizes, **tensor) for _ in range(3))
    method.binary(operator, x, y, out)
    method.inputs, method.outputs = [x, y], [out]
    return method


def add(*sizes: int, **tensor: Any) -> bytes:
    """A program that adds two tensors."""
    return program(binary("aten::add.out", *sizes, **tensor))


def delegated(backend: str, *sizes: int, **tensor: Any) -> MethodBuilder:
    """A method `forward(x)` with one delegate; both tensors have these sizes and options."""
    method = MethodBuilder()
    x, y = (method.tensor(*sizes, **tensor) for _ in range(2))
    method.delegate(backend, x, y)
    method.inputs, method.outputs = [x], [y]
    return method


def counter() -> MethodBuilder:
    """A method `forward(x)` that adds x to a buffer and returns the buffer's copy."""
    method = MethodBuilder()
    x = method.tensor(2)
    count = method.tensor(2)
    out = method.tensor(2)
    method.binary("aten::add.out", count, x, count)
    method.binary("aten::mul.out", count, method.tensor(1, constant=1), out)
    method.inputs, method.outputs = [x], [out]
    return method


def call_spec(args: list[Any], kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
    """The in_spec of positional and keyword arguments, which are passed as trees."""
    named = kwargs or {}
    keywords = {"t": "dict", "k": list(named), "c": list(named.values())}
    return {"t": "tuple", "c": [{"t": "tuple", "c": args}, keywords]}


def tensor_value(*shape: Any, name: str = "", dtype: str = "float32") -> dict[str, Any]:
    """An entry of a contract's inputs or outputs."""
    return {"name": name, "kind": "tensor", "dtype": dtype, "shape": list(shape)}


def contract(
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
    *,
    in_spec: Any = None,
    out_spec: Any = None,
    parameters: list[str] | None = None,
    relations: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """The contract of one method; by default every input is a positional argument."""
    names = [v["name"] for v in inputs]
    single = LEAF if len(outputs) == 1 else {"t": "tuple", "c": [LEAF] * len(outputs)}
    return {
        "inputs": inputs,
        "outputs": outputs,
        "parameters": names if parameters is None else parameters,
        "in_spec": in_spec or call_spec([LEAF] * len(inputs)),
        "out_spec": out_spec or single,
        "relations": relations or [],
    }


def with_external_weight() -> bytes:
    """A program that multiplies by `w`, which a data file holds."""
    method = MethodBuilder()
    x, weight, out = method.tensor(2, 2), method.tensor(2, 2, planned=False), method.tensor(2, 2)
    tensor = method.values[weight].val
    assert isinstance(tensor, fb.Tensor)
    tensor.extra_tensor_info = fb.ExtraTensorInfo(
        fully_qualified_name="w", location=fb.TensorDataLocation.EXTERNAL
    )
    method.binary("aten::mul.out", x, weight, out)
    method.inputs, method.outputs = [x], [out]
    return program(method)


def data_file(value: float) -> bytes:
    """The data file for `with_external_weight`; every element of `w` is `value`."""
    layout = TensorLayout(ScalarType.FLOAT, [2, 2], [0, 1])
    return write_ptd({"w": NamedTensor(np.full((2, 2), value, np.float32).tobytes(), layout)})
