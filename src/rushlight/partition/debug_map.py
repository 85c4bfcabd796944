"""Maps a backend's own instructions to the nodes that they were made from."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from torch.fx import GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.ir.branches import branches


def numbered_calls(module: GraphModule) -> list[Node]:
    """The calls that are numbered 1, 2, …: all calls except `getitem`, first those of the graph,
    then those of its branches."""
    graphs = (module, *branches(module))
    calls = (n for one in graphs for n in one.graph.nodes if n.op == "call_function")
    return [node for node in calls if node.target is not operator.getitem]


def number_calls(module: GraphModule) -> None:
    """Give every call of a partition its own debug handle, so that a backend can name single calls.

    In the method, all calls that one captured call was decomposed into share a handle.
    """
    for number, node in enumerate(numbered_calls(module), start=1):
        node.meta["debug_handle"] = number
    for one in (module, *branches(module)):
        for node in one.graph.find_nodes(op="call_function", target=operator.getitem):
            made_by = node.args[0].meta.get("debug_handle")
            if made_by is not None:
                node.meta["debug_handle"] = made_by
        for node in one.graph.find_nodes(op="get_attr"):
            handles = [h for user in node.users if (h := user.meta.get("debug_handle")) is not None]
            if handles:
                node.meta["debug_handle"] = handles[0]


class DelegateMappingBuilder:
    """Builds `PreprocessResult.debug_handle_map`, one entry for every instruction of the backend.

    Args:
        generated_identifiers: number the instructions from 0; else the caller passes every
            identifier.
    """

    def __init__(self, generated_identifiers: bool = False) -> None:
        self._generated = generated_identifiers
        self._map: dict[int | str, tuple[int, ...]] = {}

    def insert_delegate_mapping_entry(
        self,
        nodes: Node | Sequence[Node] | None = None,
        handles: int | Iterable[int | None] | None = None,
        identifier: int | str | None = None,
    ) -> int | str:
        """Add an entry.

        Args:
            nodes: the nodes that the instruction was made from.
            handles: their debug handles; pass either `nodes` or `handles`. None is skipped.
            identifier: the identifier that the runtime uses for the instruction.

        Returns:
            The identifier.

        Raises:
            ExportError: if the identifier is missing, not needed or already used, or if there is no
                debug handle.
        """
        if (nodes is None) == (handles is None):
            raise _error("an entry takes either nodes= or handles=, not both or none")
        if nodes is not None:
            listed = [nodes] if isinstance(nodes, Node) else nodes
            handles = [node.meta.get("debug_handle") for node in listed]
        elif isinstance(handles, int):
            handles = [handles]
        known = tuple(sorted({h for h in handles or () if h is not None}))
        if not known:
            raise _error(
                "an entry's nodes have no debug handles, as nodes that a pass made: give the "
                "handles of the nodes that they replace"
            )
        if self._generated:
            if identifier is not None:
                raise _error(
                    f"the identifier {identifier!r} is given, but this builder generates "
                    f"identifiers: leave it out"
                )
            identifier = len(self._map)
        elif identifier is None:
            raise _error(
                "an entry has no identifier: give one, or use DelegateMappingBuilder(True)"
            )
        if identifier in self._map:
            raise _error(
                f"the identifier {identifier!r} is used twice: give each entry one of its own"
            )
        self._map[identifier] = known
        return identifier

    def get_delegate_mapping(self) -> dict[int | str, tuple[int, ...]]:
        """The map built so far: {identifier: sorted debug handles}."""
        return dict(self._map)


def _error(text: str) -> ExportError:
    return ExportError(f"delegate mapping: {text}", code=Code.INVALID_ARGUMENT)
