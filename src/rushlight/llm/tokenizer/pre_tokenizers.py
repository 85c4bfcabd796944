"""Pre-tokenizers of `tokenizers` as operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.tokenizer.operations import BEHAVIORS, PREPENDS, Operation, Split
from rushlight.llm.tokenizer.patterns import GPT2, alternatives_of


def _flat(source: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if source is None:
        return
    if source["type"] == "Sequence":
        for one in source["pretokenizers"]:
            yield from _flat(one)
    else:
        yield source


def is_byte_level(source: dict[str, Any] | None) -> bool:
    """Whether the words that a pre-tokenizer gives have a character for each byte."""
    return any(one["type"] == "ByteLevel" for one in _flat(source))


def splitter_of(source: dict[str, Any] | None) -> list[Operation]:
    """The operations of a pre-tokenizer.

    Raises:
        ExportError: it is not supported.
    """
    operations: list[Operation] = []
    parts = list(_flat(source))
    for number, one in enumerate(parts):
        if one["type"] == "ByteLevel" and number + 1 < len(parts):
            raise _refused(one, " with another after it")
        operations += _operations(one)
    return operations


def _refused(source: dict[str, Any], what: str = "") -> ExportError:
    return ExportError(
        f"the tokenizer's pre-tokenizer {source} is not supported{what}: "
        "use the pre-tokenizer of GPT-2, Llama 3, Qwen2, o200k, SentencePiece or BERT",
        code=Code.NOT_SUPPORTED,
    )


def _operations(source: dict[str, Any]) -> list[Operation]:
    match source["type"]:
        case "ByteLevel":
            space = [Operation(Split.ADD_SPACE)] if source["add_prefix_space"] else []
            pattern = Operation(Split.PATTERN, text=alternatives_of(GPT2))
            return [*space, pattern] if source.get("use_regex", True) else space
        case "Split":
            return [_split(source)]
        case "Digits":
            return [Operation(Split.DIGITS, int(source["individual_digits"]))]
        case "Metaspace":
            prepend = PREPENDS.index(source.get("prepend_scheme", "always"))
            split = int(source.get("split", True))
            mark = source["replacement"].encode()
            return [Operation(Split.METASPACE, prepend, split, text=mark)]
        case "WhitespaceSplit":
            return [Operation(Split.SPACES)]
        case "Whitespace":
            return [Operation(Split.WORDS)]
        case "BertPreTokenizer":
            return [Operation(Split.BERT)]
        case "Punctuation":
            return [Operation(Split.PUNCTUATION, BEHAVIORS.index(source["behavior"]))]
    raise _refused(source)


def _split(source: dict[str, Any]) -> Operation:
    pattern, behavior, invert = source["pattern"], source["behavior"], source["invert"]
    if "String" in pattern:
        if invert or not pattern["String"]:
            raise _refused(source)
        text = pattern["String"].encode()
        return Operation(Split.TEXT, BEHAVIORS.index(behavior), text=text)
    # The patterns that are known leave nothing between their matches.
    if (behavior, invert) not in (("Isolated", False), ("Removed", True), ("Isolated", True)):
        raise _refused(source)
    return Operation(Split.PATTERN, text=alternatives_of(pattern["Regex"], ruby=True))
