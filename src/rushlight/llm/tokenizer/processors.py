"""Post-processors of `tokenizers`: the tokens before and after a text."""

from __future__ import annotations

from typing import Any

from rushlight.errors import Code, ExportError


def surrounding(source: dict[str, Any] | None) -> tuple[list[int], list[int]]:
    """The tokens before and after a single text.

    Args:
        source: the post-processor of a tokenizer.json.

    Raises:
        ExportError: it is not supported.
    """
    before: list[int] = []
    after: list[int] = []
    if source is None:
        return before, after
    for one in source["processors"] if source["type"] == "Sequence" else [source]:
        first, last = _surrounding(one)
        before, after = [*first, *before], [*after, *last]
    return before, after


def _surrounding(source: dict[str, Any]) -> tuple[list[int], list[int]]:
    kind = source["type"]
    if kind == "ByteLevel":
        return [], []
    if kind in ("BertProcessing", "RobertaProcessing"):
        return [source["cls"][1]], [source["sep"][1]]
    if kind != "TemplateProcessing":
        raise ExportError(
            f"the tokenizer's post-processor {source} is not supported: use a template of one text",
            code=Code.NOT_SUPPORTED,
        )
    before: list[int] = []
    after: list[int] = []
    seen = 0
    for part in source["single"]:
        if "Sequence" in part:
            seen += 1
            continue
        ids = source["special_tokens"][part["SpecialToken"]["id"]]["ids"]
        (after if seen else before).extend(ids)
    if seen != 1:
        raise ExportError(
            f"the tokenizer's template {source['single']} names the text {seen} times, not once",
            code=Code.NOT_SUPPORTED,
        )
    return before, after
