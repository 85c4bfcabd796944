"""Checks that a runtime can run a lowered method: its operators, and the dtypes of each call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch._ops import OpOverload
from torch.fx import Node

from rushlight.errors import Code, ExportError
from rushlight.ir.findings import OTHER_OPERATORS, Finding, page_of, refusal
from rushlight.ir.kernels import Manifest, manifest
from rushlight.ir.operators import kernel_name, out_variant, runtime_name
from rushlight.ir.source import source_of
from rushlight.lower.method import LoweredMethod, spec_of
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.schema.operators import OperatorSchema
from rushlight.schema.source import Source

# Operators that no kernel runs, because only delegates have what they need, and the advice.
_DELEGATED = {
    "rushlight::cached_attention.out": (
        "Export with backend='cpu', which alone has the key-value cache of a language model's "
        "runner, with query, key and value of float32, float16 or bfloat16"
    ),
    "rushlight::adapter.out": (
        "Export with backend='cpu', which alone takes the adapters of a language model's runner, "
        "or leave adapters= out"
    ),
}
_OWN = (
    "Write its kernel in C++, {declaration}, and give its library with kernels=[...] (see "
    "docs/custom-operators.md); give one in Python to rushlight.runtime.register_kernel, or say "
    "with rushlight.edge.register_operator(...) which library of another runtime has it"
)
_SHOWN = 5  # places that are listed for one fault
_OTHER_DTYPE = "Give each a dtype that its kernel takes; `rushlight ops` lists them"

Faults = dict[str, dict[str, Source]]  # {fault: {place: line}}


def check_kernels(methods: Mapping[str, LoweredMethod], manifest: Manifest) -> None:
    """Check that the runtime runs every call of every method.

    Args:
        methods: lowered methods by name.
        manifest: the kernels of the runtime.

    Raises:
        ExportError: lists every operator without a kernel and every argument whose dtype the
            kernel does not take, each with the Python lines that need it.
    """
    missing: Faults = {}
    refused: Faults = {}
    for name, method in sorted(methods.items()):
        for node, operator in _calls(method):
            source = source_of(node)
            place = str(source) or f"{name}: {node.name}"
            if manifest.find(operator) is None:
                missing.setdefault(operator, {})[place] = source
                continue
            for fault in _wrong_dtypes(node, operator, manifest):
                refused.setdefault(fault, {})[place] = source
    if missing or refused:
        schemas = {k: v for method in methods.values() for k, v in schemas_of(method).items()}
        advice = {name: missing_advice(name, schemas) for name in sorted(missing)}
        raise _error(missing, advice, refused)


def _calls(method: LoweredMethod) -> Iterator[tuple[Node, str]]:
    """The calls of kernels with the kernels' names, those inside of delegates too."""
    for node in method.graph.nodes:
        name = kernel_name(node.target)
        if name is not None:
            yield node, name
    for module in _delegates(method):
        schemas = module.meta.get("schemas", {})
        for node in module.original_module.graph.nodes if schemas else ():
            variant = out_variant(node.target) if isinstance(node.target, OpOverload) else None
            name = None if variant is None else runtime_name(variant)
            if name is not None and name in schemas:
                yield node, name


def _delegates(method: LoweredMethod) -> Iterator[LoweredBackendModule]:
    for node in method.graph.nodes:
        if node.args and isinstance(node.args[0], LoweredBackendModule):
            yield node.args[0]


def operators_of(method: LoweredMethod) -> set[str]:
    """The names of the operators that a method calls, also inside of delegates."""
    return {name for _, name in _calls(method)}


def schemas_of(method: LoweredMethod) -> dict[str, str]:
    """The schemas of the operators that a method calls and no kernel of this package computes, by
    name."""
    own = manifest()
    inside = (module.meta.get("schemas", {}) for module in _delegates(method))
    return {
        name: str(node.target._schema)
        for node in method.graph.nodes
        if isinstance(node.target, OpOverload)
        and (name := kernel_name(node.target)) is not None
        and name not in own
    } | {name: text for schemas in inside for name, text in schemas.items()}


