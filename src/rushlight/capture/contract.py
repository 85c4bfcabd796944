"""The shape contract: what a captured program promises about its inputs and returns.

It travels in the file as JSON (named data `rushlight/contract`), so that the runtime can refuse a
wrong input before anything runs, and can rebuild the structure that eager returned.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import Node

from rushlight.capture.relations import Place, names_of, places_of, relations_of
from rushlight.capture.tree import leaf_paths, tree_of
from rushlight.ir.bounds import Bounds
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.symbols import origin_text
from rushlight.ir.torch_release import guards_of

# Where capture leaves the names of all of forward's parameters, in a graph module's meta.
FORWARD_PARAMETERS = "rushlight_forward_parameters"


def contract_of(program: ExportedProgram) -> dict[str, Any]:
    """The contract of one method.

    Args:
        program: a captured program, of the ATen or the Edge dialect.

    Returns:
        `{"inputs", "parameters", "positional", "in_spec", "outputs", "out_spec", "relations"}`,
        all JSON. The first `positional` parameters may be given by position; a later one only by
        keyword, because the model has parameters before it that got no value.

    Raises:
        ExportError: if a dynamic dimension has no upper bound, or the program is right only under
            a condition that no call could be checked against.
    """
    bounds = Bounds.of(program)
    names = parameter_names(program)
    in_spec, out_spec = program.call_spec.in_spec, program.call_spec.out_spec
    paths = leaf_paths(in_spec, names)
    nodes = {n.name: n for n in program.graph.nodes}
    inputs = []
    specs = _user(program, InputKind.USER_INPUT)
    for path, spec in zip(paths, specs, strict=True):
        inputs.append({"name": path, **_describe(spec.arg, nodes, bounds, path)})
    outputs = []
    for i, spec in enumerate(_user(program, OutputKind.USER_OUTPUT)):
        outputs.append(_describe(spec.arg, nodes, bounds, f"output {i}"))
    places = input_places(program)
    parameters = names + list(in_spec.children()[1].context)
    return {
        "inputs": inputs,
        "parameters": parameters,
        "positional": _positional(program, parameters, len(names)),
        "in_spec": tree_of(in_spec),
        "outputs": outputs,
        "out_spec": tree_of(out_spec),
        "relations": relations_of(guards_of(program), program.graph, places, bounds),
    }


def input_places(program: ExportedProgram) -> list[Place]:
    """Every size of a tensor and every integer in the inputs of a program."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes}
    named = _named_inputs(program)
    return places_of([path for _, path in named], [values.get(name) for name, _ in named])


def symbol_names(program: ExportedProgram, bounds: Bounds) -> dict[str, str]:
    """The symbols of a program and the user's name for each: "size 0 of x"."""
    begun = {str(symbol): origin_text(symbol, node) for symbol, node in bounds.origins.items()}
    return {**begun, **names_of(input_places(program))}


def input_paths(program: ExportedProgram) -> dict[str, str]:
    """Every placeholder of a user's input and the user's name for it: "batch['ids']"."""
    return dict(_named_inputs(program))


def _named_inputs(program: ExportedProgram) -> list[tuple[str, str]]:
    paths = leaf_paths(program.call_spec.in_spec, parameter_names(program))
    specs = _user(program, InputKind.USER_INPUT)
    return [(getattr(s.arg, "name", ""), path) for path, s in zip(paths, specs, strict=True)]


def parameter_names(program: ExportedProgram) -> list[str]:
    """The names of the parameters that got a value by position."""
    n = program.call_spec.in_spec.children()[0].num_children
    signature = program.module_call_graph[0].signature
    names = list(getattr(signature, "forward_arg_names", None) or [])
    return (names + [f"args[{i}]" for i in range(len(names), n)])[:n]


def _positional(program: ExportedProgram, parameters: list[str], least: int) -> int:
    declared = program.graph_module.meta.get(FORWARD_PARAMETERS)
    if declared is None:  # captured elsewhere: forward's other parameters are not known
        return len(parameters)
    same = 0
    while same < min(len(parameters), len(declared)) and parameters[same] == declared[same]:
        same += 1
    return max(same, least)


def _user(program: ExportedProgram, kind: Any) -> list[Any]:
    signature = program.graph_signature
    specs = signature.input_specs if isinstance(kind, InputKind) else signature.output_specs
    return [s for s in specs if s.kind == kind]


def _describe(arg: Any, nodes: dict[str, Node], bounds: Bounds, path: str) -> dict[str, Any]:
    if isinstance(arg, ConstantArgument):
        return _constant(arg.value, path)
    node = nodes.get(arg.name)
    value = node.meta.get("val") if node is not None else None
    if isinstance(value, torch.Tensor):
        shape = [
            bounds.describe(size, f"size {d} of {path}", node) for d, size in enumerate(value.shape)
        ]
        return {"kind": "tensor", "dtype": str(value.dtype).removeprefix("torch."), "shape": shape}
    if isinstance(value, torch.SymInt):
        return {"kind": "int", "range": bounds.describe_number(value)}
    if isinstance(value, torch.SymFloat | torch.SymBool):
        return {"kind": "float" if isinstance(value, torch.SymFloat) else "bool"}
    return _constant(value, path)


def _constant(value: Any, path: str) -> dict[str, Any]:
    if value is None:
        return {"kind": "none"}
    kind = {bool: "bool", int: "int", float: "float", str: "str"}.get(type(value))
    if kind is None:
        raise refusal(
            Finding(
                "unsupported-output",
                f"{path} is {type(value).__name__}, which a program cannot take or return",
                "Use tensors, numbers, strings, None, and containers of them",
            )
        )
    return {"kind": kind, "value": value}
