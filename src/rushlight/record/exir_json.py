"""Programs of torch.export as ExecuTorch's `exir` serialises them: JSON of version 5.4.

torch's own serialiser writes the graphs, in a later version of the schema.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # operators that recorded programs have
from torch._export.serde import schema
from torch._export.serde import serialize as serde
from torch._export.serde.serialize import SerializedArtifact
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from rushlight.edge.operators import is_spelled
from rushlight.errors import Code, Error, ExportError, LoadError
from rushlight.ir.custom_ops import dim_order, executorch
from rushlight.partition import LoweredBackendModule
from rushlight.record import exir_lowered
from rushlight.record.exir_graphs import add_own, ready, restore, take_own
from rushlight.record.exir_versions import Document, newer, older


@dataclass(frozen=True)
class Parts:
    """A program in torch's version of the schema, with what ExecuTorch's graphs have besides.

    Attributes:
        document: the table `ExportedProgram` as values of JSON.
        state_dict, constants, example_inputs: archives of torch.save; b"" is none.
    """

    document: Document
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def serialized(
    program: ExportedProgram,
    *,
    edge: bool = False,
    handles: Mapping[str, int] | None = None,
    opset: Mapping[str, int] | None = None,
) -> SerializedArtifact:
    """A program as `exir` writes it, with the debug handles of its nodes.

    Args:
        program: not changed.
        edge: whether torch's operators are to have the names of the Edge dialect.
        handles: debug handles by the names of nodes, in place of the nodes' own.
        opset: versions of libraries of operators, which are noted in the file.

    Raises:
        ExportError: it has something that version 5.4 has no form for.
    """
    parts = parts_of(program, edge=edge, opset=opset)
    for entry in parts.document["graph_module"]["graph"]["nodes"]:
        if handles is not None and entry["name"] in handles:
            entry["metadata"]["debug_handle"] = str(handles[entry["name"]])
    dialect = "EDGE" if edge or is_spelled(program) else "TRAINING"
    document = {**older(parts.document), "dialect": dialect, "verifiers": [dialect]}
    return SerializedArtifact(
        json.dumps(document).encode(), parts.state_dict, parts.constants, parts.example_inputs
    )


def parts_of(
    program: ExportedProgram, *, edge: bool = False, opset: Mapping[str, int] | None = None
) -> Parts:
    """A program in torch's version of the schema; see `serialized`."""
    copied, lowered = ready(program)
    try:
        writer = serde.GraphModuleSerializer(copied.graph_signature, copied.module_call_graph)
        table = schema.ExportedProgram(
            graph_module=writer.serialize(copied.graph_module),
            opset_version={"aten": torch._C._get_max_operator_version(), **(opset or {})},
            range_constraints=serde.serialize_range_constraints(program.range_constraints),
            schema_version=schema.SchemaVersion(*schema.SCHEMA_VERSION),
            verifiers=["TRAINING"],
        )
        constants = {**writer.custom_objs, **program.constants}
        held = (program.state_dict, constants, program.example_inputs)
        archives = [serde.serialize_torch_artifact(one) for one in held]
        document = document_of(table)
    except Exception as error:  # torch raises many types
        raise ExportError(
            "torch cannot serialise the program: "
            f"{str(error).strip().splitlines()[-1]}; change the model there, or, if an ETRecord is "
            "to hold it, export without etrecord=",
            code=Code.NOT_SUPPORTED,
        ) from error
    called = [
        (one, exir_lowered.text_of(one.module, serialized(one.module.original_module)))
        for one in lowered
    ]
    add_own(document["graph_module"]["graph"], program.graph_module, called, edge)
    return Parts(document, *archives)


def document_of(table: schema.ExportedProgram) -> Document:
    """A table of a program as values of JSON."""
    encoded = json.dumps(serde._dataclass_to_dict(table), cls=serde.EnumEncoder)
    document: Document = json.loads(encoded)
    return document


def deserialized(artifact: SerializedArtifact) -> ExportedProgram:
    """The program that `serialized` wrote, or ExecuTorch; no code of the file runs.

    Raises:
        LoadError: it is damaged, or calls operators that are not there.
    """
    try:
        document = newer(json.loads(artifact.exported_program))
        held = (artifact.state_dict, artifact.constants, artifact.example_inputs)
        return program_of(Parts(document, *held))
    except (Error, MemoryError):
        raise
    except Exception as error:  # of damaged files torch raises many types
        raise LoadError(
            f"the program cannot be read: {type(error).__name__}: {error}",
            code=Code.INVALID_EXTERNAL_DATA,
        ) from error


def program_of(parts: Parts) -> ExportedProgram:
    """The program that `parts_of` wrote; torch raises many types of errors if it is damaged."""
    dim_order.define()
    executorch.define()
    own = take_own(parts.document["graph_module"]["graph"])
    archives = (parts.state_dict, parts.constants, parts.example_inputs)
    program = serde.ExportedProgramDeserializer().deserialize(
        serde._dict_to_dataclass(schema.ExportedProgram, parts.document),
        *(_loaded(archive) for archive in archives),
    )
    restore(program.graph_module, own, _module_of)
    _name_parameters(program)
    return program


def _name_parameters(program: ExportedProgram) -> None:
    """Name the parameters of `forward`, which version 5.4 does not, by the inputs that torch.export
    names after them; not if one is a container."""
    signature = program.module_call_graph[0].signature
    if signature is None or signature.forward_arg_names is not None:
        return
    positional, named = signature.in_spec.children()
    inputs = [
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.USER_INPUT
    ]
    if all(one.is_leaf() for one in positional.children()):
        names = inputs[: positional.num_children]
        signature.forward_arg_names = [*names, *named.context]


def _module_of(text: str, facts: Document) -> LoweredBackendModule:
    return exir_lowered.module_of(text, facts, deserialized)


def _loaded(archive: bytes) -> Any:
    """What torch.save wrote, without running code of the file."""
    return torch.load(io.BytesIO(archive), weights_only=True) if archive else {}
