"""`generate_model_size_information`: the bytes of a graph's constants and payloads.

`rushlight inspect` tells the bytes of every part of a finished file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.files import write_text
from rushlight.ir.branches import attribute, branches
from rushlight.partition import LoweredBackendModule
from rushlight.record.etrecord import parse_etrecord

Deserializers = Mapping[str, Callable[[bytes], dict[str, Any]]]


def generate_model_size_information(
    model: ExportedProgram,
    delegate_deserializers: Deserializers | None = None,
    flatbuffer: bytes | None = None,
) -> dict[str, Any]:
    """The parts of a program, the largest first, as what JSON can hold.

    Args:
        model: a program of any stage.
        delegate_deserializers: by backend, what more is told of its payloads.
        flatbuffer: the finished file, whose other bytes are then told too.

    Returns:
        "tensor_data": of each constant, parameter and buffer "name", "numel", "dtype",
        "element_size", "shape", "num_bytes" and "nn_module_stack"; "delegate_blob_data": of each
        payload "name", "backend_id" and "num_bytes"; "overview": the sums.
    """
    tensors, blobs = [], []
    signature = model.graph_signature
    held = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    values = {**model.constants, **model.state_dict}
    for graph_module in (model.graph_module, *branches(model.graph_module)):
        for node in graph_module.graph.nodes:
            value = attribute(node) if node.op == "get_attr" else None
            if node.op == "placeholder":
                value = values.get(held.get(node.name, ""))
            if isinstance(value, torch.Tensor):
                tensors.append(_tensor(node, value))
            elif isinstance(value, LoweredBackendModule):
                blobs.append(_blob(node, value, delegate_deserializers or {}))
    for parts in (tensors, blobs):
        parts.sort(key=lambda part: -part["num_bytes"])
    sums = [sum(part["num_bytes"] for part in parts) for parts in (tensors, blobs)]
    overview = {"total_tensor_data_size": sums[0], "total_delegate_blob_data_size": sums[1]}
    if flatbuffer is not None:
        overview["serialization_metadata_size"] = len(flatbuffer) - sum(sums)
        overview["model_size"] = len(flatbuffer)
    return {"tensor_data": tensors, "delegate_blob_data": blobs, "overview": overview}


def _tensor(node: Node, tensor: torch.Tensor) -> dict[str, Any]:
    stack = node.meta.get("nn_module_stack")
    return {
        "name": node.name,
        "numel": tensor.numel(),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "element_size": tensor.element_size(),
        "shape": list(tensor.shape),
        "num_bytes": tensor.nbytes,
        "nn_module_stack": None if stack is None else str(stack),
    }


def _blob(node: Node, lowered: LoweredBackendModule, told: Deserializers) -> dict[str, Any]:
    payload = lowered.processed_bytes
    blob = {"name": node.name, "backend_id": lowered.backend_id, "num_bytes": len(payload)}
    return blob | (told[lowered.backend_id](payload) if lowered.backend_id in told else {})


def parse_args() -> argparse.Namespace:
    """The arguments of the command line: `etrecord_path` and `output_path`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--etrecord_path", required=True, help="the record of an export")
    parser.add_argument(
        "--output_path", default="model_size_information.json", help="the file to write"
    )
    return parser.parse_args()


def main() -> None:
    """Write a list with `generate_model_size_information` of each further graph of a record, or
    of its Edge programs if it has none.

    Raises:
        LoadError: the record cannot be read.
        OSError: the file cannot be written.
    """
    options = parse_args()
    record = parse_etrecord(options.etrecord_path)
    graphs = record.graph_map or record.edge_programs
    told = [generate_model_size_information(program) for program in graphs.values()]
    write_text(options.output_path, json.dumps(told))


if __name__ == "__main__":
    main()
