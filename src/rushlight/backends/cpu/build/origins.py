"""The calls that each tile program of a cluster computes, if the cluster needs several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torch.fx import Node

from rushlight.backends.cpu.tiles.terms import LEAVES, Term


class Origins:
    """The calls of a cluster by the instructions that compute them.

    Args:
        shared: calls that are part of every program.
    """

    def __init__(self, shared: Sequence[Node] = ()) -> None:
        self._shared = list(shared)
        self._calls: dict[Term, list[Node]] = {}

    def add(self, nodes: Sequence[Node], terms: Mapping[Node, Term]) -> None:
        """Add a chain. A call without an instruction of its own counts to that of its user.

        Args:
            nodes: in order; only the last one's value is used elsewhere.
            terms: the value of each.
        """
        computed = _computed(terms[nodes[-1]])
        owner = {nodes[-1]: terms[nodes[-1]]}
        for node in reversed(nodes[:-1]):
            user = next(user for user in node.users if user in owner)
            owner[node] = terms[node] if terms[node] in computed else owner[user]
        for node in nodes:
            self.note(owner[node], [node])

    def note(self, term: Term, nodes: Iterable[Node]) -> None:
        """Add calls to those that an instruction computes."""
        self._calls.setdefault(term, []).extend(nodes)

    def of(self, terms: Iterable[Term]) -> list[Node]:
        """The calls that a program of these instructions computes; none if they are not known."""
        calls = [node for term in terms for node in self._calls.get(term, ())]
        return [*calls, *self._shared] if calls else []


def _computed(result: Term) -> set[Term]:
    """The terms that are computed for a result."""
    computed: set[Term] = set()
    stack = [result]
    while stack:
        term = stack.pop()
        if term in computed or term.op in LEAVES:
            continue
        computed.add(term)
        stack += term.inputs
    return computed
