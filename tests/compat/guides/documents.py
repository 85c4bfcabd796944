"""Code blocks of a document that has lost its markup.

The guides are plain text in Chinese without fences. A block of code is a run of lines without
Chinese characters, and is found by the line that it begins with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PROSE = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")


class MissingBlockError(Exception):
    """A document does not have the code that a scenario takes from it."""


@dataclass(frozen=True)
class Document:
    """A guide.

    Attributes:
        name: of its file.
        runs: what stands between its sentences, without blank lines at both ends.
    """

    name: str
    runs: list[str]

    def block(self, first: str, last: str = "", having: str = "") -> str:
        """The code from a line on.

        Args:
            first: what the line begins with.
            last: what the last line begins with; "": the end of the run of lines.
            having: what the run of lines has, to tell it from others with such a line.

        Raises:
            MissingBlockError: there is none.
        """
        for run in self.runs:
            lines = run.split("\n")
            starts = [i for i, line in enumerate(lines) if line.startswith(first)]
            if not starts or having not in run:
                continue
            if not last:
                return "\n".join(lines[starts[0] :]) + "\n"
            for end in range(starts[0], len(lines)):
                if lines[end].startswith(last):
                    return "\n".join(lines[starts[0] : end + 1]) + "\n"
        wanted = f"{first!r}" + (f" to {last!r}" if last else "")
        raise MissingBlockError(f"{self.name}: no block of code from {wanted}")


def read_document(path: Path) -> Document:
    """A document, with lines of prose left out."""
    runs: list[str] = []
    lines: list[str] = []
    for line in [*path.read_text(encoding="utf-8").splitlines(), "\u3000"]:
        if not _PROSE.search(line):
            lines.append(line.rstrip())
            continue
        run = "\n".join(lines).strip("\n")
        if run:
            runs.append(run)
        lines = []
    return Document(path.name, runs)


def find_document(folder: Path, line: str) -> Document:
    """The document of a folder that has a line, which must begin with `line`.

    Raises:
        MissingBlockError: no file (.txt) of the folder has it.
    """
    for path in sorted(folder.glob("*.txt")):
        document = read_document(path)
        if any(row.startswith(line) for run in document.runs for row in run.split("\n")):
            return document
    raise MissingBlockError(f"{folder}: no document has a line {line!r}")
