"""What keeps a model from being exported, as a report shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rushlight.schema.source import Source


@dataclass(slots=True)
class ExportFinding:
    """What keeps a model from being exported, or what a program does otherwise than the model.

    Attributes:
        method: the method's name.
        kind: of the finding, such as "unsupported-operator".
        what: the kind in words.
        problem, advice: a sentence each.
        page: of the documentation, with a rewrite.
        blocks: False if the model exports nevertheless.
        source: the place.
        code: the lines of the file around it; empty if the file cannot be read.
        first: the number of the first of them.
        stack: the lines of Python that led there, as in a traceback.
        torch: torch's own message; "" if there is none.
    """

    method: str
    kind: str
    what: str
    problem: str
    advice: str
    page: str
    blocks: bool
    source: Source | None = None
    code: list[str] = field(default_factory=list)
    first: int = 0
    stack: str = ""
    torch: str = ""
