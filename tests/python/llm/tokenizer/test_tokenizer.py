"""What tokenizers do beside tokens of texts: options, added tokens, errors, damaged tables."""

from __future__ import annotations

import json
import random
import threading
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import tokenizer_byte_level as byte_level
import tokenizer_corpus as corpus
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Peer

from rushlight.errors import ExportError, LoadError
from rushlight.llm.tokenizer import Tokenizer, compile
from rushlight.llm.tokenizer.merges import halves

GOLDEN = Path(__file__).resolve().parents[3] / "golden"


def _copy(peer: Peer) -> Peer:
    return Peer.from_str(peer.to_str())


def test_added_tokens_are_found_as_tokenizers_finds_them() -> None:
    peer = _copy(byte_level.train("gpt2"))
    peer.normalizer = normalizers.Lowercase()
    options = ("single_word", "lstrip", "rstrip", "normalized")
    names = ["<sep>", "[MASK]", "Yes", "yes-no", "ab", "abc", "É", "<s>", "中中", " x"]
    added = [
        AddedToken(f"{name}{bits or ''}", special=bool(bits & 1), **_bits(options, bits))
        for name in names
        for bits in range(16)
    ]
    peer.add_tokens([one for one in added if not one.special])
    peer.add_special_tokens([one for one in added if one.special])
    ours = Tokenizer.from_source(peer)
    draw = random.Random("added")
    parts = [one.content for one in added] + [" ", "  ", "\n", "a", "_", "é", ".", "YES", "Ab"]
    for _ in range(1500):
        text = "".join(draw.choices(parts, k=draw.randrange(1, 9)))
        assert ours.encode(text) == peer.encode(text).ids, text
    peer.encode_special_tokens = True
    for _ in range(1000):
        text = "".join(draw.choices(parts, k=draw.randrange(1, 9)))
        assert ours.encode(text, parse_special=False) == peer.encode(text).ids, text


def _bits(options: tuple[str, ...], bits: int) -> dict[str, bool]:
    return {option: bool(bits >> at & 1) for at, option in enumerate(options)}


