"""Compiles a tokenizer of another library to the table that C++ uses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.packages import needs_packages
from rushlight.llm.tokenizer.table import Tokens, write_table


@needs_packages()
def compile(source: Any) -> bytes:
    """The table of a tokenizer, for a program's named data "rushlight/tokenizer".

    Args:
        source: a folder with tokenizer.json, or with tokenizer.model and tokenizer_config.json (it
            asks for tokens at the beginning and end of a text); one of these files; or a
            `tokenizers.Tokenizer`, a fast tokenizer of `transformers`, a
            `sentencepiece.SentencePieceProcessor` or a `tiktoken.Encoding`.

    Raises:
        ExportError: there is no tokenizer, or it needs something that is not supported; the error
            names it.
    """
    return write_table(_read(source))


def _read(source: Any) -> Tokens:
    if isinstance(source, str | os.PathLike):
        return _read_path(Path(source))
    module = type(source).__module__.split(".")[0]
    if module == "transformers":
        if not hasattr(source, "backend_tokenizer"):
            raise ExportError(
                f"{type(source).__name__} is not a fast tokenizer: give the folder that it was "
                "loaded from",
                code=Code.INVALID_ARGUMENT,
            )
        source, module = source.backend_tokenizer, "tokenizers"
    if module == "tokenizers" and type(source).__name__ == "Tokenizer":
        from rushlight.llm.tokenizer.from_tokenizers import read_tokenizer

        return read_tokenizer(source)
    if module == "sentencepiece":
        from rushlight.llm.tokenizer.from_sentencepiece import read_processor

        return read_processor(source)
    if module == "tiktoken":
        from rushlight.llm.tokenizer.from_tiktoken import read_encoding

        return read_encoding(source)
    raise ExportError(
        f"a tokenizer cannot be read from {type(source).__name__}: give a folder, or an object of "
        "tokenizers, sentencepiece or tiktoken",
        code=Code.INVALID_ARGUMENT,
    )


def _read_path(path: Path) -> Tokens:
    if path.is_dir():
        for name in ("tokenizer.json", "tokenizer.model"):
            if (path / name).is_file():
                return _read_path(path / name)
        raise ExportError(
            f"the folder {path} has neither tokenizer.json nor tokenizer.model",
            code=Code.NOT_FOUND,
        )
    if not path.exists():
        raise ExportError(f"{path}: there is no such file", code=Code.NOT_FOUND)
    if path.suffix == ".json":
        import tokenizers

        from rushlight.llm.tokenizer.from_tokenizers import read_tokenizer

        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises nothing narrower
            raise ExportError(
                f"tokenizers cannot read {path}: {error}", code=Code.INVALID_ARGUMENT
            ) from error
        return read_tokenizer(tokenizer)
    if path.suffix == ".model":
        return _read_model(path)
    raise ExportError(
        f"{path} is not a tokenizer.json or tokenizer.model", code=Code.INVALID_ARGUMENT
    )


def _read_model(path: Path) -> Tokens:
    """A model of SentencePiece, with the tokens around a text that a file beside it asks for."""
    import sentencepiece

    from rushlight.llm.tokenizer.from_sentencepiece import read_processor

    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(
            f"sentencepiece cannot read {path}: {error}", code=Code.INVALID_ARGUMENT
        ) from error
    beside = path.with_name("tokenizer_config.json")
    try:
        options = json.loads(beside.read_text("utf-8")) if beside.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{beside} is not JSON: {error}", code=Code.INVALID_ARGUMENT) from error
    if not isinstance(options, dict):
        raise ExportError(f"{beside} is not a JSON object", code=Code.INVALID_ARGUMENT)
    bos, eos = (bool(options.get(f"add_{name}_token")) for name in ("bos", "eos"))
    return read_processor(processor, bos=bos, eos=eos)
