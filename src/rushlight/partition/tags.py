"""Writes partitions into a program, as tags on calls and on the constants that they own."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Iterator

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import Partition

from rushlight.errors import Code, ExportError
from rushlight.ir.branches import branch
from rushlight.ir.source import source_of
from rushlight.partition.extract import data_of, data_of_branch
from rushlight.partition.partitioner import TAG


def tag_partitions(partitions: Iterable[Partition], prefix: str = "tag") -> list[str]:
    """Tag the partitions' nodes with `<prefix><id>`; returns the tags.

    Raises:
        ExportError: if a node has a tag already.
    """
    tags = []
    for partition in partitions:
        tag = f"{prefix}{partition.id}"
        tags.append(tag)
        for node in partition.nodes:
            if TAG in node.meta:
                raise ExportError(
                    f"node {node.name} ({node.target}) is in two partitions, "
                    f"{node.meta[TAG]!r} and {tag!r}",
                    code=Code.INVALID_ARGUMENT,
                    sources=[source_of(node)],
                )
            node.meta[TAG] = tag
    return tags


def graphs_of(program: ExportedProgram) -> Iterator[GraphModule]:
    """The graphs whose nodes can be tagged: the program's own first, then those of control flow.

    The graph of a branch is left out if the call that runs it is already tagged when the iteration
    resumes after the graph with that call.
    """
    todo = deque([program.graph_module])
    seen = set(todo)
    while todo:
        module = todo.popleft()
        yield module
        for node in module.graph.find_nodes(op="get_attr"):
            inner = branch(node)
            taken = all(TAG in user.meta for user in node.users)
            if inner is not None and inner not in seen and not taken:
                seen.add(inner)
                todo.append(inner)


def tag_constant_data(edge_program: ExportedProgram) -> None:
    """Let partitions own the parameters, buffers and constants that they use and nothing writes.

    Call it after all other nodes are tagged. A constant that several partitions use, or that the
    rest of the program uses too, is copied into each partition. If its `meta["no_copy"]` is set,
    lowering raises instead.
    """
    data = data_of(edge_program)
    for node, spec in data.specs.items():
        if spec.target not in data.written:
            _tag_like_users(node)
    for module in graphs_of(edge_program):
        for node in data_of_branch(module).specs:  # the program's own graph holds none
            _tag_like_users(node)


def tag_mutated_buffer(edge_program: ExportedProgram) -> None:
    """Let partitions own the buffers that only they use and write; the state stays in delegates.

    Call it after all other nodes are tagged. A buffer that other nodes use too is not tagged; its
    old and new values are passed at every call.
    """
    data = data_of(edge_program)
    for node, spec in data.specs.items():
        if spec.target not in data.written:
            continue
        new = data.written[str(spec.target)]
        tags = {user.meta.get(TAG) for user in node.users} | {_tag_of(new)}
        if len(tags) == 1 and None not in tags:
            node.meta[TAG] = tags.pop()


def _tag_of(node: Node) -> str | None:
    """The tag of a call; a `getitem` node has the tag of its source."""
    source = node.args[0] if node.target is operator.getitem else node
    assert isinstance(source, Node)
    tag: str | None = source.meta.get(TAG)
    return tag


def _tag_like_users(node: Node) -> None:
    tags = {user.meta[TAG] for user in node.users if TAG in user.meta}
    if tags:
        node.meta[TAG] = min(tags)
