"""The blocks of code on a page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks_of(page: Path, language: str) -> list[str]:
    """The blocks in a language; "" for those that name none."""
    return [code for kind, code in FENCE.findall(page.read_text("utf-8")) if kind == language]
