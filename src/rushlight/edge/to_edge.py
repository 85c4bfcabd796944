"""ATen → Core ATen → Edge: the order of the edge passes."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from rushlight.capture.contract import symbol_names
from rushlight.capture.recurrent import whole_recurrence
from rushlight.capture.tracing import broadcast_counts
from rushlight.edge.config import EdgeCompileConfig
from rushlight.edge.constants import BranchConstants, Constants
from rushlight.edge.decompositions import decomposition_table
from rushlight.edge.keep_whole import hide, show
from rushlight.edge.passes.common_subexpression import common_subexpression
from rushlight.edge.passes.constant_fold import constant_fold
from rushlight.edge.passes.dim_order import memory_format_to_dim_order
from rushlight.edge.passes.drop_zero_points import drop_zero_points
from rushlight.edge.passes.fold_convolution import fold_convolution
from rushlight.edge.passes.remove_asserts import remove_asserts
from rushlight.edge.passes.remove_noops import remove_noops
from rushlight.edge.passes.scalar_to_tensor import scalar_to_tensor
from rushlight.edge.passes.simplify import simplify
from rushlight.edge.passes.views_to_copies import views_to_copies
from rushlight.edge.prepare_branches import prepare_branches
from rushlight.edge.prepare_state import prepare_state
from rushlight.edge.prepare_views import prepare_views
from rushlight.edge.prepare_writes import prepare_writes
from rushlight.edge.recurrence import recurrence_to_loops
from rushlight.errors import Code, ExportError, internal_error, raised_by_us
from rushlight.ir.bounds import Bounds, example_outside, input_sizes, told_symbols
from rushlight.ir.branches import branches
from rushlight.ir.dialect import ATEN, CORE_ATEN, EDGE
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.programs import copy_program
from rushlight.ir.quiet import LEAF_SPECS, quiet
from rushlight.ir.rewrite import remove_dead
from rushlight.ir.source import (
    carry_debug_handles,
    number_rest,
    source_in,
    source_of,
)
from rushlight.ir.torch_release import (
    comparing_without_guards,
    short_decomposition_setup,
    warn_if_untested,
)
from rushlight.ir.verify import verify


def to_core_aten(
    program: ExportedProgram,
    keep: Iterable[OpOverload] = (),
    own: Mapping[OpOverload, Callable[..., Any]] | None = None,
    method: str = "forward",
    whole: Collection[str] = (),
) -> ExportedProgram:
    """Decompose `program`, which is not changed, to functional Core ATen operators.

    Args:
        program: of the ATen dialect.
        keep: operators that stay whole.
        own: rules that replace ours.
        method: the method's name, for messages.
        whole: names of single calls that stay whole.

    Raises:
        ExportError: if torch cannot decompose it, with torch's reason.
    """
    captured = program.graph
    if whole:
        program = copy_program(program)
        hide(program.graph, whole)
    with quiet(warned=LEAF_SPECS):
        try:
            table = decomposition_table(keep, own)  # with torch's rules, which unroll
            with broadcast_counts(), whole_recurrence(), comparing_without_guards():
                prepared = recurrence_to_loops(
                    prepare_branches(prepare_writes(prepare_state(prepare_views(program)), table))
                )
                with short_decomposition_setup():
                    decomposed = prepared.run_decompositions(table)
        except ExportError:
            raise
        except Exception as error:  # torch raises many types; with any of them there is no graph
            if raised_by_us(error):
                raise internal_error(error, method) from error
            raise refusal(_not_decomposed(program, error), where=method) from error
    _refuse_effects(decomposed)
    # The graph is new and may be changed; its signature and constants may be the caller's.
    decomposed._graph_signature = copy.deepcopy(decomposed.graph_signature)
    _written_parameters_to_buffers(decomposed.graph_signature)
    decomposed._constants = dict(decomposed.constants)
    carry_debug_handles(captured, decomposed.graph)
    show(decomposed)
    return decomposed  # type: ignore[no-any-return]


_REWRITE = "Rewrite the line with other operators of torch"
# Patterns of torch's messages, each with the advice to give.
_DECOMPOSING = (
    (
        re.compile(r"Constant \S+ is mutated"),
        "Register the tensor as a buffer, as in self.register_buffer('name', tensor): a program "
        "keeps what it writes only there",
    ),
    (
        re.compile(r"autograd|requires?[_ ]grad|backward|gradient", re.I),
        "Compute the line without gradients: in eval mode, under torch.no_grad(), or with "
        "operators that need none",
    ),
    (
        re.compile(r"data[_ ]?ptr|data pointer|no data|numpy", re.I),
        "Keep the line's data in tensors: NumPy and other code outside of torch get none",
    ),
    (
        re.compile(r"data-dependent|unbacked|GuardOnData", re.I),
        "Say what is known of the size or number with torch._check, or let it not depend on a "
        "tensor's values",
    ),
    (
        re.compile(r"no fake impl|fake impl|meta kernel|'Meta' backend", re.I),
        "Register what the operator's result looks like with torch.library.register_fake",
    ),
)


def _not_decomposed(program: ExportedProgram, error: Exception) -> Finding:
    """The finding for a graph that torch cannot decompose, from what it raised."""
    text = str(error).strip()
    outside = example_outside(program)
    if outside is not None:
        advice = "Pass an example within that range, or widen it in dynamic_shapes"
        return Finding("wrong-dynamic-shapes", outside, advice, torch=text)
    if isinstance(error, SyntaxError) and "nested parentheses" in text:
        deepest = max(program.state_dict, key=lambda name: name.count("."), default="")
        return Finding(
            "not-lowered",
            f"a parameter stands in {deepest.count('.')} modules, one within the other, and the "
            f"code that torch writes of the graph can name those within at most 200",
            "Nest fewer modules: give the layers to one nn.Sequential",
            torch=text,
        )
    reason = " ".join(text.partition("\n\nWhile executing")[0].split())
    return Finding(
        "not-lowered",
        f"torch cannot decompose the captured graph to Core ATen: {reason}",
        next((advice for words, advice in _DECOMPOSING if words.search(reason)), _REWRITE),
        source_in(text.partition("Original traceback:")[2]),
        torch=text,
    )


def _written_parameters_to_buffers(signature: ExportGraphSignature) -> None:
    """Turn the parameters that a program writes into buffers: both are state."""
    written = set()
    for output in signature.output_specs:
        if output.kind == OutputKind.PARAMETER_MUTATION:
            output.kind = OutputKind.BUFFER_MUTATION
            written.add(output.target)
    for spec in signature.input_specs:
        if spec.kind == InputKind.PARAMETER and spec.target in written:
            spec.kind, spec.persistent = InputKind.BUFFER, True


_STATE = (InputKind.BUFFER, InputKind.PARAMETER)


def _keep_state(program: ExportedProgram, state: Collection[str]) -> None:
    """Let the program write what it only reads of `state`, with what that holds: buffers of it."""
    signature = program.graph_signature
    output = program.graph.output_node()
    inputs = program.graph.find_nodes(op="placeholder")
    written = signature.buffers_to_mutate.values()
    for spec, node in zip(signature.input_specs, inputs, strict=True):
        is_read = node.users and spec.kind in _STATE
        if is_read and spec.target in state and spec.target not in written:
            if spec.kind is InputKind.PARAMETER:
                spec.kind, spec.persistent = InputKind.BUFFER, True
            kept = OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(node.name), spec.target)
            signature.output_specs.insert(0, kept)
            output.args = ((node, *output.args[0]),)


def _refuse_effects(program: ExportedProgram) -> None:
    """Raise for operators that are ordered by tokens: they print, raise or write outside."""
    if all(spec.kind != InputKind.TOKEN for spec in program.graph_signature.input_specs):
        return
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.higher_order.with_effects:
            raise refusal(
                Finding(
                    "unsupported-operator",
                    f"{node.args[1]} has an effect beside its results, such as raising for a "
                    f"singular matrix, which a program cannot have",
                    "Use the variant that returns it, such as inv_ex, or leave the operator out",
                    source_of(node),
                )
            )


def to_edge_dialect(
    program: ExportedProgram,
    config: EdgeCompileConfig,
    *,
    method: str = "forward",
    whole: Collection[str] = (),
    state: Collection[str] = (),
) -> ExportedProgram:
    """Lower one captured method to the Edge dialect.

    Args:
        program: of the ATen dialect; not changed.
        config: what to keep and what to check.
        method: the method's name, for messages.
        whole: names of calls that a backend takes whole, so that they are not decomposed.
        state: names of buffers that other methods write, so that none of them is a constant.

    Returns:
        A new program whose graph is functional, has views as copies, tensors where schemas say
        tensor, and layouts as dim orders; its constants are shared with `program`.

    Raises:
        ExportError: naming the node, its Python line and its neighbours, if an operator cannot be
            brought to the dialect.
    """
    warn_if_untested()
    excepted = config.accepted
    verify(program.graph, ATEN, f"{method}: before decomposition")
    edge = to_core_aten(program, config.preserve_ops, config.decompositions, method, whole)
    _keep_state(edge, state)
    bounds, symbols = Bounds.of(edge), told_symbols(input_sizes(edge))
    names = symbol_names(edge, bounds)
    inner = branches(edge.graph_module)
    for graph in (edge.graph, *(module.graph for module in inner)):
        told = symbols if graph is edge.graph else ()  # the contract checks no branch's assertions
        remove_asserts(graph, told, bounds, names, keep=config.keep_asserts)
        remove_noops(graph)
        remove_dead(graph)
        if config._check_ir_validity:
            verify(graph, CORE_ATEN, f"{method}: after decomposition", excepted)
    for module in inner:
        _to_edge(BranchConstants(module), config)
        module.recompile()
    _to_edge(Constants(edge), config)
    finish(edge)
    number_rest((edge.graph, *(module.graph for module in inner)))
    if config._check_ir_validity:
        for graph in (edge.graph, *(module.graph for module in inner)):
            verify(graph, EDGE, f"{method}: after edge passes", excepted)
    return edge


def _to_edge(constants: Constants, config: EdgeCompileConfig) -> None:
    """The edge passes on one graph: a method's, or that of a branch."""
    graph = constants.graph
    scalar_to_tensor(constants)
    drop_zero_points(constants)
    constant_fold(constants)
    simplify(constants)
    fold_convolution(constants)
    views_to_copies(graph)
    if not config._skip_dim_order:
        memory_format_to_dim_order(graph)
    common_subexpression(graph)
    remove_dead(graph)
    constants.drop_unused()


def finish(program: ExportedProgram) -> None:
    """Bring the signature's names and the generated code up to date with the graph.

    Raises:
        ExportError: a pass has changed how many inputs or outputs the graph has.
    """
    signature: ExportGraphSignature = program.graph_signature
    inputs = program.graph.find_nodes(op="placeholder")
    returned: Any = program.graph.output_node().args[0]
    has = (len(inputs), len(returned))
    needs = (len(signature.input_specs), len(signature.output_specs))
    if has != needs:
        raise ExportError(
            f"the graph has {has[0]} inputs and {has[1]} outputs, and the program's signature "
            f"{needs[0]} and {needs[1]}: a pass over graphs must keep their number; to change it, "
            f"write a pass over programs (ExportedProgramPassBase), which also changes "
            f"graph_signature",
            code=Code.INVALID_ARGUMENT,
        )
    for entry, node in zip(signature.input_specs, inputs, strict=True):
        if isinstance(entry.arg, TensorArgument):
            entry.arg = TensorArgument(node.name)
    for spec, node in zip(signature.output_specs, returned, strict=True):
        if isinstance(spec.arg, TensorArgument) and hasattr(node, "name"):
            spec.arg = TensorArgument(node.name)
    program.graph_module.recompile()
