"""A program report as one self-contained HTML page, without other files or network access."""

from __future__ import annotations

import dataclasses
import html
import json
from importlib import resources
from typing import Any

from rushlight.inspect.model import ProgramContents

# Concatenated in this order into one script; each file may use the files before it.
_SCRIPTS = ("dom.js", "program.js", "memory.js", "layout.js", "drawing.js", "flame.js", "graph.js",
            "tables.js", "findings.js", "main.js")  # fmt: skip


def page(report: ProgramContents) -> str:
    """The page as text, to be written as UTF-8."""
    folder = resources.files("rushlight.inspect") / "page"

    def part(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    parts = {
        "{{title}}": html.escape(report.name or "program"),
        "{{style}}": part("page.css"),
        "{{script}}": "\n".join(part(name) for name in _SCRIPTS),
        "{{data}}": embedded(_compact(report)),
    }
    head, *rest = part("page.html").split("<!--")
    text = [head]
    for piece in rest:  # piece by piece, so that inserted text is not searched for marks
        mark, _, after = piece.partition("-->")
        text += [parts[mark], after]
    return "".join(text)


def plain_page(title: str, body: str, style: str) -> str:
    """A page without scripts or network access, in the style of the report, as text.

    Args:
        title: of the page, as plain text.
        body: HTML.
        style: CSS that is added to the report's.
    """
    shared = (resources.files("rushlight.inspect") / "page" / "page.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)} · rushlight</title>
<style>{shared}{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def embedded(value: Any) -> str:
    """JSON that is safe inside a script element, whatever names it holds."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _compact(value: Any) -> Any:
    """Like `dataclasses.asdict`, without the fields that have their default."""
    if isinstance(value, list | tuple):
        return [_compact(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    fields = {}
    for f in dataclasses.fields(value):
        item = getattr(value, f.name)
        default = f.default
        if f.default_factory is not dataclasses.MISSING:
            default = f.default_factory()
        if default is dataclasses.MISSING or item != default:
            fields[f.name] = _compact(item)
    return fields
