"""The two versions of the schema of exported programs, as documents of JSON.

torch's own serialiser writes a later version of the schema that ExecuTorch's `exir` has. The two
differ in a few fields, in the numbers of some dtypes, and in the names of operators.
"""

from __future__ import annotations

from typing import Any

import sympy
from torch._export.serde import schema
from torch.utils._sympy import functions

from rushlight.errors import Code, ExportError

Document = dict[str, Any]
VERSION = (5, 4)
"""Of `exir`: files of the same first number can be read."""
OPS = "torch.ops."
HIGHER_ORDER = f"{OPS}higher_order."
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


def older(document: Document) -> Document:
    """A program of torch's version in that of `exir`, without its dialect.

    Raises:
        ExportError: it has something that the version has no form for.
    """
    return {**_converted(document, _Older()), "schema_version": _numbers(VERSION)}


def newer(document: Document) -> Document:
    """A program of `exir`'s version in torch's, with torch's operators."""
    return {
        **_converted(document, _Newer()),
        "schema_version": _numbers(schema.SCHEMA_VERSION),
        "verifiers": ["TRAINING"],
    }


def _numbers(version: tuple[int, int]) -> Document:
    return dict(zip(("major", "minor"), version, strict=True))


def _converted(document: Document, converter: _Converter) -> Document:
    module = document["graph_module"]
    return {
        "graph_module": {
            "graph": converter.graph(module["graph"]),
            "signature": converter.value(module["signature"]),
            "module_call_graph": converter.calls(module["module_call_graph"]),
        },
        "opset_version": document["opset_version"],
        "range_constraints": document["range_constraints"],
    }


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
            "target": entry["target"],
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

    def graph(self, graph: Document) -> Document:
        if graph.get("sym_float_values"):
            raise no_form("a symbolic float")
        return super().graph(graph)

    def _node(self, entry: Document) -> Document:
        converted = super()._node(entry)
        outputs = converted["outputs"]
        if _is_single(entry, outputs) and not entry.get("is_hop_single_tensor_return", True):
            converted["outputs"] = [{"as_tensors": [outputs[0]["as_tensor"]]}]
        return converted

    def dtype(self, number: int) -> int:
        return older_dtype(number)

    def expression(self, text: str) -> str:
        return str(sympy.sympify(text, locals=_FUNCTIONS))

    def check(self, kind: str) -> None:
        if kind.startswith("as_") and kind not in _ARGUMENTS:
            raise no_form(f"an argument of the kind {kind.removeprefix('as_')}")


class _Newer(_Converter):
    """From the version of `exir` to torch's."""

    none: Any = True

    def _node(self, entry: Document) -> Document:
        converted = super()._node(entry)
        outputs = converted["outputs"]
        if _is_single(entry, outputs):  # the result itself, or the one of a tuple, has another name
            is_result = outputs[0]["as_tensor"]["name"] == entry["name"]
            converted["is_hop_single_tensor_return"] = is_result
        elif entry["target"].startswith(HIGHER_ORDER):
            converted["is_hop_single_tensor_return"] = any("as_tensors" in o for o in outputs)
        return converted

    def dtype(self, number: int) -> int:
        return newer_dtype(number)


def older_dtype(number: int) -> int:
    """The number of a dtype in `exir`; ExportError if it has none."""
    if number >= _SAME_DTYPES and number not in _DTYPES:
        raise no_form(f"the dtype {schema.ScalarType(number).name.lower()}")
    return _DTYPES.get(number, number)


def newer_dtype(number: int) -> int:
    """The number of a dtype in torch, of that in `exir`."""
    return {old: new for new, old in _DTYPES.items()}.get(number, number)


def _is_single(entry: Document, outputs: list[Document]) -> bool:
    """Whether a call of a higher-order operator has one output that is a tensor."""
    is_higher = entry["target"].startswith(HIGHER_ORDER)
    return is_higher and len(outputs) == 1 and "as_tensor" in outputs[0]


def no_form(what: str) -> ExportError:
    """The error for what the version cannot say."""
    return ExportError(
        f"files of programs for ExecuTorch, and ETRecords, have no form for {what}: change the "
        "model there, or export without etrecord=; the program's own map gives Inspector lines of "
        "Python, too (program=)",
        code=Code.NOT_SUPPORTED,
    )