def _wrong_dtypes(node: Node, operator: str, manifest: Manifest) -> Iterator[str]:
    """The arguments of one call whose dtypes the kernel does not take, in words."""
    kernel = manifest.find(operator)
    if kernel is None or not isinstance(node.target, OpOverload):
        return  # views and numbers may have any dtype
    schema = node.target._schema
    outs = {a.name for a in schema.arguments if a.is_out}
    has_inputs = any("Tensor" in str(a.type) and not a.is_out for a in schema.arguments)
    for argument, value in _arguments(node):
        taken = kernel.takes(argument)
        follows = argument in outs and has_inputs and argument not in kernel.arguments
        if taken is None or follows:  # a result has the dtype that eager gives for the inputs
            continue
        for dtype in dict.fromkeys(_dtypes(value)):
            if dtype not in taken:
                yield (
                    f"{operator}: argument {argument!r} is {dtype}, the kernel takes "
                    f"{manifest.class_text(taken)}{_advice(taken)}"
                )


def _arguments(node: Node) -> Iterator[tuple[str, Any]]:
    """The arguments of a call with their names in the schema."""
    names = [a.name for a in node.target._schema.arguments]  # type: ignore[union-attr]
    yield from zip(names, node.args, strict=False)
    yield from node.kwargs.items()


def _dtypes(value: Any) -> Iterator[str]:
    """The dtypes of the tensors of one argument."""
    for item in value if isinstance(value, list | tuple) else [value]:
        spec = spec_of(item) if isinstance(item, Node) else None
        if spec is not None:
            yield str(spec.dtype).removeprefix("torch.")


def missing_advice(name: str, schemas: Mapping[str, str]) -> str:
    """What to do about an operator without a kernel.

    Args:
        name: the operator's.
        schemas: of the operators that are not the runtime's, by name.
    """
    if name in _DELEGATED:
        return _DELEGATED[name]
    try:
        schema = OperatorSchema.read(schemas[name])
        is_own = schema.namespace not in ("aten", "prims") and bool(schema.signature)
    except (KeyError, ValueError):
        is_own = False
    return _OWN.format(declaration=schema.declaration) if is_own else OTHER_OPERATORS


def _advice(taken: frozenset[str]) -> str:
    wanted = next((d for d in ("float32", "int64", "bool") if d in taken), None)
    return f": convert it with .to(torch.{wanted})" if wanted is not None else ""


def _error(missing: Faults, advice: Mapping[str, str], refused: Faults) -> ExportError:
    findings = [
        Finding(
            "unsupported-operator",
            f"the runtime has no kernel for {name}",
            advice[name],
            s,
        )
        for name in sorted(missing)
        for s in missing[name].values()
    ]
    findings += [
        Finding("unsupported-dtype", fault, _OTHER_DTYPE, source)
        for fault in sorted(refused)
        for source in refused[fault].values()
    ]
    text = []
    if missing:
        text.append("the runtime has no kernel for")
        text += [line for name in sorted(missing) for line in _lines(name, missing[name])]
        text.append(
            f"{'. '.join(dict.fromkeys(advice.values()))} [{page_of('unsupported-operator')}]"
        )
    if refused:
        text.append("the runtime's kernels do not take these dtypes:")
        text += [line for fault in sorted(refused) for line in _lines(fault, refused[fault])]
        text.append(f"{_OTHER_DTYPE} [{page_of('unsupported-dtype')}]")
    code = Code.OPERATOR_MISSING if missing else Code.NOT_SUPPORTED
    return refusal(*findings, code=code, text="\n".join(text))


def _lines(what: str, places: Mapping[str, Source]) -> Iterator[str]:
    yield f"  {what}"
    yield from (f"    needed by {place}" for place in list(places)[:_SHOWN])
    if len(places) > _SHOWN:
        yield f"    and {len(places) - _SHOWN} more lines"
