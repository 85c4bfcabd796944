"""A chat over a folder of documents: what fits a question goes into the prompt before it.

    python examples/llm/documents.py build/nano.pte docs --question "What is a page of the cache?"

Paragraphs are ranked by the words that they share with the question, rare words first. Any file
with a chat template will do; that of ``nano_gpt.py`` writes nonsense, since it knows one text.
Without ``--question``, questions are read from the terminal, and the conversation goes on.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
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


class Library:
    """The paragraphs of a folder, by their words."""

    def __init__(self, folder: Path) -> None:
        self.passages = [
            Passage(str(path.relative_to(folder)), paragraph.strip())
            for path in sorted(folder.rglob("*"))
            if path.suffix in ENDINGS
            for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
            if paragraph.strip()
        ]
        self._words = [Counter(words_of(passage.text)) for passage in self.passages]
        self._known_by = Counter(word for words in self._words for word in words)

    def find(self, question: str) -> Iterator[Passage]:
        """The passages that share words with a question, the best first."""
        asked = set(words_of(question))
        scores = [self._score(asked, words) for words in self._words]
        for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
            if scores[i] > 0:
                yield self.passages[i]

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
    parser.add_argument("--question", action="append", help="several are one conversation")
    parser.add_argument("--tokens", type=int, default=200, help="of a reply, at most")
    options = parser.parse_args()

    library = Library(options.folder)
    runner = rushlight.llm.load(options.model)
    session = runner.session()  # keeps the keys and values of what does not change
    talk: list[dict[str, Any]] = []
    for question in options.question or sys.stdin:
        talk.append({"role": "user", "content": question.strip()})
        answer(session, runner, library, talk, options.tokens)


if __name__ == "__main__":
    main()
