"""Models of SentencePiece against sentencepiece."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import tokenizer_corpus as corpus
import tokenizer_languages as languages
import tokenizer_mutations as mutations
import tokenizer_sentence_piece as sentence_piece

from rushlight.errors import ExportError
from rushlight.llm.tokenizer import Tokenizer, compile

pytest.importorskip("sentencepiece")


@pytest.mark.parametrize("family", sentence_piece.FAMILIES)
def test_tokens_are_those_of_sentencepiece(family: str) -> None:
    peer = sentence_piece.train(family)
    ours = Tokenizer.from_source(peer)
    texts = corpus.texts(family, 100_000) + mutations.texts(family, 100_000)
    texts += languages.everything(10_000)
    if "unigram" not in family and family != "t5":
        texts.append("".join(texts))
    for text in texts:
        expected = peer.encode(text)
        assert ours.encode(text, parse_special=False) == expected, text[:200]
        decoded = ours.decode(expected)
        assert decoded == peer.decode(expected), text[:200]
        assert "".join(ours.stream(expected)) == decoded


@pytest.mark.parametrize("family", ["t5", "unigram_bytes"])
def test_words_that_come_back_are_what_they_were(family: str) -> None:
    draw = random.Random(f"words {family}")
    peer = sentence_piece.train(family)
    ours = Tokenizer.from_source(peer)
    odd = [
        "\u2581",
        "a\u2581",
        "\u2581b",
        "\x01",
        "\u3000",
        "x\u3000",
        "\u00b4e",
        "e\u0301",
        "\u0301",
    ]
    odd += [
        "ﬁn",
        "①②",
        "😀",
        "中文",
        "\U00040000",
        "<sep>",
        "\u200b",
        "\u1680x",
        "a" * 30,
        "é" * 12,
    ]
    words = [*odd, *corpus.prose()[:3000].split()]
    for _ in range(300):
        chosen = draw.choices(words, k=draw.choice([2, 5, 30]))
        spaces = draw.choice([[" "], [" ", "  "], [" ", "\n", "\t", "\r\n"], ["", " "]])
        text = "".join(word + draw.choice(spaces) for word in chosen * 2)
        assert ours.encode(text, parse_special=False) == peer.encode(text), text


@pytest.mark.parametrize("family", ["t5", "unigram_bytes"])
def test_long_texts_are_searched_in_windows(family: str) -> None:
    """With runs of unknown characters, of one letter and of replaced ones over their ends."""
    draw = random.Random(f"windows {family}")
    peer = sentence_piece.train(family)
    ours = Tokenizer.from_source(peer)
    parts = ["\U00040000", "\U00040000\u4eff", "a", "the", "\uff21\uff22", "e\u0301", "\u200b", "-"]
    for _ in range(200):
        text = "".join(draw.choice(parts) * draw.randrange(1, 700) for _ in range(6))
        assert ours.encode(text, parse_special=False) == peer.encode(text), text[:200]
        spaced = " ".join(text[i : i + 9] for i in range(0, len(text), 9))
        assert ours.encode(spaced, parse_special=False) == peer.encode(spaced), spaced[:200]


def test_near_ties_are_decided_by_the_text_before() -> None:
    draw = random.Random("near ties")
    little = (0, 0, 2**-20, 2**-14, 2**-12, -(2**-10))
    peer = sentence_piece.with_scores(
        sentence_piece.train("t5"), lambda score: 4 * round(score / 4) + draw.choice(little)
    )
    ours = Tokenizer.from_source(peer)
    words = corpus.prose().split()[:4000]
    for size in (1, 3, 200, 4000):
        for _ in range(max(4, 400 // size)):
            text = " ".join(draw.choices(words, k=size))
            expected = peer.encode(text)
            for _ in range(2):  # the second time with words of the cache
                assert ours.encode(text, parse_special=False) == expected, text[:200]
    before, differ = " ".join(words[:1500]), 0
    for word in list(dict.fromkeys(words))[:300]:
        alone, after = peer.encode(word), peer.encode(f"{before} {word}")
        assert ours.encode(f"{before} {word}", parse_special=False) == after
        differ += after[-len(alone) :] != alone
    assert differ > 2  # such texts do depend on what stands before


def test_sums_of_scores_begin_anew_where_they_are_large() -> None:
    """SentencePiece does so beyond 100,000: here after every 100 pieces or so."""
    draw = random.Random("large sums")
    peer = sentence_piece.with_scores(
        sentence_piece.train("t5"), lambda score: 400 * round(score / 4) + draw.random() / 64
    )
    ours = Tokenizer.from_source(peer)
    words = corpus.prose().split()[:4000]
    others = [*"\u4e00\U0001f40d*", "x" * 300, "".join(draw.choices(words, k=80))]
    for _ in range(12):
        text = " ".join(draw.choices(words, k=600) + draw.choices(others, k=6))
        for _ in range(2):  # the second time with words of the cache
            assert ours.encode(text, parse_special=False) == peer.encode(text), text[:200]


def test_characters_are_replaced_by_rules_of_any_kind(tmp_path: Path) -> None:
    rules = {"ab": "c", "一丁": "x", " x": "y", "e\u0301": "é", "é\u0302": "ế", "z": "zz", "ก": ""}
    path = tmp_path / "rules.tsv"
    code = lambda text: " ".join(f"{ord(one):X}" for one in text)  # noqa: E731
    path.write_text("".join(f"{code(old)}\t{code(new)}\n" for old, new in rules.items()))
    draw = random.Random("rules")
    parts = [*"abceéxyz一丁丂กข \u0301\u0302", " ", "▁", "<sep>", "<", "  "]
    texts = ["".join(draw.choices(parts, k=draw.randrange(1, 30))) for _ in range(2000)]
    for kind in ("unigram", "bpe"):
        peer = sentence_piece.train_on(
            texts,
            model_type=kind,
            vocab_size=80,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(path),
            user_defined_symbols=["<sep>", "一ก"],
        )
        ours = Tokenizer.from_source(peer)
        for text in texts:
            assert ours.encode(text, parse_special=False) == peer.encode(text), text


def test_a_folder_says_which_tokens_surround_a_text(tmp_path: Path) -> None:
    peer = sentence_piece.train("llama2")
    (tmp_path / "tokenizer.model").write_bytes(b"nonsense")
    with pytest.raises(ExportError, match="sentencepiece cannot read"):
        compile(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(peer.serialized_model_proto())
    assert Tokenizer.from_source(tmp_path).encode("a b") == peer.encode("a b")
    options = {"add_bos_token": True, "add_eos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    ours = Tokenizer.from_source(tmp_path)
    assert ours.encode("a b") == peer.encode("a b", add_bos=True, add_eos=True)
    assert ours.encode("a b", add_special=False) == peer.encode("a b")
    assert ours.encode("<s>", add_special=False) == [peer.bos_id()]
    for damaged, told in (("{", "JSON"), ("[" * 100_000, "JSON"), ("[]", "a JSON object")):
        (tmp_path / "tokenizer_config.json").write_text(damaged)
        with pytest.raises(ExportError, match=rf"tokenizer_config.json is not {told}"):
            compile(tmp_path)
