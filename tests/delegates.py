"""A backend for tests, whose payload is a partition's graph as JSON.

`Interpreted` writes payloads. `Interpreter` runs them in Python and can be registered with the
runtime. `run` runs a payload by itself.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Node
from torch.fx.passes.operator_support import OperatorSupportBase

from rushlight.ir.branches import attribute
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    DelegateMappingBuilder,
    DelegationSpec,
    LoweredBackendModule,
    NamedDataStore,
    PreprocessResult,
    SupportedOperatorPartitioner,
    get_delegates,
)

VERSION = 1


class Interpreted(BackendDetails):
    """The compiler. With the compile spec `data` = `named`, constants become named data."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        options = {spec.key: bytes(spec.value) for spec in compile_specs}
        store = NamedDataStore() if options.get("data") == b"named" else None
        payload = _write_program(edge_program, store)
        builder = DelegateMappingBuilder()
        for node in edge_program.graph.nodes:
            if node.op == "call_function":
                builder.insert_delegate_mapping_entry(nodes=node, identifier=node.name)
        return PreprocessResult(
            json.dumps(payload).encode(),
            builder.get_delegate_mapping(),
            store.get_named_data_store_output() if store is not None else None,
        )


class Other(BackendDetails):
    """The same backend under another name."""

    preprocess = Interpreted.preprocess


