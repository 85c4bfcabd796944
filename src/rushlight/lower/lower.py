"""Edge → Out dialect: every functional operator becomes its out-variant on planned tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, OutputSpec
from torch.fx import Graph, GraphModule, Node

from rushlight.capture.mutations import mutated_input
from rushlight.ir.alloc import AllocSpec, alloc, call_delegate, et_view
from rushlight.ir.bounds import Bounds
from rushlight.ir.branches import attribute, results_of
from rushlight.ir.custom_ops.updates import InPlace, in_place
from rushlight.ir.dialect import OUT
from rushlight.ir.findings import refusal
from rushlight.ir.operators import out_arguments, out_variant
from rushlight.ir.rewrite import KEPT_META
from rushlight.ir.source import OPERATOR, operator_of, source_of
from rushlight.ir.spec import TensorSpec, dim_order_of
from rushlight.ir.verify import fail, verify
from rushlight.lower.control_flow import lower_control_flow
from rushlight.lower.method import Buffer, Constant, LoweredMethod, spec_of
from rushlight.lower.specs import Specs
from rushlight.lower.updates import in_place_updates
from rushlight.lower.views import keeps_bytes

aten = torch.ops.aten


def lower(
    program: ExportedProgram, *, method: str = "forward", remove_view_copy: bool = True
) -> LoweredMethod:
    """Lower one Edge program, which is not changed.

    Args:
        program: a program of the Edge dialect.
        method: the method's name in the file.
        remove_view_copy: let views share their base's memory if no byte moves.

    Raises:
        ExportError: if a value has no bound, an unsupported dtype, or an input is written.
    """
    lowered = _Lowering(program, method, remove_view_copy).run()
    verify(lowered.graph, OUT, f"{method}: after lowering")
    return lowered


class _Lowering:
    """One walk over an Edge graph that writes the Out graph."""

    def __init__(self, program: ExportedProgram, method: str, remove_view_copy: bool) -> None:
        self.program = program
        self.remove_view_copy = remove_view_copy
        self.specs = Specs(Bounds.of(program))
        self.graph = Graph()
        self.written: list[Node] = []  # the calls of `graph`, in order
        self.values: dict[Node, Any] = {}  # Edge node -> Out node, list of them, or inner graph
        self.method = LoweredMethod(method, self.graph, program, [], {}, {}, [])
        self.mutated: dict[str, Node] = {}  # buffer name -> Out placeholder
        self.in_place = in_place_updates(program)
        self.within = ""  # path of the inner graph that is being written

    def run(self) -> LoweredMethod:
        kinds = {s.arg.name: s for s in self.program.graph_signature.input_specs}
        written = {
            s.target
            for s in self.program.graph_signature.output_specs
            if s.kind == OutputKind.BUFFER_MUTATION
        }
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, kinds[node.name], written)
            elif node.op == "output":
                self._output(node)
            else:
                self._node(node)
        return self.method

    def _node(self, node: Node) -> None:
        if node.op == "get_attr":
            value = attribute(node)
            is_tensor = isinstance(value, torch.Tensor)
            self.values[node] = self._inner_constant(node) if is_tensor else value
        elif node.target is executorch_call_delegate:
            self._delegate(node)
        elif isinstance(node.target, HigherOrderOperator):
            self.values[node] = lower_control_flow(self, node, self._map(node.args))
        elif node.target is operator.getitem and isinstance(self._source(node), list | tuple):
            self.values[node] = self._source(node)[node.args[1]]
        elif (how := in_place(node.target)) is not None:
            self._update(node, how)
        else:
            self._call(node)

    def _source(self, node: Node) -> Any:
        """The Out value of the first argument."""
        return self.values.get(node.args[0])  # type: ignore[arg-type]

    def inline(self, module: GraphModule, operands: Sequence[Any], call: Node) -> list[Any]:
        """Append the nodes of an inner graph of `call`; returns its results."""
        outside = self.within
        self.within = f"{outside}{call.name}."
        inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.values.update(zip(inputs, operands, strict=True))
        for node in module.graph.nodes:
            if node.op not in ("placeholder", "output"):
                self._node(node)
        self.within = outside
        values = results_of(module.graph)
        return [self.values[v] if isinstance(v, Node) else v for v in values]

    def _inner_constant(self, node: Node) -> Node:
        owner: Any = node.graph.owning_module
        tensor = owner.get_buffer(str(node.target))
        with self.graph.inserting_before(next(iter(self.graph.nodes), None)):
            new = self.graph.placeholder(f"{self.within}{node.target}".replace(".", "_"))
        new.meta["spec"] = spec = self.specs.of_input(node, tensor)
        spec.const = True
        self.method.constants[new] = Constant(f"{self.within}{node.target}", tensor)
        return new

    def _placeholder(self, node: Node, kind: Any, written: set[str | None]) -> None:
        new = self.graph.placeholder(node.name)
        new.meta.update(node.meta)
        self.values[node] = new
        value: Any = node.meta.get("val")
        if kind.kind != InputKind.USER_INPUT:
            if kind.target in self.program.state_dict:
                value = self.program.state_dict[kind.target]
            else:
                value = self.program.constants[kind.target]
        if isinstance(value, torch.Tensor):
            spec = self.specs.of_input(node, value)
            new.meta["spec"] = spec
            spec.const = kind.kind != InputKind.USER_INPUT and kind.target not in written
        if kind.kind == InputKind.USER_INPUT:
            self.method.inputs.append(new)
        elif kind.target in written:
            self.method.buffers[new] = Buffer(kind.target, value)
            self.mutated[kind.target] = new
        else:
            self.method.constants[new] = Constant(kind.target, value)

    def _map(self, tree: Any) -> Any:
        return torch.fx.node.map_arg(tree, lambda n: self.values[n])

    def emit(self, like: Node, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """Append a call that comes from the Edge node `like`."""
        node = self.graph.call_function(target, args, kwargs)
        node.meta.update({k: like.meta[k] for k in KEPT_META if k in like.meta})
        node.meta["edge_node"] = f"{self.within}{like.name}"
        if like.op == "call_function":
            node.meta[OPERATOR] = operator_of(like)
        self.written.append(node)
        return node

    def alloc(self, like: Node, spec: TensorSpec) -> Node:
        """Append the allocation of a tensor."""
        node = self.emit(like, alloc, (alloc_spec(spec),), {})
        node.meta.pop("debug_handle", None)  # it is no instruction
        node.meta["spec"] = spec
        return node

    def erase(self, node: Node) -> None:
        """Remove a node without users."""
        self.graph.erase_node(node)
        self.written.remove(node)

    def _call(self, node: Node) -> None:
        target = node.target
        if isinstance(target, OpOverload) and target._schema.is_mutable:
            told = "it writes its arguments and has no functional variant: call one that returns"
            fail(self.program.graph, node, self.method.name, f"{told} what it writes")
        args, kwargs = self._map(node.args), self._map(dict(node.kwargs))
        tensors = [s for n in node.all_input_nodes for s in _specs(self.values[n])]
        result = self.specs.of_results(node, tensors)
        variant = out_variant(target) if isinstance(target, OpOverload) else None
        if variant is None:  # a symbolic number: written to its own value
            self.values[node] = self.emit(node, target, args, kwargs)
            self.values[node].meta["val"] = node.meta.get("val")
            return
        if isinstance(result, TensorSpec) and self._share(node, args, result):
            return
        allowed = {a.name for a in variant._schema.arguments}
        kwargs = {k: v for k, v in kwargs.items() if k in allowed}
        outs = [self.alloc(node, s) for s in (result if isinstance(result, list) else [result])]
        names = out_arguments(variant)
        if isinstance(variant._schema.arguments[-1].type, torch.ListType):
            kwargs[names[0]] = outs  # one argument holds all results, even a single one
        else:
            kwargs.update(zip(names, outs, strict=True))
        call = self.emit(node, variant, args, kwargs)
        call.meta["outs"] = outs
        self.values[node] = outs if isinstance(result, list) else outs[0]

    def _update(self, node: Node, how: InPlace) -> None:
        """A call that writes tensors, each of them state itself or else a copy."""
        args, kwargs = list(self._map(node.args)), dict(self._map(node.kwargs))
        for at in how.written:
            if (node, at) not in self.in_place:
                spec = spec_of(args[at])
                assert spec is not None
                name = (
                    f"{node.name}_before" if len(how.written) == 1 else f"{node.name}_before_{at}"
                )
                new = replace(spec, const=False, alias_of=None, name=name)
                args[at] = self._clone(node, args[at], new)
        value = node.meta["val"]
        values = list(value) if isinstance(value, list | tuple) else [value]
        names = out_arguments(how.operator)
        # An operator that must have a result, and has none, has one that says nothing.
        told = values[: how.n_results] if how.n_results else [values[0].new_empty(1)] * len(names)
        outs = [self.alloc(node, self.specs.of_value(node, one)) for one in told]
        kwargs.update(zip(names, outs, strict=True))
        call = self.emit(node, how.operator, tuple(args), kwargs)
        written = [args[at] for at in how.written]
        results = [*outs[: how.n_results], *written]
        call.meta["outs"] = results
        self.values[node] = results if isinstance(value, list | tuple) else results[0]

    def _delegate(self, node: Node) -> None:
        """A call of a lowered module: its results are tensors, in any structure."""
        module, *operands = node.args
        module = self._map(module)
        inputs = [self._as_captured(node, one) for one in pytree.tree_leaves(operands)]
        leaves, structure = pytree.tree_flatten(node.meta["val"])
        outs = [self.alloc(node, self.specs.of_value(node, value)) for value in leaves]
        call = self.emit(node, call_delegate, (module, inputs, outs), {})
        call.meta["outs"] = outs
        self.values[node] = pytree.tree_unflatten(outs, structure)

    def _as_captured(self, call: Node, value: Any) -> Any:
        """A delegate's input in the layout that it had when its backend compiled the partition."""
        operand = self._map(value)
        spec = spec_of(operand) if isinstance(operand, Node) else None
        if spec is None:
            return operand
        order = dim_order_of(value.meta["val"])
        if order == spec.dim_order:
            return operand
        name = f"{operand.name}_laid_out"
        new = replace(spec, dim_order=order, const=False, alias_of=None, name=name)
        return self._clone(call, operand, new)

    def _clone(self, like: Node, value: Node, spec: TensorSpec) -> Node:
        out = self.alloc(like, spec)
        target = torch.ops.dim_order_ops._clone_dim_order.out
        kwargs = {"dim_order": list(spec.dim_order), "out": out}
        self.emit(like, target, (value,), kwargs).meta["outs"] = [out]
        return out

    def _share(self, node: Node, args: tuple[Any, ...], result: TensorSpec) -> bool:
        """Make the result a view of its input's memory, if possible; True if so."""
        if not self.remove_view_copy or not args or not isinstance(args[0], Node):
            return False
        base = spec_of(args[0])
        if base is None or base.storage.const or args[0] in self.method.buffers:
            return False
        if keeps_bytes(node.target, node.args, base, result):
            result.alias_of = base.storage
            self.values[node] = self.alloc(node, result)
            self.values[node].meta["base"] = args[0]
            return True
        fits = base.contiguous and result.nbytes <= base.nbytes  # bounds may be loose
        if node.target is aten.view_copy.default and fits and _is_user_free(node):
            result.alias_of = base.storage
            out = self.alloc(node, result)
            call = self.emit(node, et_view, (args[0], args[1], out), {})
            call.meta["outs"] = [out]
            self.values[node] = out
            return True
        return False

    def _output(self, node: Node) -> None:
        signature = self.program.graph_signature
        values: Any = node.args[0]
        returned = [
            None if self._is_written(spec, value) else self._detach(node, value)
            for spec, value in zip(signature.output_specs, values, strict=True)
        ]
        for i, (spec, value) in enumerate(zip(signature.output_specs, returned, strict=True)):
            if spec.kind == OutputKind.BUFFER_MUTATION:
                if value is not None:
                    self._write_back(node, self.mutated[str(spec.target)], value)
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                source = source_of(node.args[0][i])  # type: ignore[index, arg-type]
                raise refusal(mutated_input(str(spec.target), source), where=self.method.name)
            elif isinstance(spec.arg, ConstantArgument):
                self.method.outputs.append(spec.arg.value)
            else:
                self.method.outputs.append(value)
        for value in self.method.outputs:
            if isinstance(value, list):
                fail(
                    self.graph,
                    node,
                    self.method.name,
                    "it returns a list of tensors as one value: return its elements",
                )
        self.graph.output(tuple(self.method.outputs))

    def _is_written(self, spec: OutputSpec, value: Any) -> bool:
        """Whether a buffer's new value is in the buffer already."""
        if spec.kind != OutputKind.BUFFER_MUTATION or not isinstance(value, Node):
            return False
        return self.values[value] is self.mutated[str(spec.target)]

    def _detach(self, node: Node, value: Any) -> Any:
        """The Out value for a returned value; a buffer's old value is copied before a write."""
        new = self.values[value] if isinstance(value, Node) else value
        if new not in self.method.buffers:
            return new
        return self._clone(node, new, replace(new.meta["spec"], name=f"{new.name}_old"))

    def _write_back(self, node: Node, buffer: Node, new: Node) -> None:
        call = self.emit(node, aten.copy_.default, (buffer, new), {})
        call.meta["outs"] = [buffer]


def alloc_spec(spec: TensorSpec) -> AllocSpec:
    """The argument of `alloc` for a tensor."""
    order = () if spec.contiguous else (spec.dim_order,)
    return (spec.shape, spec.dtype, *order)


def _specs(value: Any) -> list[TensorSpec]:
    nodes = value if isinstance(value, list) else [value]
    return [s for n in nodes if isinstance(n, Node) and (s := spec_of(n)) is not None]


def _is_user_free(node: Node) -> bool:
    """Whether no user is the graph's output, which may be in the caller's memory."""
    return all(u.op != "output" for u in node.users)
