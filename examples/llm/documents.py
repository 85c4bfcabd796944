"""A chat over a folder of documents: what fits a question goes into the prompt before it.

    python examples/llm/documents.py build/nano.pte docs --question "What is a page of the cache?"

Paragraphs are ranked by their embeddings, if the model's file has ``embed`` or ``--embedder`` names
one that has, such as a sentence encoder that ``rushlight llm export`` made; otherwise by the words
that they share with the question, rare words first. Any file with a chat template will do; that of
``nano_gpt.py`` writes nonsense, since it knows one text. Without ``--question``, questions are read
from the terminal, and the conversation goes on.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rushlight.llm
from rushlight.llm.runner import Runner, Session

ENDINGS = (".md", ".txt", ".rst")


@dataclass(frozen=True)
class Passage:
    """A paragraph of a document."""

    source: str
    text: str


def read_folder(folder: Path) -> list[Passage]:
    """The paragraphs of all documents in a folder."""
    return [
        Passage(str(path.relative_to(folder)), paragraph.strip())
        for path in sorted(folder.rglob("*"))
        if path.suffix in ENDINGS
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
        if paragraph.strip()
    ]


class Library(ABC):
    """Paragraphs that can be searched."""

    def __init__(self, passages: list[Passage]) -> None:
        self._passages = passages

    @abstractmethod
    def scores(self, question: str) -> Sequence[float]:
        """How well each passage fits a question; above 0 if it does at all."""

    def find(self, question: str) -> Iterator[Passage]:
        """The passages that fit a question, the best first."""
        scores = self.scores(question)
        for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
            if scores[i] > 0:
                yield self._passages[i]


class Vectors(Library):
    """By the angles between embeddings."""

    def __init__(self, passages: list[Passage], embedder: Runner) -> None:
        super().__init__(passages)
        self._embedder = embedder
        self._vectors = embedder.embed([passage.text for passage in passages], truncate=True)

    def scores(self, question: str) -> Sequence[float]:
        [vector] = self._embedder.embed([question], truncate=True)
        return (self._vectors @ vector).tolist()


class Words(Library):
    """By the words that passages share with a question."""

    def __init__(self, passages: list[Passage]) -> None:
        super().__init__(passages)
        self._words = [Counter(words_of(passage.text)) for passage in passages]
        self._known_by = Counter(word for words in self._words for word in words)

    def scores(self, question: str) -> Sequence[float]:
        asked = set(words_of(question))
        return [self._score(asked, words) for words in self._words]

    def _score(self, asked: set[str], words: Counter[str]) -> float:
        """BM25 without its correction for lengths below the mean."""
        length = 0.5 + words.total() / 100
        return sum(
            math.log(1 + len(self._words) / self._known_by[word])
            * words[word]
            / (words[word] + length)
            for word in asked & words.keys()
        )


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, without the s of a plural."""
    return [word.removesuffix("s") for word in re.findall(r"\w+", text.lower())]


def prompt_of(
    runner: Runner, library: Library, talk: list[dict[str, Any]], room: int
) -> tuple[list[dict[str, Any]], list[Passage]]:
    """A conversation with as many passages as leave `room` tokens for the reply."""
    passages: list[Passage] = []
    messages = talk
    for passage in library.find(talk[-1]["content"]):
        more = [*passages, passage]
        text = "\n\n".join(f"[{p.source}] {p.text}" for p in more)
        system = {"role": "system", "content": f"Answer from these passages.\n\n{text}"}
        if len(runner.encode_chat([system, *talk])) + room > runner.context:
            break
        passages, messages = more, [system, *talk]
        if len(passages) == 3:
            break
    return messages, passages


def answer(
    session: Session, runner: Runner, library: Library, talk: list[dict[str, Any]], tokens: int
) -> None:
    """Print the reply to the last message of a conversation, and add it."""
    messages, passages = prompt_of(runner, library, talk, tokens)
    print("from", ", ".join(passage.source for passage in passages) or "no document")
    stream = session.stream(messages, max_tokens=tokens)
    for piece in stream:
        print(piece.text, end="", flush=True)
    print()
    talk.append({"role": "assistant", "content": stream.reply().text})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedder", type=Path, help="a file that has embed; the model by default")
    parser.add_argument("--question", action="append", help="several are one conversation")
    parser.add_argument("--tokens", type=int, default=200, help="of a reply, at most")
    options = parser.parse_args()

    passages = read_folder(options.folder)
    runner = rushlight.llm.load(options.model)
    embedder = rushlight.llm.load(options.embedder) if options.embedder else runner
    by_vectors = embedder.hidden > 0
    library = Vectors(passages, embedder) if by_vectors else Words(passages)
    session = runner.session()  # keeps the keys and values of what does not change
    talk: list[dict[str, Any]] = []
    for question in options.question or sys.stdin:
        talk.append({"role": "user", "content": question.strip()})
        answer(session, runner, library, talk, options.tokens)


if __name__ == "__main__":
    main()
