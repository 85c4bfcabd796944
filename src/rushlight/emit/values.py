"""Emits one method: a table of its values, and its calls as instructions."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.capture.tree import encode_container
from rushlight.emit.shared import ProgramEmitter
from rushlight.ir.alloc import alloc, call_delegate, et_view
from rushlight.ir.control import FLOW, copy_index, label, move, variable
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.operators import OUT_KERNELS, PRIMS, SCALAR_RESULTS, runtime_name
from rushlight.ir.source import operator_of, source_of
from rushlight.ir.spec import SCALAR_TYPES, TensorSpec, dim_order_of
from rushlight.ir.verify import fail
from rushlight.lower.method import LoweredMethod, spec_of
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.schema import program as schema
from rushlight.schema.source import Source

_MEMORY_FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1}
_LAYOUTS = {torch.strided: 0}


def scalar_type_number(dtype: torch.dtype) -> int:
    """The ScalarType number of a dtype."""
    return int(SCALAR_TYPES[dtype])


def constant_tensor(tensor: torch.Tensor, index: int) -> schema.Tensor:
    """A tensor value whose bytes are constant `index`."""
    return schema.Tensor(
        scalar_type=SCALAR_TYPES[tensor.dtype],
        sizes=list(tensor.shape),
        dim_order=list(dim_order_of(tensor)),
        data_buffer_idx=index,
    )


class MethodEmitter:
    """Emits one lowered, planned method."""

    def __init__(self, method: LoweredMethod, shared: ProgramEmitter) -> None:
        self.method = method
        self.shared = shared
        self.values: list[schema.EValue] = []
        self.index: dict[Node, int] = {}
        self.operators: dict[str, int] = {}
        self.delegates: dict[LoweredBackendModule, int] = {}
        self.instructions: list[schema.Instruction] = []
        self.labels: dict[str, int] = {}  # name -> the instruction that it stands before
        self.jumps: list[tuple[schema.JumpFalseCall, str]] = []
        self.handles: dict[int, int] = {}
        self.nodes: dict[int, tuple[str, list[int]]] = {}
        self.frames: list[schema.FrameList] = []

    def plan(self) -> schema.ExecutionPlan:
        """The method as the schema's ExecutionPlan."""
        for node in self.method.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "call_function":
                self._call(node)
        for jump, to in self.jumps:
            jump.destination_instruction = self.labels[to]
        outputs = [self._output(value) for value in self.method.outputs]
        spec = self.method.program.call_spec
        stacktrace = self.frames if self.shared.config.emit_stacktrace else None
        return schema.ExecutionPlan(
            name=self.method.name,
            container_meta_type=schema.ContainerMetadata(
                encode_container(spec.in_spec), encode_container(spec.out_spec)
            ),
            values=self.values,
            inputs=[self.index[n] for n in self.method.inputs],
            outputs=outputs,
            chains=[
                schema.Chain(
                    inputs=[], outputs=[], instructions=self.instructions, stacktrace=stacktrace
                )
            ],
            operators=[self._operator_table(name) for name in self.operators],
            delegates=[self.shared.add_delegate(self.method.name, m) for m in self.delegates],
            non_const_buffer_sizes=[0, *self.method.arenas],
        )

    @staticmethod
    def _operator_table(name: str) -> schema.Operator:
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if overload == "default" and namespace != "executorch_prim":
            overload = ""
        return schema.Operator(name=f"{namespace}::{base}", overload=overload)

    def _add(self, value: Any) -> int:
        self.values.append(schema.EValue(value))
        return len(self.values) - 1

    # Placeholders and results

    def _placeholder(self, node: Node) -> None:
        constant = self.method.constants.get(node)
        if constant is not None:
            if node.users or node in self.method.outputs:
                self.index[node] = self._add(self._constant(node, constant.name, constant.tensor))
                self.shared.debug.name_value(self.method.name, self.index[node], constant.name)
            return
        spec = spec_of(node)
        if spec is None:
            self.index[node] = self._add(self._traced_scalar(node))
            return
        tensor = self._tensor(spec)
        buffer = self.method.buffers.get(node)
        if buffer is not None:
            if spec.mem_id:  # without memory, an initial value would be read as a constant
                tensor.data_buffer_idx = self.shared.add_mutable(buffer.initial)
            if self.shared.config.emit_mutable_buffer_names:
                tensor.extra_tensor_info = schema.ExtraTensorInfo(fully_qualified_name=buffer.name)
        self.index[node] = self._add(tensor)
        if buffer is not None:
            self.shared.debug.name_value(self.method.name, self.index[node], buffer.name)

    def _constant(self, node: Node, name: str, data: torch.Tensor) -> schema.Tensor:
        tag = self.shared.external_tag(node)
        if tag is None:
            return constant_tensor(data, self.shared.constants.add(data))
        self.shared.add_external(tag, name, data)
        tensor = constant_tensor(data, 0)
        tensor.extra_tensor_info = schema.ExtraTensorInfo(
            fully_qualified_name=name, location=schema.TensorDataLocation.EXTERNAL
        )
        return tensor

    def _traced_scalar(self, node: Node) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            value = value.node.hint
        return self._literal(node, value) if not isinstance(value, str) else schema.Null()

    def _tensor(self, spec: TensorSpec) -> schema.Tensor:
        dynamism = schema.TensorShapeDynamism
        planned = None
        if spec.mem_id:
            planned = schema.AllocationDetails(
                memory_id=spec.mem_id,
                memory_offset_low=spec.mem_offset & 0xFFFFFFFF,
                memory_offset_high=spec.mem_offset >> 32,
            )
        return schema.Tensor(
            scalar_type=spec.scalar_type,
            sizes=list(spec.shape),
            dim_order=list(spec.dim_order),
            allocation_info=planned,
            shape_dynamism=dynamism.DYNAMIC_BOUND if spec.dynamic else dynamism.STATIC,
        )

    def _output(self, value: Any) -> int:
        if isinstance(value, Node):
            return self.index[value]
        return self._add(self._literal(None, value))

    # Calls

    def _call(self, node: Node) -> None:
        target = node.target
        if target is alloc:
            spec = spec_of(node)
            assert spec is not None
            self.index[node] = self._add(self._tensor(spec))
        elif target in FLOW:
            self._flow(node)
        elif target is et_view:
            base, size, out = node.args
            args = [self._arg(node, base), self._arg(node, size, "int[]"), self._arg(node, out)]
            self._kernel(node, OUT_KERNELS[target], args)
        elif target is copy_index:
            self._kernel(node, OUT_KERNELS[target], [self._arg(node, a) for a in node.args])
        elif target is call_delegate:
            self._delegate(node)
        elif target in PRIMS:
            args = [self._arg(node, a) for a in node.args]
            self._kernel(node, PRIMS[target], [*args, self._scalar_result(node)])
        elif isinstance(target, OpOverload):
            self._operator(node, target)
        else:
            fail(self.method.graph, node, self.method.name, "no instruction runs it")

    def _delegate(self, node: Node) -> None:
        module: Any
        inputs: Any
        outs: Any
        module, inputs, outs = node.args
        index = self.delegates.setdefault(module, len(self.delegates))
        args = [self._arg(node, a) for a in [*inputs, *outs]]
        self._instruction(node, module.backend_id, schema.DelegateCall(index, args))

    def _flow(self, node: Node) -> None:
        if node.target is variable:
            self._scalar_result(node)
        elif node.target is label:
            self.labels[str(node.args[0])] = len(self.instructions)
        elif node.target is move:
            value, into = (self._arg(node, a) for a in node.args)
            self._instruction(node, "move", schema.MoveCall(value, into))
        else:
            call = schema.JumpFalseCall(self._arg(node, node.args[0]), 0)
            self.jumps.append((call, str(node.args[1])))
            self._instruction(node, "jump", call)

    def _operator(self, node: Node, target: OpOverload) -> None:
        args = []
        schema_args = target._schema.arguments
        for i, declared in enumerate(schema_args):
            if i < len(node.args) and not declared.kwarg_only:
                value: Any = node.args[i]
            elif declared.name in node.kwargs:
                value = node.kwargs[declared.name]
            else:
                value = declared.default_value
            args.append(self._arg(node, value, str(declared.real_type)))
        if target in SCALAR_RESULTS:
            self._kernel(node, SCALAR_RESULTS[target], [*args, self._scalar_result(node)])
            return
        outs = [a for a, d in zip(args, schema_args, strict=True) if d.is_out]
        if not outs:  # in place: the written argument is returned
            args.append(args[0])
        elif len(outs) == 1:
            alias = outs[0]
            listed = isinstance(self.values[alias].val, schema.TensorList)
            args.append(self._add(self.values[alias].val) if listed else alias)
        else:
            args.append(self._add(schema.TensorList(outs)))
        self._kernel(node, runtime_name(target), args)

    def _kernel(self, node: Node, name: str, args: list[int]) -> None:
        operator = self.operators.setdefault(name, len(self.operators))
        call = schema.KernelCall(op_index=operator, args=args)
        self._instruction(node, operator_of(node), call)

    def _instruction(self, node: Node, name: str, call: Any) -> None:
        """Append an instruction, and to the debug map its node, whose operator is `name`."""
        at = len(self.instructions)
        self.instructions.append(schema.Instruction(call))
        source = source_of(node)
        edge = node.meta.get("edge_node", node.name)
        self.shared.debug.add(self.method.name, edge, name, source)
        if "debug_handle" in node.meta:
            self.handles[at] = node.meta["debug_handle"]
        outs = node.meta.get("outs", [])
        self.nodes[at] = (edge, [self.index[o] for o in outs])
        frame = schema.Frame(
            filename=source.file, lineno=source.line, name=source.function, context=source.text
        )
        self.frames.append(schema.FrameList(items=[frame] if source.file else []))

    def _scalar_result(self, node: Node) -> int:
        value = node.meta.get("val")
        placeholder: Any = schema.Int(0)
        if isinstance(value, torch.SymBool | bool):
            placeholder = schema.Bool(False)
        elif isinstance(value, torch.SymFloat | float):
            placeholder = schema.Double(0.0)
        self.index[node] = self._add(placeholder)
        return self.index[node]

    # Arguments

    def _arg(self, node: Node, value: Any, kind: str = "") -> int:
        if isinstance(value, Node):
            return self.index[value]
        if isinstance(value, list | tuple):
            return self._add(self._list(node, list(value), kind))
        return self._add(self._literal(node, value, kind))

    def _list(self, node: Node, items: list[Any], kind: str) -> Any:
        kind = kind.replace("Optional[", "").rstrip("]?") if "Tensor" not in kind else kind
        if "Tensor" in kind:
            if any(i is None for i in items) or "Optional" in kind:
                return schema.OptionalTensorList(
                    [-1 if i is None else self.index[i] for i in items]
                )
            return schema.TensorList([self.index[i] for i in items])
        if "bool" in kind:
            return schema.BoolList([bool(i) for i in items])
        if "float" in kind:
            return schema.DoubleList([float(i) for i in items])
        return schema.IntList([self._arg(node, i, "int") for i in items])

    def _literal(self, node: Node | None, value: Any, kind: str = "") -> Any:
        if value is None:
            return schema.Null()
        if isinstance(value, torch.dtype):
            return schema.Int(scalar_type_number(value))
        if isinstance(value, torch.memory_format):
            return schema.Int(_MEMORY_FORMATS.get(value, 0))
        if isinstance(value, torch.layout):
            return schema.Int(_LAYOUTS.get(value, 0))
        if isinstance(value, torch.device):
            return schema.Null()
        if isinstance(value, bool):
            return schema.Bool(value)
        if isinstance(value, int):
            return schema.Double(float(value)) if kind.startswith("float") else schema.Int(value)
        if isinstance(value, float):
            return schema.Double(value)
        if isinstance(value, str):
            return schema.String(value)
        raise refusal(
            Finding(
                "not-lowered",
                f"{node.name if node else 'an output'} has {value!r} "
                f"({type(value).__name__}), which a program cannot hold",
                "Pass tensors, numbers, booleans, strings, dtypes, or lists of them",
                source_of(node) if node else Source(),
            ),
            where=self.method.name,
        )
