"""Converts an Edge program to an OpenVINO model, with OpenVINO's own reader of FX graphs."""

from __future__ import annotations

from typing import Any

import openvino
import torch
from openvino import opset13 as opset
from openvino.frontend import FrontEndManager
from openvino.frontend.pytorch.fx_decoder import TorchFXPythonDecoder
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from rushlight.backends.openvino.payload import Order
from rushlight.backends.openvino.quantized import extensions
from rushlight.errors import Code, ExportError
from rushlight.ir.bounds import Bounds
from rushlight.ir.custom_ops.dim_order import clone_dim_order, to_dim_order_copy
from rushlight.ir.source import source_of
from rushlight.ir.spec import dim_order_of
from rushlight.partition.details import Handles

aten = torch.ops.aten


def convert(program: ExportedProgram) -> openvino.Model:
    """An OpenVINO model whose inputs and outputs are the program's, in the same order.

    An input that is not row-major has its dimensions in memory order in the model; see `orders_of`.
    The model's constants share the memory of the program's tensors, so it must not outlive them.

    Raises:
        ExportError: if OpenVINO cannot read the graph; it names the node and its Python line.
    """
    module = _functional_aten(program)
    inputs = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
    decoder = TorchFXPythonDecoder(
        module,
        input_shapes=[_sizes(v) for v in inputs],
        input_types=[v.dtype if isinstance(v, torch.Tensor) else torch.int64 for v in inputs],
    )
    frontend = FrontEndManager().load_by_framework("pytorch")
    for extension in extensions():
        frontend.add_extension(extension)
    try:
        model = frontend.convert(frontend.load(decoder))
    except Exception as error:  # OpenVINO's exceptions have no common base class
        raise _unreadable(program, str(error)) from error
    if len(model.inputs) != len(inputs):
        raise ExportError(
            f"OpenVINO made a model with {len(model.inputs)} inputs of a graph with {len(inputs)}",
            code=Code.INTERNAL,
        )
    _as_in_memory(model, program, module)
    _let_means_of_nothing_be_nan(model)
    return model


def orders_of(program: ExportedProgram) -> list[Order]:
    """The dim orders of a program's inputs; () is row-major, as all results of delegates are."""
    specs = {s.arg.name: s for s in program.graph_signature.input_specs}
    orders: list[Order] = []
    for node in program.graph.nodes:
        if node.op == "placeholder" and specs[node.name].kind == InputKind.USER_INPUT:
            value = node.meta["val"]
            order = dim_order_of(value) if isinstance(value, torch.Tensor) else ()
            orders.append(() if order == tuple(range(len(order))) else order)
    return orders


def debug_handle_map(model: openvino.Model, program: ExportedProgram) -> Handles:
    """{name of a node of the model: handles of the graph's node that it was made from}."""
    handles = {
        n.name: n.meta["debug_handle"] for n in program.graph.nodes if "debug_handle" in n.meta
    }
    names = (op.get_friendly_name() for op in model.get_ops())
    return {n: (handles[o],) for n in names if (o := n.split("/")[0]) in handles}


def _functional_aten(program: ExportedProgram) -> GraphModule:
    """The graph with constants as attributes, without dim orders, with views instead of copies."""
    specs = {s.arg.name: s for s in program.graph_signature.input_specs}
    tensors = {**program.constants, **program.state_dict}
    held: dict[str, torch.Tensor] = {}
    graph = Graph()
    env: dict[Node, Node] = {}
    for node in program.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(node.args[0], lambda n: env[n]))
            continue
        if node.op == "placeholder" and specs[node.name].kind != InputKind.USER_INPUT:
            name = f"constant_{len(held)}"
            held[name] = tensors[str(specs[node.name].target)].detach()
            env[node] = graph.get_attr(name)
            continue
        new = env[node] = graph.node_copy(node, lambda n: env[n])
        if node.op == "call_function":
            _plain(new)
    root = torch.nn.Module()
    for name, tensor in held.items():
        root.register_buffer(name, tensor)
    return GraphModule(root, graph)


