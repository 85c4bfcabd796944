"""The double array of a unigram model's pieces."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rushlight.llm.tokenizer.tries import NONE, PieceTrie, piece_trie, token_trie


def _token(trie: PieceTrie, text: str) -> int | None:
    """The token of a piece, as C++ walks to it; None: there is no such node."""
    node = 0
    for one in text:
        label = int(trie.labels[int(trie.label_pages[ord(one) >> 8]) << 8 | ord(one) & 255])
        if not int(trie.nodes["children"][node]) >> (label & 31) & 1:
            return None
        child = int(trie.nodes["base"][node]) ^ label
        if child >= len(trie.nodes) or int(trie.nodes["parent"][child]) != node:
            return None
        node = child
    return int(trie.tokens[node])


@pytest.mark.parametrize(
    "characters", ["ab", "abcdefghij▁", "".join(map(chr, range(0x4E00, 0x5600)))]
)
def test_pieces_are_found_and_nothing_else(characters: str) -> None:
    draw = random.Random(characters)
    texts = {"".join(draw.choices(characters, k=draw.randrange(1, 9))) for _ in range(3000)}
    tokens = {text: token for token, text in enumerate(sorted(texts))}
    scores = [draw.uniform(-15, -1) for _ in tokens]
    trie = piece_trie({text.encode(): token for text, token in tokens.items()}, scores)
    starts = {text[:end] for text in texts for end in range(len(text))}
    for text, token in tokens.items():
        assert _token(trie, text) == token
    for text in starts - texts:
        assert _token(trie, text) == NONE
    for _ in range(3000):
        text = "".join(draw.choices(characters, k=draw.randrange(1, 9)))
        if text not in texts and text not in starts:
            assert _token(trie, text) is None
    assert _token(trie, "\U0010ffff") is None
    # C++ takes the labels of characters that begin pieces for the root's children.
    first = [node for node, parent in enumerate(trie.nodes["parent"].tolist()) if parent == 0]
    assert first == [*range(1, len({text[0] for text in texts}) + 1)]
    assert trie.longest == max(map(len, texts))
    assert len(trie.nodes) < 1.5 * len(starts | texts) + 4096


@pytest.mark.parametrize("seed", range(8))
def test_bytes_lead_from_a_token_to_longer_ones_alone(seed: int) -> None:
    draw = random.Random(f"bytes {seed}")
    # Few first bytes and many last ones: nodes with few children and nodes with many.
    keys = {
        bytes(
            [*draw.choices(range(32, 48), k=draw.randrange(1, 7)), *draw.choices(range(256), k=2)]
        )
        for _ in range(4000)
    }
    made = token_trie({key: token for token, key in enumerate(sorted(keys))})
    assert made is not None
    units = made[0]
    children: dict[bytes, set[int]] = {}
    for key in keys:
        for end in range(len(key)):
            children.setdefault(key[:end], set()).add(key[end])
    all_bytes = np.arange(256)
    for text, expected in children.items():
        unit = int(units[0])
        for byte in text:
            unit = int(units[unit >> 9 ^ byte])
        found = all_bytes[(units[unit >> 9 ^ all_bytes] & 0xFF) == all_bytes]
        assert set(found.tolist()) == expected, text
