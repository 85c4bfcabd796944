"""What a program needs to read and write texts: the tokenizer's table and the chat template."""

from __future__ import annotations

from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.description import Description

TOKENIZER, TEMPLATE = "rushlight/tokenizer", "rushlight/chat_template"
"""The keys in a program's named data."""


def tokenizer_of(source: Any, about: Description, lowers: bool = False) -> bytes:
    """The table of a tokenizer.

    Args:
        source: what `rushlight.llm.tokenizer.compile` takes.
        about: the model.
        lowers: whether the model's texts are lower case: the tokenizer must make them so.

    Raises:
        ExportError: it is not supported, or has tokens that the model's embedding does not have.
    """
    from rushlight.llm.tokenizer import Tokenizer, compile

    table: bytes = compile(source)
    tokenizer = Tokenizer(table)
    if lowers and tokenizer.encode("Ab") != tokenizer.encode("ab"):
        raise ExportError(
            "sentence_bert_config.json says do_lower_case, and the tokenizer keeps upper case: "
            "give tokenizer= one whose normaliser has Lowercase()",
            code=Code.NOT_SUPPORTED,
        )
    count = len(tokenizer)
    if count > about.vocabulary:
        raise ExportError(
            f"the tokenizer has {count} tokens, and the model's embedding {about.vocabulary}: the "
            f"tokenizer is of another model, or the model's embedding was not resized to it",
            code=Code.INVALID_ARGUMENT,
        )
    return table


def template_of(text: str, about: Description) -> bytes:
    """The bytes of a chat template.

    Raises:
        ExportError: it does not render as Jinja renders it.
    """
    from rushlight.llm.template import check

    check(text, about.tokens)
    return text.encode()
