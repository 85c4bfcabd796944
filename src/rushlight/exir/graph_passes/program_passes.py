"""Passes over whole programs, and those that mark nodes for later stages."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.edge.to_edge import finish
from rushlight.errors import Code, ExportError
from rushlight.exir.graph_passes.base import GraphPass, graphs_in
from rushlight.exir.planning.nodes import is_inplace_node
from rushlight.exir.specs import TensorSpec

_WRITTEN = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_DEFAULT_TAG = "_default_external_constant"


def insert_write_back_for_buffers_pass(
    ep: ExportedProgram,
) -> tuple[GraphModule, ExportGraphSignature]:
    """Write new values into the buffers and inputs that they replace, by calls of `copy_`.

    Args:
        ep: its graph is changed.

    Returns:
        The graph, which returns what was written first, and its signature.
    """
    signature, graph = ep.graph_signature, ep.graph
    sources: dict[str, Node] = {}
    for spec, node in zip(signature.input_specs, graph.find_nodes(op="placeholder"), strict=True):
        name = spec.arg.name if spec.kind == InputKind.USER_INPUT else spec.target
        sources[str(name)] = node
    output = graph.output_node()
    returned: Any = output.args[0]
    written, others, specs = [], [], []
    for spec, value in zip(signature.output_specs, returned, strict=True):
        if spec.kind not in _WRITTEN or _is_in_place(value, sources[str(spec.target)]):
            others.append(value)
        else:
            with graph.inserting_before(output):
                copied = graph.call_function(
                    torch.ops.aten.copy_.default, (sources[str(spec.target)], value)
                )
            copied.meta["val"] = sources[str(spec.target)].meta.get("val")
            written.append(copied)
            specs.append(OutputSpec(spec.kind, TensorArgument(copied.name), spec.target))
    specs += [s for s in signature.output_specs if s not in specs and not _is_replaced(s, specs)]
    output.args = ((*written, *others),)
    graph.eliminate_dead_code()
    ep.graph_module.recompile()
    return ep.graph_module, ExportGraphSignature(signature.input_specs, specs)


def _is_replaced(spec: OutputSpec, specs: Sequence[OutputSpec]) -> bool:
    return spec.kind in _WRITTEN and any(s.target == spec.target for s in specs)


def _is_in_place(value: Any, source: Node) -> bool:
    """Whether a value is its source, changed by operators that change their first argument."""
    while isinstance(value, Node) and is_inplace_node(value):
        value = value.args[0]
    return value is source


def weights_to_outputs_pass(exported_program: ExportedProgram) -> ExportedProgram:
    """Return the parameters that have gradients, too, behind the other outputs.

    Args:
        exported_program: with gradients among its outputs; changed, and returned.
    """
    signature, graph = exported_program.graph_signature, exported_program.graph
    trained = {
        s.target for s in signature.output_specs if s.kind == OutputKind.GRADIENT_TO_PARAMETER
    }
    parameters = signature.inputs_to_parameters
    nodes = [n for n in graph.find_nodes(op="placeholder") if parameters.get(n.name) in trained]
    for node in nodes:
        node.meta["weight_has_gradient"] = True
        # No kind of output is a parameter; that of tokens has no other use here.
        spec = OutputSpec(OutputKind.TOKEN, TensorArgument(node.name), None)
        signature.output_specs.append(spec)
    output = graph.output_node()
    output.args = ((*output.args[0], *nodes),)
    finish(exported_program)
    return exported_program


def external_constants_pass(
    gm: GraphModule, gen_tag_fn: Callable[[Node], str | None] | None = None
) -> PassResult:
    """Mark the constants that go into a data file, as `meta["constant_tag"]`.

    Args:
        gm: its inputs have specs; constants that were lifted from code are left out.
        gen_tag_fn: the name of a constant's file, or None; default: one file for all.
    """
    changed = False
    for module in graphs_in(gm):
        for node in module.graph.find_nodes(op="placeholder"):
            spec = node.meta.get("spec")
            if isinstance(spec, TensorSpec) and spec.const and "_lifted_tensor" not in node.name:
                node.meta["constant_tag"] = gen_tag_fn(node) if gen_tag_fn else _DEFAULT_TAG
                changed = True
    return PassResult(gm, changed)


def external_mutable_weights_pass(gm: GraphModule, ep: ExportedProgram) -> PassResult:
    """Mark the parameters that have gradients, as `meta["constant_tag"]`.

    Args:
        gm: its inputs have specs.
        ep: the program, whose signature says which parameters have gradients.
    """
    parameters = ep.graph_signature.inputs_to_parameters
    trained = {
        s.target
        for s in ep.graph_signature.output_specs
        if s.kind == OutputKind.GRADIENT_TO_PARAMETER
    }
    changed = False
    for module in graphs_in(gm):
        for node in module.graph.find_nodes(op="placeholder"):
            spec = node.meta.get("spec")
            is_weight = isinstance(spec, TensorSpec) and spec.const
            if is_weight and parameters.get(node.name) in trained:
                node.meta["constant_tag"] = _DEFAULT_TAG
                changed = True
    return PassResult(gm, changed)


def delegate_external_constants_pass_unlifted(
    module: torch.nn.Module, gen_tag_fn: Callable[[Node], str | None] | None = None
) -> PassResult:
    """Mark the constants of a captured module that delegates put into a data file, as
    `meta["custom"]["delegate_constant_tag"]`.

    Args:
        module: what `ExportedProgram.module()` gives.
        gen_tag_fn: the name of a constant's file, or None; without it nothing is marked.
    """
    changed = False
    for graph_module in module.modules():
        if not isinstance(graph_module, GraphModule) or gen_tag_fn is None:
            continue
        for node in graph_module.graph.find_nodes(op="get_attr"):
            node.meta.setdefault("custom", {})["delegate_constant_tag"] = gen_tag_fn(node)
            changed = True
    return PassResult(module, changed)


class InitializedMutableBufferPass(GraphPass):
    """Marks buffers whose names have one of the patterns to be written with their first values.

    Here the first values of all buffers are written, so that it changes no program.
    """

    in_place = True

    def __init__(self, patterns: list[str]) -> None:
        self.patterns = patterns

    def change(self, graph: Graph) -> bool:
        """Mark the inputs, as `meta["et_init_buffer"]`."""
        found = [
            node
            for node in graph.find_nodes(op="placeholder")
            if any(pattern in node.name for pattern in self.patterns)
        ]
        for node in found:
            node.meta["et_init_buffer"] = True
        return bool(found)


class ToDevicePass(PassBase):
    """Moves a graph's tensors, and those that it makes, to a device."""

    def __init__(self, device: str | torch.device) -> None:
        self.device = torch.device(device)

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the module."""
        graph_module = graph_module.to(self.device)
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and "device" in node.kwargs:
                node.update_kwarg("device", self.device)
        graph_module.recompile()
        return PassResult(graph_module, True)


def lift_constant_tensor_pass(ep: ExportedProgram) -> ExportedProgram:
    """Make tensors that a program's graph holds constants of the program, before its other inputs.

    The program is changed, and returned.
    """
    graph, signature = ep.graph, ep.graph_signature
    first = next((n for n in graph.nodes if n.name in signature.user_inputs), None)
    before = first or next(n for n in graph.nodes if n.op != "placeholder")
    place = sum(1 for s in signature.input_specs if s.kind != InputKind.USER_INPUT)
    for node in graph.find_nodes(op="get_attr"):
        tensor = getattr(ep.graph_module, str(node.target), None)
        if not isinstance(tensor, torch.Tensor):
            continue
        name = f"_lifted_tensor_constant{len(ep.constants)}"
        with graph.inserting_before(before):
            new = graph.placeholder(name)
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        ep.constants[name] = tensor
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(new.name), name, None)
        signature.input_specs.insert(place, spec)
        place += 1
    finish(ep)
    return ep


class PassRegistry:
    """Passes by name: `@PassRegistry.register()` above a function or class adds one.

    Attributes:
        registry: lists of passes, by name.
    """

    registry: ClassVar[dict[str, list[Any]]] = {}

    @classmethod
    def register(cls, pass_name: str | None = None) -> Callable[[Any], Any]:
        """Adds what it decorates; default name: its own, in lower case with underscores."""

        def add(one: Any) -> Any:
            name = pass_name or re.sub(r"(?<!^)(?=[A-Z])", "_", one.__name__).lower()
            cls.register_list(name, [one])
            return one

        return add

    @classmethod
    def register_list(cls, pass_name: str, pass_list: list[Any]) -> None:
        """Add passes under a name, unless it is taken."""
        if pass_name in cls.registry:
            told = f"passes with the name {pass_name} are registered already: these are left out"
            warnings.warn(told, stacklevel=2)
            return
        cls.registry[pass_name] = pass_list

    @classmethod
    def get(cls, key: str) -> list[Any]:
        """The passes with a name.

        Raises:
            ExportError: there are none.
        """
        if key not in cls.registry:
            raise ExportError(
                f"no pass has the name {key}; registered are {', '.join(cls.registry) or 'none'}",
                code=Code.NOT_FOUND,
            )
        return cls.registry[key]
