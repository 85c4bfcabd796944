"""How quickly text becomes tokens and tokens text, beside tokenizers, sentencepiece and tiktoken.

On one thread. Each pair takes turns, and the best of --repeat rounds of processor time counts; both
give a Python list. English is this project's pages and those of Python's help, languages are drawn
words that come back as in real text (tests/python/llm/tokenizer/tokenizer_languages.py), "scripts"
are words of all scripts and changed text, "mixed" short pieces of everything; in these two hardly a
word comes back. Vocabularies of each of --sizes are trained on them; --keep names a folder where
they stay for the next time.

  python -m benchmarks tokenizer --sizes 32000 --families llama3,t5 --texts English,Thai
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python" / "llm" / "tokenizer"))

import pydoc_data.topics  # noqa: E402

import tokenizer_byte_level as byte_level  # noqa: E402
import tokenizer_corpus as corpus  # noqa: E402
import tokenizer_languages as languages  # noqa: E402
import tokenizer_mutations as mutations  # noqa: E402
import tokenizer_sentence_piece as sentence_piece  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from tokenizers import Tokenizer as Peer  # noqa: E402
from tokenizers import models, normalizers, pre_tokenizers, trainers  # noqa: E402

from rushlight.llm.tokenizer import Tokenizer  # noqa: E402
from rushlight.llm.tokenizer.byte_level import to_bytes  # noqa: E402

FAMILIES = (
    *(*byte_level.PRE_TOKENIZERS, "tiktoken", *sentence_piece.FAMILIES),
    *("t5_fast", "xlm_roberta", "bert"),
)


class Pair(NamedTuple):
    """Our tokenizer and its peer's functions."""

    ours: Tokenizer
    encode: Callable[[str], Any]
    decode: Callable[[list[int]], str]


@cache
def english() -> str:
    """About 2 MB."""
    return corpus.prose() + "\n".join(map(str, pydoc_data.topics.topics.values()))


@cache
def _texts() -> dict[str, str]:
    draw = random.Random("spaces")
    lines = english().split("\n")[:20_000]
    spaces = "".join(
        draw.choice([" ", "  ", "\n", "\t"]) * draw.randrange(9) + x[:4] for x in lines
    )
    return {
        "English": english(),
        "code": corpus.code(),
        "JSON": languages.records(500_000),
        **{name: languages.language(name, 300_000) for name in languages.SCRIPTS},
        "emoji": languages.emoji(200_000),
        "no spaces": languages.long_words(english()[:500_000]),
        "scripts": "".join(mutations.texts("benchmark", 500_000)),
        "mixed": "".join(corpus.texts("benchmark", 500_000)),
        "white space": spaces,
    }


@cache
def _training() -> str:
    drawn = [*mutations.texts("training", 1_000_000), *corpus.texts("training", 1_000_000)]
    written = languages.everything(300_000)
    return english() + corpus.code() + "".join(drawn) + "".join(written)


def _bert(size: int) -> Peer:
    peer = Peer(models.WordPiece(unk_token="[UNK]"))
    peer.normalizer = normalizers.BertNormalizer()
    peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=["[UNK]"], show_progress=False
    )
    peer.train_from_iterator([_training()], trainer)
    return peer


def _unigram(family: str, processor: Any) -> Peer:
    """The model of SentencePiece's t5 as `transformers` has it for tokenizers."""
    from rushlight.llm.tokenizer.from_sentencepiece import _Fields

    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
    peer = Peer(models.Unigram(pieces, processor.unk_id(), False))
    charsmap = _Fields(_Fields(processor.serialized_model_proto()).bytes(3)).bytes(2)
    runs = normalizers.Replace(byte_level.Regex(" {2,}"), "▁")
    spaces = pre_tokenizers.Metaspace(prepend_scheme="always")
    if family == "t5_fast":
        strip = normalizers.Strip(left=False, right=True)
        parts = [normalizers.Precompiled(charsmap), strip, runs]
        peer.pre_tokenizer = spaces
    else:
        parts = [normalizers.Nmt(), normalizers.NFKC(), runs]
        words = pre_tokenizers.WhitespaceSplit()
        peer.pre_tokenizer = pre_tokenizers.Sequence([words, spaces])
    peer.normalizer = normalizers.Sequence(parts)
    return peer


