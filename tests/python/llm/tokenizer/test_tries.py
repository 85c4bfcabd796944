"""The double array of a unigram model's pieces."""

from __future__ import annotations

import random

import pytest

from rushlight.llm.tokenizer.tries import NONE, PieceTrie, piece_trie


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
    assert trie.longest == max(map(len, texts))
    assert len(trie.nodes) < 1.5 * len(starts | texts) + 4096
