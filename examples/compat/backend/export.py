"""A backend of one's own: what it takes, and the table that its runtime reads.

python export.py FOLDER

The backend takes chains of functions of one number (sin, exp, neg): its payload is a text with the
name of a function on each line.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.exir import to_edge
from executorch.exir.backend.backend_details import BackendDetails, CompileSpec, PreprocessResult
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
)
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram

FUNCTIONS = {
    exir_ops.edge.aten.sin.default: "sin",
    exir_ops.edge.aten.exp.default: "exp",
    exir_ops.edge.aten.neg.default: "neg",
}


class TableBackend(BackendDetails):
    """Writes the names of the functions."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """One line for each function, in order; the scale of a compile spec is the first."""
        lines = [f"scale {spec.value.decode()}" for spec in compile_specs if spec.key == "scale"]
        for node in edge_program.graph.nodes:
            if node.op == "call_function":
                lines.append(FUNCTIONS[node.target])
        return PreprocessResult(processed_bytes="\n".join(lines).encode())


class TablePartitioner(Partitioner):
    """Takes what the backend has functions for.

    Args:
        scale: what the input of each chain is multiplied by.
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.delegation = DelegationSpec(
            "TableBackend", [CompileSpec("scale", str(scale).encode())]
        )

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """One partition for each connected group of functions."""
        taken = [[node] for node in exported_program.graph.nodes if node.target in FUNCTIONS]
        tags = {}
        for partition in generate_partitions_from_list_of_nodes(
            exported_program.graph_module, pattern_list=taken
        ):
            tag = f"table_{partition.id}"
            tags[tag] = self.delegation
            for node in partition.nodes:
                node.meta["delegation_tag"] = tag
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)


class Wave(torch.nn.Module):
    """A chain that the backend takes, and a sum that it does not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(-torch.sin(x)) + x


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    edge = to_edge(torch.export.export(Wave(), (torch.zeros(3),)))
    lowered = edge.to_backend(TablePartitioner(scale=2.0))
    program = lowered.to_executorch()
    (folder / "wave.pte").write_bytes(program.buffer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
