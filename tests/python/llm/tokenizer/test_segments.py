"""Long words are cut where nothing joins two characters; tokens stay those of the libraries."""

from __future__ import annotations

import random
import struct

import pytest
from tokenizers import Tokenizer as Peer
from tokenizers import models, pre_tokenizers, trainers

from rushlight.llm.tokenizer import Tokenizer, compile
from rushlight.llm.tokenizer.joints import joint_bits, of_merges, of_pieces
from rushlight.llm.tokenizer.table import Section

# Characters that share bytes, so that merges of parts of two of them come about.
SHARED = [chr(0x4E00 + 64 * i + j) for i in range(8) for j in (0, 1, 2)] + list("aàá😀😁")


def _texts(seed: str, alphabet: list[str], count: int) -> list[str]:
    draw = random.Random(seed)
    words = ["".join(draw.choices(alphabet, k=draw.randrange(1, 5))) for _ in range(60)]
    return [
        "".join(draw.choice(words if draw.random() < 0.8 else alphabet) for _ in range(length))
        for length in (draw.choice([1, 3, 10, 40, 300]) for _ in range(count))
    ]


def _without_joins(table: bytes) -> bytes:
    """The table, with no merge of parts of characters known."""
    changed = bytearray(table)
    (sections,) = struct.unpack_from("<I", table, 8)
    for i in range(sections):
        kind, _, offset, size = struct.unpack_from("<2I2Q", table, 16 + 24 * i)
        if kind == Section.BYTE_JOINS:
            changed[offset : offset + size] = b"\xff" * size
    return bytes(changed)


@pytest.mark.parametrize("size", [300, 400, 900])
def test_merges_of_parts_of_characters_join_segments(size: int) -> None:
    peer = Peer(models.BPE())
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, show_progress=False, max_token_length=5
    )
    peer.train_from_iterator(_texts("training", SHARED, 300), trainer)
    table = compile(peer)
    ours, apart = Tokenizer(table), Tokenizer(_without_joins(table))
    others = [*SHARED, *(chr(0x4E00 + 5 * i) for i in range(60)), "é", "\x00"]
    differ = 0
    for text in _texts(f"bytes {size}", others, 300):
        expected = peer.encode(text).ids
        assert ours.encode(text) == expected, text
        differ += apart.encode(text) != expected
    assert differ > 0  # or this test would not see merges of parts


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("unknown", ["[UNK]", None])
def test_unknown_characters_are_fused_across_segments(fuse: bool, unknown: str | None) -> None:
    known = list("abcdé中文")
    peer = Peer(models.BPE(unk_token=unknown, fuse_unk=fuse))
    special = [unknown] if unknown else []
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    peer.train_from_iterator(_texts("known", known, 200), trainer)
    ours = Tokenizer.from_source(peer)
    for text in _texts(f"unknown {fuse}", [*known, "x", "y", "日", "😀"], 300):
        assert ours.encode(text) == peer.encode(text).ids, text


def test_joints_are_those_of_pieces_and_of_merges() -> None:
    assert set(of_pieces(["abc", "中a", "x"])) == {("a", "b"), ("b", "c"), ("中", "a")}
    merges = {(0, 1): (1, 3), (3, 2): (0, 4), (9, 1): (2, 5)}  # 9 never comes about
    assert set(of_merges(merges, {0: "a", 1: "b", 2: "中"})) == {("a", "b"), ("b", "中")}
    bits = joint_bits([("a", "b"), ("b", "中")])
    assert sum(int(word).bit_count() for word in bits) == 2
    assert int(bits[2 * ord("a") + 1]) == 1 << ord("b") - 64
