"""Tries of the table: nodes in breadth-first order, and double arrays of characters and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NONE = 0xFFFFFFFF
_MOST_TRIES = 32  # places that are tried for the children of a node
_NODE = np.dtype([("base", "<u4"), ("parent", "<u4"), ("children", "<u4"), ("score", "<f4")])
_MOST_UNITS = 1 << 23
_LOWEST = float(np.finfo(np.float32).min)
Numbers = npt.NDArray[Any]


class Nodes(NamedTuple):
    """A trie in breadth-first order.

    Attributes:
        first: the children of node n are first[n] .. first[n + 1], sorted by label.
        labels: of each node, from its parent to it.
        values: of the keys that end at each node, or NONE.
    """

    first: Numbers
    labels: Numbers
    values: Numbers


class PieceTrie(NamedTuple):
    """The pieces of a unigram model: `PieceTrie` in `cpp/llm/tokenizer/table.h`.

    Attributes:
        nodes: base, parent, which children there may be, and score of each place.
        tokens: of the pieces that end at each place.
        label_pages: for 256 characters each, their page of `labels`.
        labels: of characters; 0: of those in no piece.
        longest: the number of characters of the longest piece.
    """

    nodes: Numbers
    tokens: Numbers
    label_pages: Numbers
    labels: Numbers
    longest: int


def breadth_first(labels: Numbers, sizes: Numbers, values: Numbers) -> Nodes:
    """The trie of some keys.

    Args:
        labels: the labels of all keys, one key after the other, in the order of the keys.
        sizes: how many labels each key has.
        values: of the keys.
    """
    starts = np.cumsum(sizes) - sizes
    at = np.zeros(len(sizes), np.int64)  # the node of the first `depth` labels of each key
    own_labels, node_values = [np.zeros(1, labels.dtype)], [np.array([NONE])]
    parents = [np.array([-1])]
    nodes, active = 1, np.arange(len(sizes))
    for depth in range(int(sizes.max())):
        active = active[sizes[active] > depth]
        label, parent = labels[starts[active] + depth], at[active]
        new = np.ones(len(active), bool)
        new[1:] = (label[1:] != label[:-1]) | (parent[1:] != parent[:-1])
        at[active] = nodes + np.cumsum(new) - 1
        count = int(new.sum())
        level = np.full(count, NONE, np.int64)
        ending = active[sizes[active] == depth + 1]
        level[at[ending] - nodes] = values[ending]
        own_labels.append(label[new])
        parents.append(parent[new])
        node_values.append(level)
        nodes += count
    children = np.bincount(np.concatenate(parents)[1:], minlength=nodes)
    first = np.concatenate([[1], 1 + np.cumsum(children)])
    return Nodes(first, np.concatenate(own_labels), np.concatenate(node_values))


def pages_of(values: Mapping[int, int], nothing: int, dtype: str) -> tuple[Numbers, Numbers]:
    """For 256 characters each, their page; and the pages.

    Args:
        values: of characters.
        nothing: the value of all others.
        dtype: of the values.
    """
    pages = np.full((0x1100, 256), nothing, dtype)
    for code, value in values.items():
        pages[code >> 8, code & 255] = value
    used = np.flatnonzero((pages != nothing).any(axis=1))
    index = np.zeros(0x1100, "<u2")
    index[used] = np.arange(1, len(used) + 1)
    empty = np.full((1, 256), nothing, dtype)
    return index, np.concatenate([empty, pages[used]]).reshape(-1)


def piece_trie(words: Mapping[bytes, int], scores: Sequence[float]) -> PieceTrie:
    """The trie of the pieces of a unigram model.

    Characters that begin pieces have the lowest labels. Otherwise what is used more often has lower
    labels and places, so that it shares lines of the processor's caches.

    Args:
        words: the pieces, as UTF-8, with their tokens.
        scores: of tokens: the logarithms of how likely they are.
    """
    pieces = {text.decode(): token for text, token in words.items() if text}
    likely = {text: float(np.exp(np.clip(scores[pieces[text]], -50, 0))) for text in pieces}
    weights: dict[str, float] = {}
    for text, weight in likely.items():
        for one in text:
            weights[one] = weights.get(one, 0.0) + weight
    first = {text[0] for text in pieces}
    ordered = sorted(weights, key=lambda one: (one not in first, -weights[one], one))
    label_of = {one: label for label, one in enumerate(ordered, 1)}
    keys = sorted(pieces, key=lambda text: [label_of[one] for one in text])
    sizes = np.array([len(text) for text in keys])
    labels = np.array([label_of[one] for text in keys for one in text], np.int64)
    nodes = breadth_first(labels, sizes, np.array([pieces[text] for text in keys]))
    score_of = np.array(scores)
    place, base = _double_array(nodes, _hottest_first(nodes, score_of))

    size = int(place.max()) + 1
    made, tokens = np.zeros(size, _NODE), np.full(size, NONE, "<u4")
    made["parent"], made["score"] = NONE, -np.inf
    ends = nodes.values != NONE
    made["base"][place] = base
    made["parent"][place[1:]] = place[_parents(nodes)]
    children = np.zeros(len(place), np.uint32)
    np.bitwise_or.at(
        children, _parents(nodes), np.uint32(1) << (nodes.labels[1:] & 31).astype("u4")
    )
    made["children"][place] = children
    made["score"][place[ends]] = np.clip(score_of[nodes.values[ends]], _LOWEST, -_LOWEST)
    tokens[place[ends]] = nodes.values[ends]
    of_characters = {ord(one): label for one, label in label_of.items()}
    return PieceTrie(made, tokens, *pages_of(of_characters, 0, "<u4"), int(sizes.max()))


def of_bytes(values: Mapping[bytes, int]) -> Nodes:
    """The trie of some texts, which are not none.

    Args:
        values: of the texts.
    """
    keys = sorted(values)
    labels = np.frombuffer(b"".join(keys), np.uint8)
    sizes = np.array([len(key) for key in keys])
    return breadth_first(labels, sizes, np.array([values[key] for key in keys], np.int64))


def token_trie(values: Mapping[bytes, int]) -> tuple[Numbers, Numbers] | None:
    """`TokenTrie` in `cpp/llm/tokenizer/table.h`: its units, and the token of each.

    Args:
        values: tokens of texts, which are not none; None: they have too many nodes.
    """
    nodes = of_bytes(values)
    place, base = _double_array(nodes, np.arange(len(nodes.labels)), reserved=256)
    size = -(-(int(place.max()) + 1) // 256) * 256
    if size > _MOST_UNITS:
        return None
    units, tokens = np.zeros(size, np.uint32), np.full(size, NONE, "<u4")
    tokens[place] = nodes.values
    units[place[1:]] = nodes.labels[1:]
    units[place] |= (nodes.values != NONE).astype(np.uint32) << 8 | base.astype(np.uint32) << 9
    is_base, free = np.zeros(size, bool), np.ones(size, bool)
    is_base[base] = True
    free[place[1:]] = False  # the root is no child either
    # No base has a child where none stands: its label would be one that leads from another base.
    waiting = np.flatnonzero(free)
    for label in range(256):
        fits = ~is_base[waiting ^ label]
        units[waiting[fits]] |= np.uint32(label)
        waiting = waiting[~fits]
    return units.astype("<u4"), tokens


def _parents(nodes: Nodes) -> Numbers:
    """Of all nodes but the root."""
    return np.repeat(np.arange(len(nodes.labels)), np.diff(nodes.first))


def _hottest_first(nodes: Nodes, scores: Numbers) -> Numbers:
    """All nodes, those before whose pieces are more likely; parents before their children."""
    weights = np.zeros(len(nodes.values))
    ends = nodes.values != NONE
    weights[ends] = np.exp(np.clip(scores[nodes.values[ends]], -50, 0))
    parents = _parents(nodes)
    for node in range(len(weights) - 1, 0, -1):
        weights[parents[node - 1]] += weights[node]
    return np.argsort(-weights, kind="stable")


def _double_array(nodes: Nodes, order: Numbers, reserved: int = 0) -> tuple[Numbers, Numbers]:
    """Place and base of each node: the child for a label stands at base ^ label.

    With `reserved` places, no child stands there, and no two nodes with children have one base.

    The children of a node take the first places that fit among a few that are free; or else the
    next that fit after the last such ones; or else new ones.
    """
    first, labels = nodes.first.tolist(), nodes.labels.tolist()
    place, base_of = [0] * len(labels), [0] * len(labels)
    taken = bytearray(b"\1" * max(1, reserved))
    free = last = len(taken)
    bases: set[int] = set()

    def fits(base: int, wanted: list[int]) -> bool:
        return base not in bases and not any(
            (base ^ one) < len(taken) and taken[base ^ one] for one in wanted
        )

    def base_for(wanted: list[int]) -> int:
        nonlocal last
        at = free
        for _ in range(_MOST_TRIES):
            if fits(at ^ wanted[0], wanted):
                return at ^ wanted[0]
            at = taken.find(0, at + 1)
            if at < 0:
                break
        while (last := taken.find(0, last + 1)) >= 0:
            if fits(last ^ wanted[0], wanted):
                return last ^ wanted[0]
        last = len(taken)
        width = 1 << max(wanted).bit_length()
        base = -(-last // width) * width
        while base in bases:
            base += width
        return base

    for node in order.tolist():
        begin, end = first[node], first[node + 1]
        if begin == end:
            continue
        base = base_for(labels[begin:end]) if node or reserved else 0
        base_of[node] = base
        if reserved:
            bases.add(base)
        for child in range(begin, end):
            at = base ^ labels[child]
            if at >= len(taken):
                taken.extend(bytes(at + 1 - len(taken)))
            taken[at] = 1
            place[child] = at
        free = taken.find(0, free)
        free = free if free >= 0 else len(taken)
    return np.array(place), np.array(base_of)
