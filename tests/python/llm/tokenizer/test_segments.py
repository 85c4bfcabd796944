"""Long words are cut where nothing joins two characters; tokens stay those of the libraries."""

from __future__ import annotations

import pytest
import tokenizer_corpus as corpus
from tokenizers import Tokenizer as Peer
from tokenizers import models, trainers

from rushlight.llm.tokenizer import Tokenizer
from rushlight.llm.tokenizer.joints import joint_bits, of_merges


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("unknown", ["[UNK]", None])
def test_unknown_characters_are_fused_across_segments(fuse: bool, unknown: str | None) -> None:
    known = list("abcdé中文")
    peer = Peer(models.BPE(unk_token=unknown, fuse_unk=fuse))
    special = [unknown] if unknown else []
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    peer.train_from_iterator(corpus.of_alphabet("known", known, 200), trainer)
    ours = Tokenizer.from_source(peer)
    for text in corpus.of_alphabet(f"unknown {fuse}", [*known, "x", "y", "日", "😀"], 300):
        assert ours.encode(text) == peer.encode(text).ids, text


def test_joints_are_those_of_merges() -> None:
    merges = {(0, 1): (1, 3), (3, 2): (0, 4), (9, 1): (2, 5)}  # 9 never comes about
    assert set(of_merges(merges, {0: "a", 1: "b", 2: "中"})) == {("a", "b"), ("b", "中")}
    bits = joint_bits([("a", "b"), ("b", "中")])
    assert sum(int(word).bit_count() for word in bits) == 2
    assert int(bits[2 * ord("a") + 1]) == 1 << ord("b") - 64