NORMALIZERS = {
    "nfc": normalizers.NFC(),
    "nfd": normalizers.NFD(),
    "nfkc": normalizers.NFKC(),
    "nfkd": normalizers.NFKD(),
    "lower": normalizers.Lowercase(),
    "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "strip": normalizers.Strip(),
    "nmt": normalizers.Nmt(),
    "replace": normalizers.Sequence(
        [normalizers.Replace("a ", "bb"), normalizers.Replace(Regex(" {2,}"), "_")]
    ),
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalised_text_is_that_of_tokenizers(name: str) -> None:
    peer = _copy(byte_level.train("gpt2"))
    peer.normalizer = NORMALIZERS[name]
    ours = Tokenizer.from_source(peer)
    everything = corpus.characters()
    marks = [one for one in everything if unicodedata.decomposition(one) or _is_mark(one)]
    draw = random.Random(name)
    texts = corpus.texts(name, 50_000)
    texts += ["".join(draw.choices(marks, k=8)) for _ in range(1000)]
    texts.append("".join(everything))
    for text in texts:
        assert ours.encode(text) == peer.encode(text).ids, text[:100]


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


PRE_TOKENIZERS = {
    "whitespace": pre_tokenizers.Whitespace(),
    "spaces": pre_tokenizers.WhitespaceSplit(),
    "digits": pre_tokenizers.Digits(individual_digits=False),
    **{
        f"punctuation_{behavior}": pre_tokenizers.Punctuation(behavior)
        for behavior in (
            *("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"),
        )
    },
    "text": pre_tokenizers.Split("a", "merged_with_next"),
    "metaspace": pre_tokenizers.Metaspace(prepend_scheme="first"),
}


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_words_are_those_of_tokenizers(name: str) -> None:
    peer = _copy(byte_level.train("gpt2"))
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    peer.pre_tokenizer = pre_tokenizers.Sequence([PRE_TOKENIZERS[name], last])
    ours = Tokenizer.from_source(peer)
    for text in corpus.texts(name, 100_000):
        assert ours.encode(text) == peer.encode(text).ids, text[:100]


def _word_piece() -> Any:
    return models.WordPiece({"[UNK]": 0, "stop": 1, "s": 2, "##top": 3}, unk_token="[UNK]")


def _unigram() -> Any:
    return models.Unigram([("[UNK]", 0.0), ("stop", 0.0), ("s", -9.0), ("top", -9.0)], 0, False)


def _bpe(**options: Any) -> Any:
    vocabulary = {"[UNK]": 0, "stop": 1, "s": 2, "top": 3, "t": 4, "o": 5, "p": 6, "op": 7}
    merges = [("o", "p"), ("t", "op"), ("s", "top")]
    return models.BPE(vocabulary, merges, unk_token="[UNK]", **options)


SPECIAL_WORDS = {
    "word_piece": (_word_piece, None),
    "unigram": (_unigram, None),
    "bpe": (_bpe, None),
    "whole_words": (
        lambda: _bpe(ignore_merges=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ),
}


@pytest.mark.parametrize("kind", SPECIAL_WORDS)
def test_a_models_vocabulary_makes_no_text_a_special_token(kind: str) -> None:
    model, pre_tokenizer = SPECIAL_WORDS[kind]
    peer = Peer(model())
    if pre_tokenizer is not None:
        peer.pre_tokenizer = pre_tokenizer
    peer.add_special_tokens(["stop"])
    ours = Tokenizer.from_source(peer)
    assert ours.encode("stop") == [1] == peer.encode("stop").ids
    assert ours.encode("stop", parse_special=False) == [2, 3]
    peer.encode_special_tokens = True
    assert peer.encode("stop").ids == [1]  # the one difference that docs/llm/tokenizer.md has


def test_texts_are_cut_where_both_halves_may_be_tokens() -> None:
    long = "a" * 10**6
    assert sum(text == long for text, _, _ in halves([long, "aa", "aaa", "a"])) == 0
    cuts = list(halves([long, "aa", "aaa", long[1:]]))
    assert {(len(left), len(right)) for text, left, right in cuts if text == long} == {
        (1, 10**6 - 1),
        (10**6 - 1, 1),
    }
    assert [one for one in cuts if one[0] == "aaa"] == [("aaa", "a", "aa"), ("aaa", "aa", "a")]


def test_a_token_that_is_too_long_is_refused() -> None:
    peer = _copy(byte_level.train("gpt2"))
    peer.add_tokens(["a" * 65537])
    count = peer.get_vocab_size()
    with pytest.raises(ExportError, match=f"token {count - 1} of the tokenizer has 65537 bytes"):
        compile(peer)


def test_bytes_that_are_not_utf8_are_replaced_as_python_does() -> None:
    ours = Tokenizer.from_source(byte_level.train("llama3"))
    draw = random.Random("bytes")
    alphabet = [0x41, 0x20, 0x80, 0xBF, 0xC3, 0xA9, 0xE0, 0xE4, 0xED, 0xA0, 0xF0, 0x9F, 0xF4, 0xFF]
    for _ in range(3000):
        data = bytes(draw.choices(alphabet, k=draw.randrange(12)))
        text = data.decode(errors="replace")
        tokens = ours.encode(data)
        assert tokens == ours.encode(text)
        assert ours.decode(tokens) == text


def test_tokens_of_single_bytes_become_text_as_python_decodes_it() -> None:
    peer = byte_level.train("llama3")
    ours = Tokenizer.from_source(peer)
    token_of = {ours.piece(token): token for token in range(len(ours))}
    draw = random.Random("pieces")
    for _ in range(2000):
        data = bytes(draw.randrange(256) for _ in range(draw.randrange(10)))
        tokens = [token_of[bytes([byte])] for byte in data]
        assert ours.decode(tokens) == data.decode(errors="replace") == peer.decode(tokens)
        assert "".join(ours.stream(tokens)) == data.decode(errors="replace")


def test_special_tokens_have_names_and_numbers() -> None:
    ours = Tokenizer.from_source(byte_level.train("gpt2"))
    end = ours.special("<|end|>")
    assert end is not None and ours.is_special(end) and ours.piece(end) == b"<|end|>"
    assert ours.special("no such token") is None
    assert ours.decode([end, *ours.encode("x"), end]) == "x"
    assert ours.decode([end], skip_special=False) == "<|end|>"
    assert ours.decode([-1, 10**12, len(ours)]) == ""
    assert len(ours) == byte_level.train("gpt2").get_vocab_size()


def test_threads_share_a_tokenizer() -> None:
    tokenizers = [Tokenizer.from_source(byte_level.train(one)) for one in ("gpt2", "o200k")]
    texts = corpus.texts("threads", 30_000)
    expected = [[one.encode(text) for text in texts] for one in tokenizers]
    results: list[Any] = []

    def work() -> None:
        results.append([[one.encode(text) for text in texts] for one in tokenizers])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected, expected]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("tokenizer_*.table")), ids=lambda p: p.stem)
