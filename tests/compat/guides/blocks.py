"""What becomes of every line between the sentences of a guide: it runs, or has a listed reason.

A line runs if a scenario has it in one of its files, after the listed repairs. Spaces are not
compared, since one guide has lost its own. A stretch of lines that neither run nor are listed, and
an entry of the list that no stretch begins with, are findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from guides.documents import Document
from guides.repairs import DOWNLOADS, OMISSIONS, REPLACED
from guides.scenario import Scenario

_LAYOUT = "a list or a table of the text, not code"
_OUTPUT = "what a program prints, for reading"
_SHELL = "commands of the shell: the scenarios run the same steps"
_LEAST = 12  # characters: shorter lines, as a bracket, are in every file

# What a stretch of lines begins with, spaces left out, and why it does not run.
LISTED: tuple[tuple[str, str], ...] = (
    ("-", _LAYOUT),
    ("•", _LAYOUT),
    ("0", _LAYOUT),
    ("350", _LAYOUT),
    ("#Createadirectoryforthisexample.", "installs ExecuTorch itself"),
    ('eval"$(pyenvinit-)"', "installs ExecuTorch itself"),
    ("curlhttps://", DOWNLOADS),
    ("curl-Ohttps://", DOWNLOADS),
    ("./install_requirements.sh--clean", _SHELL),
    ("(rm-rfcmake-out&&mkdir", _SHELL),
    ("pythonexport_nanogpt.py", _SHELL),
    ("Entermodelprompt:", _OUTPUT),
    ("Totaldelegatedsubgraphs:", _OUTPUT),
    ("%aten_where_self_22", _OUTPUT),
    ("#...", OMISSIONS),
)


@dataclass(frozen=True)
class Stretch:
    """Lines of a guide that follow each other and have the same fate.

    Attributes:
        document: its name.
        run: the number of the run of lines in it.
        lines: without blank ones.
        users: names of the scenarios that have the lines; empty: none.
        reason: why they do not run; "": they do, or no reason is listed.
    """

    document: str
    run: int
    lines: tuple[str, ...]
    users: tuple[str, ...]
    reason: str = ""


def stretches(documents: Iterable[Document], scenarios: Iterable[Scenario]) -> Iterator[Stretch]:
    """All stretches of the documents, in their order."""
    texts = {
        scenario.name: [_squeezed(text) for step in scenario.steps for text in step.files.values()]
        for scenario in scenarios
    }
    for document in documents:
        for index, run in enumerate(document.runs):
            lines = [line for line in run.split("\n") if line.strip()]
            yield from _of_run(document.name, index, lines, texts)


def untaken(found: Iterable[Stretch]) -> list[str]:
    """Sentences on stretches that neither run nor are listed, and on entries without a stretch."""
    found = list(found)
    findings = [
        f"{stretch.document}: no scenario has {len(stretch.lines)} lines from {stretch.lines[0]!r}"
        for stretch in found
        if not stretch.users and not stretch.reason
    ]
    starts = [_squeezed(stretch.lines[0]).strip("\n") for stretch in found if not stretch.users]
    findings += [
        f"the list has {first!r}, which no text that does not run begins with"
        for first, _ in LISTED
        if not any(start.startswith(first) for start in starts)
    ]
    return findings


def _squeezed(text: str) -> str:
    """The lines that are not blank, without spaces, each between ends of lines."""
    for old, new in REPLACED:
        text = text.replace(old, new)
    lines = ("".join(line.split()) for line in text.split("\n"))
    return "\n" + "\n".join(line for line in lines if line) + "\n"


def _of_run(
    document: str, index: int, lines: list[str], texts: dict[str, list[str]]
) -> Iterator[Stretch]:
    left: list[str] = []
    at = 0
    while at < len(lines):
        count, users = _longest(lines[at:], texts)
        if not users:
            left.append(lines[at])
            at += 1
            continue
        if left:
            yield _without_users(document, index, left)
            left = []
        yield Stretch(document, index, tuple(lines[at : at + count]), users)
        at += count
    if left:
        yield _without_users(document, index, left)


def _longest(lines: list[str], texts: dict[str, list[str]]) -> tuple[int, tuple[str, ...]]:
    """How many of the first lines follow each other in a file, and the scenarios of such files."""
    count, users = 0, tuple(texts)
    while count < len(lines):
        wanted = _squeezed("\n".join(lines[: count + 1]))
        having = tuple(name for name in users if any(wanted in text for text in texts[name]))
        if not having:
            break
        count, users = count + 1, having
    is_found = len(_squeezed("\n".join(lines[:count]))) >= _LEAST
    return (count, users) if is_found else (0, ())


def _without_users(document: str, index: int, lines: list[str]) -> Stretch:
    first = _squeezed(lines[0]).strip("\n")
    reason = next((why for start, why in LISTED if first.startswith(start)), "")
    return Stretch(document, index, tuple(lines), (), reason)