def _sentence_piece(family: str, size: int, keep: Path | None) -> Any:
    import sentencepiece

    path = keep / f"{family}-{size}.model" if keep else None
    if path and path.exists():
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    processor = sentence_piece.train(family, size, _training())
    if path:
        path.write_bytes(processor.serialized_model_proto())
    return processor


def _peer(family: str, size: int, keep: Path | None) -> Peer:
    if family in ("t5_fast", "xlm_roberta"):
        return _unigram(family, _sentence_piece("t5", size, keep))
    path = keep / f"{family}-{size}.json" if keep else None
    if path and path.exists():
        return Peer.from_file(str(path))
    peer = _bert(size) if family == "bert" else byte_level.train(family, size, _training())
    if path:
        peer.save(str(path))
    return peer


def _pair(family: str, size: int, keep: Path | None) -> Pair:
    if family in sentence_piece.FAMILIES:
        processor = _sentence_piece(family, size, keep)
        return Pair(Tokenizer.from_source(processor), processor.encode, processor.decode)
    if family == "tiktoken":
        import tiktoken

        vocabulary = _peer("llama3", size, keep).get_vocab()
        special = {"<|end|>": 0, "<|start|>": 1}
        ranks = {to_bytes(one): id for one, id in vocabulary.items() if one not in special}
        encoding = tiktoken.Encoding(
            "llama3", pat_str=byte_level.LLAMA3, mergeable_ranks=ranks, special_tokens=special
        )
        return Pair(Tokenizer.from_source(encoding), encoding.encode_ordinary, encoding.decode)
    peer = _peer(family, size, keep)
    return Pair(Tokenizer.from_source(peer), lambda text: peer.encode(text).ids, peer.decode)


def _seconds(function: Callable[[Any], Any], inputs: list[Any]) -> float:
    start = time.process_time()
    for one in inputs:
        function(one)
    return time.process_time() - start


def _best(repeat: int, functions: list[Callable[[Any], Any]], inputs: list[Any]) -> list[float]:
    rounds = [[_seconds(one, inputs) for one in functions] for _ in range(repeat)]
    return [min(each) for each in zip(*rounds, strict=True)]


def _row(pair: Pair, text: str, repeat: int) -> list[str]:
    texts = [text[i : i + 20_000] for i in range(0, len(text), 20_000)]
    size = sum(len(one.encode()) for one in texts) / 1e6
    tokens = [pair.ours.encode(one) for one in texts]
    mine, other = _best(repeat, [pair.ours.encode, pair.encode], texts)
    stream = lambda one: list(pair.ours.stream(one))  # noqa: E731
    decoded, their_decoded, streamed = _best(
        repeat, [pair.ours.decode, pair.decode, stream], tokens
    )
    figures = [size, size / mine, size / other, other / mine]
    figures += [size / decoded, size / their_decoded, their_decoded / decoded, size / streamed]
    return [f"{figure:.1f}" for figure in figures]


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sizes", type=int, nargs="*", default=[32_000, 128_000])
    options.add_argument("--repeat", type=int, default=5, help="(default: %(default)s)")
    options.add_argument("--families", type=lambda text: text.split(","), default=FAMILIES)
    options.add_argument("--texts", type=lambda text: text.split(","), default=[*_texts()])
    options.add_argument("--keep", type=Path, help="a folder for trained tokenizers")
    arguments = options.parse_args()
    heads = ("MB", "encode MB/s", "peer", "ratio", "decode MB/s", "peer", "ratio", "stream MB/s")
    table = Table("family", "size", "text", *heads)
    for size in arguments.sizes:
        for family in arguments.families:
            pair = _pair(family, size, arguments.keep)
            for name in arguments.texts:
                figures = _row(pair, _texts()[name], arguments.repeat)
                table.add_row(family, str(len(pair.ours)), name, *figures)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