def _plain(node: Node) -> None:
    """Rewrite a call so that OpenVINO's reader knows its operator."""
    target = node.target
    if target is clone_dim_order:
        node.target, node.kwargs = aten.clone.default, {}
    elif target is to_dim_order_copy:
        dtype = node.kwargs.get("dtype")
        node.target = aten.clone.default if dtype is None else aten._to_copy.default
        node.kwargs = {} if dtype is None else {"dtype": dtype}
    elif isinstance(target, OpOverload) and target.namespace == "quantized_decomposed":
        node.args, node.kwargs = (*node.args, node.name), {}  # see quantized.py
    elif isinstance(target, OpOverload):
        node.target = view_of_copy(target)


def view_of_copy(target: OpOverload) -> OpOverload:
    """The view operator for a copying one, `aten.view` for `aten.view_copy`; else the operator."""
    name = target.overloadpacket.__name__
    if target.namespace != "aten" or not name.endswith("_copy"):
        return target
    packet = getattr(aten, name.removesuffix("_copy"), None)
    if packet is None or target._overloadname not in packet.overloads():
        return target
    view: OpOverload = getattr(packet, target._overloadname)
    return view if view.is_view else target


def _sizes(value: Any) -> torch.Size:
    shape = value.shape if isinstance(value, torch.Tensor) else ()
    return torch.Size([-1 if isinstance(s, torch.SymInt) else s for s in shape])


def _as_in_memory(model: openvino.Model, program: ExportedProgram, module: GraphModule) -> None:
    """Set the bounds of the model's inputs, and make their dim orders part of the model."""
    bounds = Bounds.of(program)
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    for i, (node, order) in enumerate(zip(nodes, orders_of(program), strict=True)):
        parameter = model.inputs[i].get_node()
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            continue
        sizes = [_dimension(bounds, s) for s in value.shape]
        parameter.set_partial_shape(openvino.PartialShape(sizes))
        if order:
            sizes = [sizes[d] for d in order]
            stored = opset.parameter(openvino.PartialShape(sizes), parameter.get_element_type())
            stored.set_friendly_name(parameter.get_friendly_name() + "/stored")
            logical = opset.transpose(stored, [order.index(d) for d in range(len(order))])
            for use in parameter.output(0).get_target_inputs():
                use.replace_source_output(logical.output(0))
            model.replace_parameter(i, stored)
    model.validate_nodes_and_infer_types()


def _let_means_of_nothing_be_nan(model: openvino.Model) -> None:
    """Rewrite means over sizes that may be 0 as sum / count, which gives NaN as in eager.

    OpenVINO's mean over no elements is 0.
    """
    for mean in [op for op in model.get_ops() if op.get_type_name() == "ReduceMean"]:
        source, dims = mean.input_value(0), mean.input_value(1)
        if not any(size.min_length == 0 for size in source.get_partial_shape()):
            continue
        sizes = opset.gather(opset.shape_of(source), dims, opset.constant(0))
        count = opset.convert(opset.reduce_prod(sizes, opset.constant(0)), source.element_type)
        total = opset.reduce_sum(source, dims, mean.get_attributes()["keep_dims"])
        quotient = opset.divide(total, count)
        quotient.set_friendly_name(mean.get_friendly_name())
        for use in mean.output(0).get_target_inputs():
            use.replace_source_output(quotient.output(0))


def _dimension(bounds: Bounds, size: int | torch.SymInt) -> openvino.Dimension:
    low, high = bounds.interval(size)
    return openvino.Dimension(low, -1 if high is None else high)


def _unreadable(program: ExportedProgram, message: str) -> ExportError:
    """The error for a graph that OpenVINO cannot read, with the nodes that its message names, else
    with all operators."""
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    blamed = [n for n in calls if str(n.target) in message or f"{n.name}/" in message] or calls[:1]
    shown = "; ".join(f"{n.name} ({n.target}; {source_of(n)})" for n in blamed[:5])
    return ExportError(
        f"OpenVINO {openvino.__version__} cannot read {shown}: {message.strip()}. Leave them out "
        f"with OpenvinoPartitioner(op_names_to_skip={sorted({n.name for n in blamed[:5]})})",
        code=Code.NOT_SUPPORTED,
        sources=[source_of(node) for node in blamed[:5]],
    )
