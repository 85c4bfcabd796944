"""Programs of torch.export as ExecuTorch's `exir` serialises them: JSON of version 5.4.

torch's own serialiser writes a later version of the same schema. The two differ in a few fields, in
the numbers of some dtypes, and in the names of operators, which are those of the Edge dialect here.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import sympy
import torch
import torch.ao.quantization.fx._decomposed  # operators that recorded programs have
from torch._export.serde import schema
from torch._export.serde import serialize as serde
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.utils._sympy import functions

from rushlight.errors import Code, ExportError, LoadError
from rushlight.ir.branches import attribute, branches
from rushlight.ir.custom_ops import dim_order, executorch
from rushlight.ir.programs import copy_program
from rushlight.ir.source import debug_handles

Document = dict[str, Any]
_VERSION = {"major": 5, "minor": 4}
_OPS = "torch.ops."
_EDGE_OPS = "executorch.exir.dialects.edge.ops."
# Of torch's numbers of dtypes those that are others there; the rest up to bfloat16 are the same.
_DTYPES = {28: 14, 29: 16, 30: 15}
_SAME_DTYPES = 14
# Of symbolic sizes.
_FUNCTIONS = {name: getattr(functions, name) for name in functions.__all__}
_ARGUMENTS = frozenset(
    """as_none as_tensor as_tensors as_int as_ints as_float as_floats as_string as_strings
    as_sym_int as_sym_ints as_scalar_type as_memory_format as_layout as_device as_bool as_bools
    as_sym_bool as_sym_bools as_graph as_optional_tensors as_custom_obj as_operator as_name
    as_expr""".split()
)


@dataclass(frozen=True)
class Serialized:
    """A program: its JSON, and three archives of torch.save."""

    program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def serialized(program: ExportedProgram, *, edge: bool) -> Serialized:
    """A program as `exir` writes it, with the debug handles of its nodes.

    Args:
        program: not changed.
        edge: whether its operators are to have the names of the Edge dialect.

    Raises:
        ExportError: it has something that version 5.4 has no form for.
    """
    program = _with_filled_constants(program)
    try:
        parts = serde.ExportedProgramSerializer().serialize(program)
    except Exception as error:  # torch raises many types
        raise ExportError(
            "torch cannot serialise the program, which the ETRecord is to hold: "
            f"{str(error).strip().splitlines()[-1]}; change the model there, or export without "
            "etrecord=",
            code=Code.NOT_SUPPORTED,
        ) from error
    encoded = json.dumps(serde._dataclass_to_dict(parts.exported_program), cls=serde.EnumEncoder)
    document = json.loads(encoded)
    module = document["graph_module"]
    if edge:
        _add_handles(module["graph"], program.graph_module)
    else:  # the handles that the Edge program's nodes get from these
        handles = debug_handles(program.graph)
        for entry in module["graph"]["nodes"]:
            if entry["name"] in handles:
                entry["metadata"]["debug_handle"] = str(handles[entry["name"]])
    older = _Older(edge)
    converted = {
        "graph_module": {
            "graph": older.graph(module["graph"]),
            "signature": older.value(module["signature"]),
            "module_call_graph": older.calls(module["module_call_graph"]),
        },
        "opset_version": document["opset_version"],
        "range_constraints": document["range_constraints"],
        "schema_version": _VERSION,
        "dialect": "EDGE" if edge else "TRAINING",
        "verifiers": ["EDGE" if edge else "TRAINING"],
    }
    return Serialized(
        json.dumps(converted).encode(), parts.state_dict, parts.constants, parts.example_inputs
    )


def deserialized(parts: Serialized, *, edge: bool) -> ExportedProgram:
    """The program that `serialized` wrote, or ExecuTorch.

    Args:
        parts: what was written.
        edge: whether nodes are to have their debug handles, which captured programs have not.

    Raises:
        LoadError: it is damaged, or calls operators that are not there.
    """
    dim_order.define()
    executorch.define()
    try:
        document = json.loads(parts.program)
        module = document["graph_module"]
        handles = _taken_handles(module["graph"])
        newer = _Newer()
        converted = {
            "graph_module": {
                "graph": newer.graph(module["graph"]),
                "signature": newer.value(module["signature"]),
                "module_call_graph": newer.calls(module["module_call_graph"]),
            },
            "opset_version": document["opset_version"],
            "range_constraints": document["range_constraints"],
            "schema_version": dict(zip(("major", "minor"), schema.SCHEMA_VERSION, strict=True)),
            "verifiers": ["TRAINING"],
        }
        program = serde.ExportedProgramDeserializer().deserialize(
            serde._dict_to_dataclass(schema.ExportedProgram, converted),
            *(_loaded(part) for part in (parts.state_dict, parts.constants, parts.example_inputs)),
        )
    except (LoadError, MemoryError):
        raise
    except Exception as error:
        raise LoadError(
            f"the record's program cannot be read: {type(error).__name__}: {error}",
            code=Code.INVALID_EXTERNAL_DATA,
        ) from error
    for node in program.graph.nodes:
        if edge and node.name in handles:
            node.meta["debug_handle"] = handles[node.name]
    return program


def _loaded(archive: bytes) -> Any:
    """What torch.save wrote, without running code of the file."""
    return torch.load(io.BytesIO(archive), weights_only=True) if archive else {}


def _add_handles(graph: Document, module: GraphModule) -> None:
    """Put the debug handles of a graph's nodes, and those of its branches, into their metadata."""
    nodes = {node.name: node for node in module.graph.nodes}
    for entry in graph["nodes"]:
        node = nodes.get(entry["name"])
        if node is not None and "debug_handle" in node.meta:
            entry["metadata"]["debug_handle"] = str(node.meta["debug_handle"])
        for argument in entry["inputs"]:
            branch = argument["arg"].get("as_graph")
            inside = branch and getattr(module, branch["name"], None)
            if isinstance(inside, GraphModule):
                _add_handles(branch["graph"], inside)


