"""Normalisers of `tokenizers` as operations."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.tokenizer.operations import Normalize, Operation

_RUNS = re.compile(r"(.)\{2,\}\Z", re.S)


def _flat(source: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if source is None:
        return
    if source["type"] == "Sequence":
        for one in source["normalizers"]:
            yield from _flat(one)
    else:
        yield source


def normalizer_of(source: dict[str, Any] | None) -> tuple[list[Operation], bytes]:
    """The operations of a normaliser, and its map of characters, if it has one.

    Raises:
        ExportError: it is not supported.
    """
    operations: list[Operation] = []
    charsmap = b""
    for one in _flat(source):
        if one["type"] == "Precompiled":
            if charsmap:
                raise _refused(one)
            charsmap = base64.b64decode(one["precompiled_charsmap"] or "")
            operations += [Operation(Normalize.CHARSMAP)] if charsmap else []
        else:
            operations += _operations(one)
    return operations, charsmap


def _refused(source: dict[str, Any]) -> ExportError:
    return ExportError(
        f"the tokenizer's normaliser {source} is not supported: use the normaliser of Llama, "
        "Gemma, Qwen2, T5 or BERT",
        code=Code.NOT_SUPPORTED,
    )


_PLAIN = {
    "NFD": Operation(Normalize.DECOMPOSE),
    "NFKD": Operation(Normalize.DECOMPOSE, 1),
    "NFC": Operation(Normalize.COMPOSE),
    "NFKC": Operation(Normalize.COMPOSE, 1),
    "Lowercase": Operation(Normalize.LOWERCASE),
    "StripAccents": Operation(Normalize.STRIP_ACCENTS),
    "Nmt": Operation(Normalize.NMT),
}


def _operations(source: dict[str, Any]) -> list[Operation]:
    match source["type"]:
        case "Prepend":
            return [Operation(Normalize.PREPEND, text=source["prepend"].encode())]
        case "Strip":
            left, right = int(source["strip_left"]), int(source["strip_right"])
            return [Operation(Normalize.STRIP, left, right)]
        case "BertNormalizer":
            return _bert(source)
        case "Replace":
            return [_replace(source)]
    if source["type"] not in _PLAIN:
        raise _refused(source)
    return [_PLAIN[source["type"]]]


def _replace(source: dict[str, Any]) -> Operation:
    pattern, content = source["pattern"], source["content"].encode()
    if "String" in pattern:
        if pattern["String"]:
            return Operation(Normalize.REPLACE, text=pattern["String"].encode(), other=content)
        raise _refused(source)
    runs = _RUNS.match(pattern["Regex"])
    if runs is None or runs.group(1) in r".^$*+?{}[]\|()":
        raise _refused(source)
    return Operation(Normalize.REPLACE_RUNS, ord(runs.group(1)), other=content)


def _bert(source: dict[str, Any]) -> list[Operation]:
    lowercase = source["lowercase"]
    accents = lowercase if source["strip_accents"] is None else source["strip_accents"]
    wanted = (
        (source["clean_text"], Normalize.BERT_CLEAN),
        (source["handle_chinese_chars"], Normalize.BERT_CHINESE),
        (accents, Normalize.BERT_ACCENTS),
        (lowercase, Normalize.LOWERCASE),
    )
    return [Operation(kind) for is_wanted, kind in wanted if is_wanted]
