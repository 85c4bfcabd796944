"""Tokenizers: compiled at export from those of other libraries, run in C++."""

from __future__ import annotations

from rushlight.llm.tokenizer.compiler import compile
from rushlight.llm.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer", "compile"]