def test_tables_of_before_still_give_their_tokens(path: Path) -> None:
    ours = Tokenizer(path.read_bytes())
    for text, tokens in json.loads((GOLDEN / "tokenizers.json").read_text())[path.name]:
        assert ours.encode(text) == tokens


def _with(**changes: Any) -> Peer:
    source = json.loads(byte_level.train("gpt2").to_str())
    for key, value in changes.items():
        part, _, option = key.partition("__")
        if option:
            source[part][option] = value
        else:
            source[part] = value
    return Peer.from_str(json.dumps(source))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model__dropout": 0.1}, "dropout"),
        ({"model__end_of_word_suffix": "</w>"}, "end_of_word_suffix"),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, "UnicodeScripts"),
        ({"pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": "-"}}, "CharDelimiterSplit"),
        (
            {"normalizer": {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"}},
            "a\\+",
        ),
        ({"decoder": {"type": "BPEDecoder", "suffix": "</w>"}}, "BPEDecoder"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ExportError, match=named):
        compile(_with(**change))


def test_a_model_of_words_is_refused_by_name() -> None:
    with pytest.raises(ExportError, match="WordLevel"):
        compile(Peer(models.WordLevel({"a": 0}, unk_token="a")))


def test_an_unknown_regular_expression_is_refused_by_its_part() -> None:
    peer = _copy(byte_level.train("gpt2"))
    pattern = Regex(r"\p{N}{1,3}|[a-z]+|\s+")
    peer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    with pytest.raises(ExportError, match=r"begins with '\[a-z\]\+"):
        compile(peer)


def test_a_folder_is_read(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"neither tokenizer\.json nor tokenizer\.model"):
        compile(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ExportError, match="cannot read"):
        compile(tmp_path)
    peer = byte_level.train("gpt2")
    peer.save(str(tmp_path / "tokenizer.json"))
    assert compile(tmp_path) == compile(str(tmp_path / "tokenizer.json")) == compile(peer)
    with pytest.raises(ExportError, match="from int"):
        compile(3)


def test_a_damaged_table_is_refused() -> None:
    table = compile(byte_level.train("gpt2"))
    for damaged in (b"", table[:40], table[: len(table) // 2], b"x" + table[1:]):
        with pytest.raises(LoadError, match="table"):
            Tokenizer(damaged)
    with pytest.raises(LoadError, match="version 7"):
        Tokenizer(table[:4] + b"\7" + table[5:])


def test_a_tokenizer_without_decoder_joins_by_spaces() -> None:
    peer = _copy(byte_level.train("gpt2"))
    source = json.loads(peer.to_str()) | {"decoder": None}
    peer = Peer.from_str(json.dumps(source))
    ours = Tokenizer.from_source(peer)
    tokens = ours.encode("they came<|end|> home")
    assert ours.decode(tokens, skip_special=False) == peer.decode(tokens, skip_special_tokens=False)
    assert ours.decode(tokens) == peer.decode(tokens)


def test_a_fast_tokenizer_of_transformers_is_read() -> None:
    transformers = pytest.importorskip("transformers")
    peer = byte_level.train("gpt2")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=peer)
    assert compile(fast) == compile(fast.backend_tokenizer)
    assert Tokenizer.from_source(fast).encode("they came") == fast("they came")["input_ids"]
