"""Partitions of small traced graphs: tags by operator, and a backend that compiles nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pass_text import text
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    tag_constant_data,
    tag_mutated_buffer,
)
from rushlight.partition.partitioner import TAG
from rushlight.partition.tags import graphs_of
from rushlight.partition.to_backend import lower_partitions

X = torch.ones(2, 2)


class Untouched(BackendDetails):
    """A backend whose payload is empty: what it was given stands in the lowered module."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        return PreprocessResult(b"")


class ByOperator(Partitioner):
    """Tags calls by the name of their operator, in branches too, and then constants and buffers."""

    def __init__(self, tags: Mapping[str, str]) -> None:
        super().__init__()
        self._tags = tags

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        for module in graphs_of(exported_program):
            tag_calls(module, self._tags)
        tag_constant_data(exported_program)
        tag_mutated_buffer(exported_program)
        specs = {tag: DelegationSpec("Untouched") for tag in self._tags.values()}
        return PartitionResult(exported_program, specs)


def tag_calls(module: GraphModule | ExportedProgram, tags: Mapping[str, str]) -> None:
    """Tag a graph's calls by the name of their operator, {"sin": tag}."""
    for node in calls_in(module):
        if operator_of(node) in tags:
            node.meta[TAG] = tags[operator_of(node)]


def calls_in(module: GraphModule | ExportedProgram) -> list[Node]:
    """A graph's calls in order."""
    return [node for node in module.graph.nodes if node.op == "call_function"]


def operator_of(node: Node) -> str:
    """The name of a call's operator, without its namespace and overload."""
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    return target.__name__ if schema is None else str(schema.name).partition("::")[2]


def tag_of(node: Node) -> Any:
    """The note of a node in the text of a tagged graph."""
    return node.meta.get(TAG)


def lowered(program: ExportedProgram, **tags: str) -> str:
    """The program with calls in place of its partitions, as text; what was given is as before.

    Args:
        program: what is lowered.
        tags: of calls, by the names of their operators.
    """
    before = text(program)
    after = lower_partitions({"forward": program}, {"forward": ByOperator(tags)})["forward"]
    assert text(program) == before
    return text(after)