def _taken_handles(graph: Document) -> dict[str, int]:
    handles = {}
    for entry in graph["nodes"]:
        handle = entry["metadata"].pop("debug_handle", None)
        if handle is not None and str(handle).isdecimal():
            handles[entry["name"]] = int(handle)
    return handles


class _Converter:
    """Converts the graphs of one version to the other."""

    def graph(self, graph: Document) -> Document:
        """A graph, and those of its branches."""
        named = ("sym_int_values", "sym_bool_values", "custom_obj_values")
        return {
            **{key: self.value(graph[key]) for key in ("inputs", "outputs")},
            **{
                key: {name: self.value(value) for name, value in graph.get(key, {}).items()}
                for key in named
            },
            "nodes": [self._node(entry) for entry in graph["nodes"]],
            "tensor_values": {
                name: {**self.value(meta), "dtype": self.dtype(meta["dtype"])}
                for name, meta in graph["tensor_values"].items()
            },
            "is_single_tensor_return": graph.get("is_single_tensor_return", False),
        }

    def _node(self, entry: Document) -> Document:
        return {
            "name": entry["name"],
            "target": self.target(entry["target"]),
            "inputs": [{"name": i["name"], "arg": self.value(i["arg"])} for i in entry["inputs"]],
            "outputs": self.value(entry["outputs"]),
            "metadata": entry["metadata"],
        }

    def calls(self, entries: list[Document]) -> list[Document]:
        """The signatures of the modules that were called."""
        converted = []
        for entry in entries:
            signature = entry.get("signature")
            if signature is not None:
                signature = {
                    **{key: self.value(signature[key]) for key in ("inputs", "outputs")},
                    **{key: signature[key] for key in ("in_spec", "out_spec")},
                }
            converted.append({"fqn": entry["fqn"], "signature": signature})
        return converted

    def value(self, value: Any) -> Any:
        """An argument, or a structure of arguments."""
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "expr_str" in value:
            return {**value, "expr_str": self.expression(value["expr_str"])}
        if len(value) == 1:
            ((kind, content),) = value.items()
            if kind == "as_none":
                return {kind: self.none}
            if kind == "as_scalar_type":
                return {kind: self.dtype(content)}
            if kind == "as_graph":
                return {kind: {"name": content["name"], "graph": self.graph(content["graph"])}}
            self.check(kind)
        return {key: self.value(one) for key, one in value.items()}

    none: Any = None

    def target(self, name: str) -> str:
        """The name of an operator."""
        return name

    def dtype(self, number: int) -> int:
        """The number of a dtype."""
        return number

    def expression(self, text: str) -> str:
        """A symbolic size."""
        return text

    def check(self, kind: str) -> None:
        """Refuse a kind of argument that the other version lacks."""


