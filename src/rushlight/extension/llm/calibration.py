"""Calibrating quantised language models with a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.llm.tokenizer import Tokenizer

_PADDING = 0


@dataclass(frozen=True)
class Calibration:
    """Calls of a module with more and more tokens of a text, and then of those that it writes.

    Attributes:
        use_kv_cache: one token and its position a call; otherwise all tokens up to one.
        enable_dynamic_shape: whether the module takes any number of tokens; otherwise texts are
            padded to the greatest.
        generate_full_logits: whether it returns the logits of all tokens, not of the last alone.
        dtype: of tokens.
    """

    use_kv_cache: bool
    enable_dynamic_shape: bool
    generate_full_logits: bool
    dtype: torch.dtype

    def run(self, module: Any, text: str, most: int, tokenizer: Any) -> None:
        """Call the module.

        Args:
            module: with observers.
            text: the text.
            most: the greatest number of tokens.
            tokenizer: what `rushlight.llm.tokenizer.compile` takes.

        Raises:
            ExportError: texts are padded, and the logits of their last token are not returned; or
                the text has no token.
        """
        if not (self.use_kv_cache or self.enable_dynamic_shape or self.generate_full_logits):
            raise ExportError(
                "a module of one size that returns the logits of its last token alone cannot be "
                "calibrated with padded texts: set generate_full_logits or enable_dynamic_shape",
                code=Code.INVALID_ARGUMENT,
            )
        tokens = Tokenizer.from_source(tokenizer).encode(text)
        if not tokens:
            raise ExportError(
                f"calibration_data={text!r} has no token: give a text", code=Code.INVALID_ARGUMENT
            )
        with torch.no_grad():
            for position in range(most):
                logits = self._call(module, tokens, position, most)
                if position + 1 == len(tokens):
                    tokens.append(int(self._last(logits, position).argmax()))

    def _call(self, module: Any, tokens: list[int], position: int, most: int) -> torch.Tensor:
        if self.use_kv_cache:
            token = torch.tensor([[tokens[position]]], dtype=self.dtype)
            one: torch.Tensor = module(token, {"input_pos": torch.tensor([position])})
            return one
        seen = tokens[: position + 1]
        if not self.enable_dynamic_shape:
            seen = seen + [_PADDING] * (most - len(seen))
        many: torch.Tensor = module(torch.tensor([seen], dtype=self.dtype))
        return many

    def _last(self, logits: torch.Tensor, position: int) -> torch.Tensor:
        """The logits of the last token."""
        if not self.generate_full_logits:
            return logits.flatten()
        return logits[0, -1 if self.use_kv_cache else position]