class Takes(OperatorSupportBase):
    """Supports calls whose operator's name begins with one of `names`, such as "aten.add"."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def is_node_supported(self, submodules: object, node: Node) -> bool:
        return node.op == "call_function" and str(node.target).startswith(self.names)


def taking(*names: str, backend: str = "Interpreted", **options: Any) -> Any:
    """A partitioner that gives `backend` the operators with these names."""
    specs = [CompileSpec(key, value) for key, value in options.items()]
    return SupportedOperatorPartitioner(DelegationSpec(backend, specs), Takes(*names))


def lowered_modules(program: ExportedProgram | GraphModule) -> list[LoweredBackendModule]:
    """The lowered modules of one graph, in its order."""
    graph = program.graph
    modules = [attribute(node) for node in get_delegates(graph)]
    assert all(isinstance(m, LoweredBackendModule) for m in modules)
    return modules


def declined(program: ExportedProgram, backend: str) -> dict[str, str]:
    """{operator outside the delegates: the reason why the backend did not take it}."""
    nodes = program.graph.nodes
    return {str(n.target): n.meta["declined"][backend] for n in nodes if "declined" in n.meta}


def calls_of(module: LoweredBackendModule) -> list[str]:
    """The operators inside a lowered module, such as "add.Tensor"."""
    return [
        str(n.target).removeprefix("aten.")
        for n in module.original_module.graph.nodes
        if n.op == "call_function" and n.target is not operator.getitem
    ]


# --- writing -------------------------------------------------------------------------------------


def _write_program(program: ExportedProgram, store: NamedDataStore | None) -> dict[str, Any]:
    signature = program.graph_signature
    data: dict[str, Any] = {}
    inputs, placeholders = [], program.graph.find_nodes(op="placeholder")
    for node, spec in zip(placeholders, signature.input_specs, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            inputs.append(node.name)
            continue
        assert spec.target is not None
        held = program.state_dict.get(spec.target, program.constants.get(spec.target))
        assert held is not None
        file = io.BytesIO()
        torch.save(held.detach().clone(), file)
        data[node.name] = {"inline": base64.b64encode(file.getvalue()).decode()}
        if store is not None:
            key = f"interpreted/{hashlib.sha256(file.getvalue()).hexdigest()}"
            data[node.name] = {"key": key}
            store.add_named_data(key, file.getvalue(), alignment=8)
    returned = program.graph.output_node().args[0]
    buffers = {spec.target: spec.arg.name for spec in signature.input_specs}
    written = {
        buffers[spec.target]: _write(node)
        for spec, node in zip(signature.output_specs, returned, strict=True)
        if spec.kind == OutputKind.BUFFER_MUTATION
    }
    outputs = [
        _write(node)
        for spec, node in zip(signature.output_specs, returned, strict=True)
        if spec.kind == OutputKind.USER_OUTPUT
    ]
    graph = {"inputs": inputs, "calls": _write_calls(program.graph_module), "outputs": outputs}
    return {"version": VERSION, "data": data, "written": written, **graph}


def _write_calls(module: GraphModule) -> list[dict[str, Any]]:
    return [
        {
            "name": node.name,
            "target": _name(node.target),
            "args": _write(node.args),
            "kwargs": {k: _write(v) for k, v in node.kwargs.items()},
        }
        for node in module.graph.nodes
        if node.op == "call_function"
    ]


def _name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return f"{target._schema.name}|{target._overloadname}"
    return f"{target.__module__}|{target.__name__}"


def _write(arg: Any) -> Any:
    if isinstance(arg, Node):
        if arg.op != "get_attr":
            return {"node": arg.name}
        inner = attribute(arg)
        if isinstance(inner, torch.Tensor):
            return {"tensor": inner.tolist(), "dtype": str(inner.dtype)}
        if isinstance(inner, LoweredBackendModule):
            return {"delegate": inner.processed_bytes.decode()}
        assert isinstance(inner, GraphModule)
        names = [n.name for n in inner.graph.find_nodes(op="placeholder")]
        returned = _write(list(inner.graph.output_node().args[0]))
        return {"graph": {"inputs": names, "calls": _write_calls(inner), "outputs": returned}}
    if isinstance(arg, list | tuple):
        return [_write(a) for a in arg]
    if arg is None or isinstance(arg, bool | int | float | str):
        return arg
    return {"torch": str(arg)}


# --- running -------------------------------------------------------------------------------------


def run(payload: bytes | memoryview, *inputs: Any) -> list[Any]:
    """The results of a payload without named data."""
    return Interpretation(bytes(payload), lambda key: None).run(list(inputs))


class Interpretation:
    """A payload that is ready to run, with its state."""

    def __init__(self, payload: bytes, named: Callable[[str], Any]) -> None:
        self.program = json.loads(payload)
        if self.program["version"] != VERSION:
            raise ValueError(f"the payload has version {self.program['version']}, not {VERSION}")
        self.data = {}
        for name, where in self.program["data"].items():
            raw = base64.b64decode(where["inline"]) if "inline" in where else named(where["key"])
            self.data[name] = torch.load(io.BytesIO(bytes(raw)))

    def run(
        self, inputs: Sequence[Any], at: Callable[[str], None] = lambda name: None
    ) -> list[Any]:
        """Run once.

        Args:
            inputs: tensors and numbers.
            at: called with every call's name before it runs.
        """
        env = {**self.data}
        outputs = _run_graph(self.program, inputs, env, at)
        self.data.update({k: _read(v, env, at).clone() for k, v in self.program["written"].items()})
        return outputs


def _run_graph(
    graph: dict[str, Any], inputs: Sequence[Any], env: dict[str, Any], at: Callable[[str], None]
) -> list[Any]:
    env.update(zip(graph["inputs"], inputs, strict=True))
    for call in graph["calls"]:
        at(call["name"])
        args = [_read(a, env, at) for a in call["args"]]
        kwargs = {k: _read(v, env, at) for k, v in call["kwargs"].items()}
        env[call["name"]] = _call(call["target"], args, kwargs)
    return [_read(o, env, at) for o in graph["outputs"]]


def _call(target: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    first, _, last = target.partition("|")
    if last == "cond":
        pred, yes, no, operands = args
        return (yes if pred else no)(operands)
    if last == "executorch_call_delegate":
        return args[0](*args[1:])
    if first in ("_operator", "math"):
        return getattr(__import__(first), last)(*args)
    if first.startswith("torch"):
        return getattr(torch, last)(*args)
    namespace, _, name = first.partition("::")
    overload = getattr(getattr(getattr(torch.ops, namespace), name), last or "default")
    return overload(*args, **kwargs)


def _read(arg: Any, env: dict[str, Any], at: Callable[[str], None]) -> Any:
    if isinstance(arg, list):
        return [_read(a, env, at) for a in arg]
    if not isinstance(arg, dict):
        return arg
    if "node" in arg:
        return env[arg["node"]]
    if "graph" in arg:
        return lambda operands: _run_graph(arg["graph"], operands, dict(env), at)
    if "delegate" in arg:
        return lambda *inputs: run(arg["delegate"].encode(), *inputs)
    if "tensor" in arg:
        return torch.tensor(arg["tensor"], dtype=getattr(torch, arg["dtype"].partition(".")[2]))
    kind, _, name = arg["torch"].rpartition(".")
    return getattr(torch, name) if kind == "torch" else torch.device(arg["torch"])


class Interpreter:
    """The runtime, for `rushlight.runtime.register_backend`."""

    def init(self, context: Any) -> Interpretation:
        return Interpretation(bytes(context.payload), context.named_data)

    def run(self, handle: Interpretation, inputs: Sequence[Any], at: Callable[[str], None]) -> Any:
        """The results for `execute` to write."""
        return handle.run(inputs, at)

    def execute(self, context: Any, handle: Interpretation, args: Sequence[Any]) -> None:
        n_inputs = len(handle.program["inputs"])
        inputs = [torch.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for a in args]
        results = self.run(handle, inputs[:n_inputs], context.fail_at)
        for i, result in enumerate(results, start=n_inputs):
            out = args[i]
            if out.shape != tuple(result.shape):
                out = context.resize(i, list(result.shape))
            out[...] = result.numpy()


def flat(results: Any) -> list[torch.Tensor]:
    """Results as a list of tensors."""
    if isinstance(results, torch.Tensor):
        return [results.detach()]
    if isinstance(results, np.ndarray | np.generic | int | float):
        return [torch.as_tensor(np.asarray(results))]
    values: Iterable[Any] = results.values() if isinstance(results, dict) else results
    return [t for result in values for t in flat(result)]
