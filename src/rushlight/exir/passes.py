"""Passes over graphs and programs, under ExecuTorch's names."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.edge.constants import Constants
from rushlight.edge.operators import edge_operator, make_plain, put_back
from rushlight.edge.passes.constant_fold import computes_constant, fold
from rushlight.errors import Code, ExportError
from rushlight.ir.programs import copy_program
from rushlight.ir.rewrite import is_pure
from rushlight.partition import LoweredBackendModule, get_lowered_submodules

_OWNED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class ConstPropPass(PassBase):
    """Computes the calls that have no input, and holds the results as the module's tensors."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Replace the calls by `get_attr` nodes."""
        known: dict[Node, torch.Tensor] = {}
        graph = graph_module.graph
        for node in list(graph.nodes):
            if node.op != "call_function" or not is_pure(node):
                continue
            if any(n not in known for n in node.all_input_nodes) or not _is_tensor(node):
                continue
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
            known[node] = node.target(*args, **kwargs)
        for node, value in known.items():
            if all(user in known for user in node.users):
                continue
            name = f"_prop_tensor_constant{sum(1 for _ in graph_module.buffers())}"
            graph_module.register_buffer(name, value)
            with graph.inserting_before(node):
                held = graph.get_attr(name)
            held.meta = dict(node.meta)
            node.replace_all_uses_with(held)
        graph.eliminate_dead_code()
        graph_module.recompile()
        return PassResult(graph_module, bool(known))


def _is_tensor(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and node.target is not operator.getitem


def remove_unused_parameters_pass(exported_program: ExportedProgram) -> ExportedProgram:
    """A program without the parameters, buffers and constants that nothing uses."""
    new = copy_program(exported_program)
    nodes = {n.name: n for n in new.graph.nodes if n.op == "placeholder"}
    written = set(new.graph_signature.buffers_to_mutate.values())
    kept = []
    for spec in new.graph_signature.input_specs:
        name = getattr(spec.arg, "name", "")
        is_unused = spec.kind in _OWNED and not nodes[name].users and spec.target not in written
        if not is_unused:
            kept.append(spec)
            continue
        new.graph.erase_node(nodes[name])
        new._state_dict.pop(spec.target, None)
        new._constants.pop(spec.target, None)
    new.graph_signature.input_specs[:] = kept
    new.graph_module.recompile()
    return new


def duplicate_constant_node(exported_program: ExportedProgram, candidate_node: str) -> list[str]:
    """Give each user of a constant but the first its own copy; the program is changed.

    Args:
        exported_program: has the constant as an input.
        candidate_node: the name of the constant's node.

    Returns:
        The names of the new nodes.
    """
    graph, signature = exported_program.graph, exported_program.graph_signature
    place = next(
        (i for i, s in enumerate(signature.input_specs) if _name_of(s) == candidate_node), None
    )
    if place is None or signature.input_specs[place].kind not in _OWNED:
        raise ExportError(
            f"{candidate_node!r} is not a parameter, buffer or constant of the program",
            code=Code.INVALID_ARGUMENT,
        )
    spec = signature.input_specs[place]
    node = next(n for n in graph.nodes if n.name == candidate_node)
    held = (
        exported_program.state_dict
        if spec.target in exported_program.state_dict
        else exported_program.constants
    )
    made = []
    for i, user in enumerate(list(node.users)[1:]):
        with graph.inserting_after(node):
            copied = graph.placeholder(f"{candidate_node}_copy_{i}")
        copied.meta = dict(node.meta)
        user.replace_input_with(node, copied)
        target = f"{spec.target}_copy_{i}"
        held[str(target)] = held[str(spec.target)].clone()
        signature.input_specs.insert(
            place + 1, InputSpec(spec.kind, TensorArgument(copied.name), target, spec.persistent)
        )
        made.append(copied.name)
    exported_program.graph_module.recompile()
    return made


def _name_of(spec: InputSpec) -> str:
    return str(getattr(spec.arg, "name", ""))


def get_default_skip_targets_no_quant() -> set[Any]:
    """Operators whose results are not stored: they are larger than the calls."""
    return {edge_operator(torch.ops.aten.full.default)}


def constant_prop_pass(
    exported_program: ExportedProgram, custom_skip_targets: Any = None, **_: Any
) -> ExportedProgram:
    """Make calls that have only constants as inputs constants.

    Args:
        exported_program: changed, and returned.
        custom_skip_targets: operators whose calls are kept; default: `full`, and those that
            quantise and dequantise.
    """
    new = exported_program
    spelled = make_plain(new)
    constants = Constants(new)
    skipped = custom_skip_targets
    if skipped is None:
        skipped = default_skip_targets()

    def is_foldable(node: Node, known: set[Node]) -> bool:
        return node.target not in skipped and computes_constant(node, known)

    before = set(new.constants)
    fold(constants, is_foldable, lambda node: False)
    constants.drop_unused()
    _name_propagated(new, before)
    new.graph_module.recompile()
    put_back(spelled)
    return new


def default_skip_targets() -> set[Any]:
    """Operators whose calls are kept, so that backends find quantised constants as such."""
    library = torch.ops.quantized_decomposed
    return get_default_skip_targets_no_quant() | {
        library.dequantize_per_channel.default,
        library.dequantize_per_tensor.default,
        library.dequantize_per_tensor.tensor,
        library.convert_element_type.no_fuse,
        library.quantize_per_tensor.default,
        library.quantize_per_tensor.tensor,
        library.quantize_per_channel.default,
        library.choose_qparams.tensor,
    }


def _name_propagated(program: ExportedProgram, before: set[str]) -> None:
    """Give new constants ExecuTorch's names, and forget those that are not inputs any more."""
    nodes = {n.name: n for n in program.graph.find_nodes(op="placeholder")}
    specs = program.graph_signature.input_specs
    added = [s for s in specs if s.kind == InputKind.CONSTANT_TENSOR and s.target not in before]
    number = sum(name.startswith("_prop_tensor_constant") for name in before)
    for spec in added:
        name = f"_prop_tensor_constant{number}"
        number += 1
        node = nodes[spec.arg.name]
        node._rename(name)
        node.target = name
        program.constants[name] = program.constants.pop(str(spec.target)).contiguous()
        spec.arg, spec.target, spec.persistent = TensorArgument(name), name, True
    kept = {s.target for s in specs}
    for held in (program._state_dict, program._constants):
        for name in [name for name in held if name not in kept]:
            del held[name]


def get_transform_passes(additional_passes: Any = None) -> list[Any]:
    """The passes that are run before XNNPACK's partitioner: only those given, as it needs none."""
    return list(additional_passes or ())


def get_lowered_backend_modules(graph_module: GraphModule) -> list[LoweredBackendModule]:
    """The lowered modules that a graph calls, in order."""
    return [module for _, module, _ in get_lowered_submodules(graph_module)]