class _Older(_Converter):
    """From torch's version to that of `exir`."""

    none: Any = ()

    def __init__(self, edge: bool) -> None:
        self._edge = edge

    def graph(self, graph: Document) -> Document:
        if graph.get("sym_float_values"):
            raise _no_form("a symbolic float")
        return super().graph(graph)

    def target(self, name: str) -> str:
        if self._edge and name.startswith(_OPS) and not name.startswith(f"{_OPS}higher_order."):
            return _EDGE_OPS + name.removeprefix(_OPS)
        return name

    def dtype(self, number: int) -> int:
        if number >= _SAME_DTYPES and number not in _DTYPES:
            raise _no_form(f"the dtype {schema.ScalarType(number).name.lower()}")
        return _DTYPES.get(number, number)

    def expression(self, text: str) -> str:
        return str(sympy.sympify(text, locals=_FUNCTIONS))

    def check(self, kind: str) -> None:
        if kind.startswith("as_") and kind not in _ARGUMENTS:
            raise _no_form(f"an argument of the kind {kind.removeprefix('as_')}")


class _Newer(_Converter):
    """From the version of `exir` to torch's."""

    none: Any = True

    def target(self, name: str) -> str:
        return _OPS + name.removeprefix(_EDGE_OPS) if name.startswith(_EDGE_OPS) else name

    def _node(self, entry: Document) -> Document:
        converted = super()._node(entry)
        if entry["target"].startswith(f"{_OPS}higher_order."):
            # ExecuTorch's one result of a branch is a list of one, which torch would take apart.
            converted["is_hop_single_tensor_return"] = any(
                "as_tensors" in o for o in entry["outputs"]
            )
        return converted

    def dtype(self, number: int) -> int:
        return {old: new for new, old in _DTYPES.items()}.get(number, number)


def _no_form(what: str) -> ExportError:
    return ExportError(
        f"the ETRecord's programs have no form for {what}: export without etrecord=; the program's "
        "own map gives Inspector lines of Python, too (program=)",
        code=Code.NOT_SUPPORTED,
    )


def _with_filled_constants(program: ExportedProgram) -> ExportedProgram:
    """The program with constants of branches as calls that fill them: torch's serialiser takes
    constants of whole programs only.

    Raises:
        ExportError: the elements of such a constant differ.
    """
    if not any(_constants(module) for module in branches(program.graph_module)):
        return program
    copied = copy_program(program)
    for module in branches(copied.graph_module):
        for node, tensor in _constants(module):
            first = tensor.flatten()[:1]
            if not bool((tensor == first).all()):
                raise _no_form(
                    f"a constant of {tensor.numel()} elements in a branch of control flow"
                )
            graph = module.graph
            with graph.inserting_before(node):
                filled = graph.call_function(
                    torch.ops.aten.full.default,
                    (list(tensor.shape), first.item() if len(first) else 0),
                    {"dtype": tensor.dtype},
                )
            filled.meta = dict(node.meta)
            filled.meta["val"] = node.meta.get("val", tensor)
            node.replace_all_uses_with(filled)
            graph.erase_node(node)
    return copied


def _constants(module: GraphModule) -> list[tuple[Node, torch.Tensor]]:
    held = ((node, attribute(node)) for node in module.graph.nodes if node.op == "get_attr")
    return [(node, value) for node, value in held if isinstance(value, torch.Tensor)]
