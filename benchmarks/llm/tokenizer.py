"""How quickly text becomes tokens, beside tokenizers, sentencepiece and tiktoken, on one thread.

Each pair takes turns, and the best of --repeat rounds of processor time counts; both give a Python
list. English is this project's pages and those of Python's help, "other" a mixture of all scripts,
code, emoji and white space. Vocabularies of --size are trained on them.

  python -m benchmarks tokenizer --size 8000 --families llama3,t5
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python" / "llm" / "tokenizer"))

import pydoc_data.topics  # noqa: E402

import tokenizer_byte_level as byte_level  # noqa: E402
import tokenizer_corpus as corpus  # noqa: E402
import tokenizer_sentence_piece as sentence_piece  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from tokenizers import Tokenizer as Peer  # noqa: E402
from tokenizers import models, normalizers, pre_tokenizers, trainers  # noqa: E402

from rushlight.llm.tokenizer import Tokenizer  # noqa: E402
from rushlight.llm.tokenizer.byte_level import to_bytes  # noqa: E402

Encode = Callable[[str], Any]
FAMILIES = (*byte_level.PRE_TOKENIZERS, "tiktoken", "llama2", "t5", "bert")


def english() -> str:
    """About 2 MB."""
    return corpus.prose() + "\n".join(map(str, pydoc_data.topics.topics.values()))


def _bert(size: int, text: str) -> Peer:
    peer = Peer(models.WordPiece(unk_token="[UNK]"))
    peer.normalizer = normalizers.BertNormalizer()
    peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=["[UNK]"], show_progress=False
    )
    peer.train_from_iterator([text], trainer)
    return peer


def _pair(family: str, size: int, text: str) -> tuple[Tokenizer, Encode]:
    """Our tokenizer and its peer's function."""
    if family in sentence_piece.FAMILIES:
        processor = sentence_piece.train(family, min(size, 8000), text)
        return Tokenizer.from_source(processor), processor.encode
    if family == "tiktoken":
        import tiktoken

        vocabulary = byte_level.train("llama3", size, text).get_vocab()
        special = {"<|end|>": 0, "<|start|>": 1}
        ranks = {to_bytes(one): id for one, id in vocabulary.items() if one not in special}
        encoding = tiktoken.Encoding(
            "llama3", pat_str=byte_level.LLAMA3, mergeable_ranks=ranks, special_tokens=special
        )
        return Tokenizer.from_source(encoding), encoding.encode_ordinary
    peer = _bert(size, text) if family == "bert" else byte_level.train(family, size, text)
    return Tokenizer.from_source(peer), lambda text: peer.encode(text).ids


def _seconds(encode: Encode, texts: list[str]) -> float:
    start = time.process_time()
    for text in texts:
        encode(text)
    return time.process_time() - start


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--size", type=int, default=32_000, help="(default: %(default)s)")
    options.add_argument("--repeat", type=int, default=5, help="(default: %(default)s)")
    options.add_argument("--families", type=lambda text: text.split(","), default=FAMILIES)
    arguments = options.parse_args()
    prose = english()
    mixture = "".join(corpus.texts("benchmark", 500_000))
    training = prose + corpus.code() + "".join(corpus.texts("training", 300_000))
    table = Table("family", "text", "MB", "ours MB/s", "peer MB/s", "ratio")
    for family in arguments.families:
        ours, peer = _pair(family, arguments.size, training)
        for name, text in (("English", prose), ("code", corpus.code()), ("other", mixture)):
            texts = [text[i : i + 20_000] for i in range(0, len(text), 20_000)]
            size = sum(len(one.encode()) for one in texts) / 1e6
            best = [float("inf")] * 2
            for _ in range(arguments.repeat):
                for side, encode in enumerate((ours.encode, peer)):
                    best[side] = min(best[side], _seconds(encode, texts))
            mine, other = (size / one for one in best)
            table.add_row(
                *(family, name, f"{size:.2f}", f"{mine:.1f}", f"{other:.1f}", f"{mine / other:.1f}")
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
