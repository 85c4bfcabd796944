"""Rewrites calls of operators that write their arguments as functional calls and copies.

This concerns the user's own operators. torch's decomposition knows what a copy into a buffer, or
into a view of one, becomes in a functional graph. The functional call writes in place again when
it is lowered, where nothing needs the old content.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from rushlight.ir.branches import branches
from rushlight.ir.custom_ops.updates import functional_form, in_place, writes
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.operators import arguments
from rushlight.ir.programs import copy_program
from rushlight.ir.rewrite import fake_mode_of, insert
from rushlight.ir.source import source_of


def prepare_writes(
    program: ExportedProgram, rules: Mapping[Any, Callable[..., Any]]
) -> ExportedProgram:
    """`program` if no operator of the user's writes its arguments, else a changed copy; tensors are
    shared.

    Args:
        program: of the ATen dialect.
        rules: decompositions by operator. Torch has made one call of a call that writes by the
            time that it decomposes, so theirs are used here.

    Raises:
        ExportError: an operator writes what a functional graph cannot express.
    """
    if not any(writes(n.target) for module in _modules(program) for n in module.graph.nodes):
        return program
    own = copy_program(program)
    for module in _modules(own):
        for node in list(module.graph.nodes):
            if writes(node.target) and node.target in rules:
                _decompose(module.graph, node, rules[node.target])
            elif writes(node.target):
                _rewrite(module.graph, node)
        module.recompile()
    return own


def _modules(program: ExportedProgram) -> list[GraphModule]:
    return [program.graph_module, *branches(program.graph_module)]


def _decompose(graph: Graph, node: Node, rule: Callable[..., Any]) -> None:
    """Put the calls of a rule in the place of a call."""
    inputs = node.all_input_nodes

    def call(*values: Any) -> Any:
        known = dict(zip(inputs, values, strict=True))
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
        return rule(*args, **kwargs)

    with fake_mode_of(graph):
        traced = make_fx(call)(*(one.meta["val"] for one in inputs)).graph
    nodes = dict(zip(traced.find_nodes(op="placeholder"), inputs, strict=True))
    for one in traced.nodes:
        if one.op == "get_attr":
            problem = f"the decomposition of {node.target} makes a tensor of numbers"
            advice = "Give the operator the tensor as an argument"
            raise refusal(Finding("not-lowered", problem, advice, source_of(node)))
        if one.op == "call_function":
            args, kwargs = torch.fx.node.map_arg((one.args, dict(one.kwargs)), nodes.__getitem__)
            nodes[one] = insert(graph, one.target, args, kwargs, like=node, value=one.meta["val"])
    returned: Any = traced.output_node().args[0]
    if isinstance(returned, Node):
        node.replace_all_uses_with(nodes[returned], propagate_meta=False)
    for user in list(node.users):  # the results, by their numbers
        user.replace_all_uses_with(nodes[returned[user.args[1]]], propagate_meta=False)
        graph.erase_node(user)
    graph.erase_node(node)


def _rewrite(graph: Graph, node: Node) -> None:
    try:
        form = functional_form(node.target)  # type: ignore[arg-type]
    except ValueError as error:
        advice = "Define it with arguments that are written as Tensor(a!), given by position"
        raise refusal(Finding("not-lowered", str(error), advice, source_of(node))) from None
    how = in_place(form)
    assert how is not None
    by_name = arguments(node)
    named = {a.name for a in form._schema.arguments if a.kwarg_only}
    args = tuple(value for name, value in by_name.items() if name not in named)
    kwargs = {name: by_name[name] for name in named}
    with graph.inserting_before(node):
        call = graph.call_function(form, args, kwargs)
        call.meta.update({k: v for k, v in node.meta.items() if k != "val"})
        many = len(form._schema.returns) > 1

        def result(number: int) -> Node:
            return graph.call_function(operator.getitem, (call, number)) if many else call

        for at in how.written:
            new = result(how.result_of(at))
            copied = graph.call_function(torch.ops.aten.copy_.default, (args[at], new))
            copied.meta.update(call.meta)
    if how.n_results == 1:
        with graph.inserting_before(node):
            node.replace_all_uses_with(result(0))
    else:  # the users take the results by their numbers, which stay, or there are none
        node.replace_all_uses_with(call)
    graph.erase_node(node)
