"""Embeddings: POST /v1/embeddings."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from rushlight.errors import Error, RunError
from rushlight.llm.runner import Runner
from rushlight.llm.serve.completions import read_texts
from rushlight.llm.serve.errors import bad
from rushlight.llm.serve.fields import Fields, shown
from rushlight.llm.serve.jobs import ending
from rushlight.llm.serve.models import read_model
from rushlight.llm.serve.settings import Settings

_ENCODINGS = ("float", "base64")
_TEXTS_AT_ONCE = 8  # in a step of the model; between them it may be cancelled


class EmbeddingCall:
    """A request for embeddings.

    Args:
        runner: the model.
        fields: of the request.
        settings: have the ids of models.

    Raises:
        ApiError: a field is not as it must be, or the model has no embeddings.
    """

    def __init__(self, runner: Runner, fields: Fields, settings: Settings) -> None:
        self._runner = runner
        self._asked = read_model(fields, settings)
        self._texts = read_texts(fields, "input")
        self._encoding = fields.read("encoding_format", str, "float")
        if self._encoding not in _ENCODINGS:
            raise bad(
                "encoding_format",
                f"is {shown(self._encoding)}: give one of {', '.join(_ENCODINGS)}",
            )
        self._truncate = fields.read("truncate", bool, False)
        fields.read("user", str)
        fields.finish()
        self._is_cancelled = False

    def cancel(self) -> None:
        """End it after the texts that are computed now; from any thread."""
        self._is_cancelled = True

    def compute(self) -> dict[str, Any]:
        """The answer.

        Raises:
            RunError: the model refuses a text, or has no method for embeddings.
            ApiError: it was cancelled.
        """
        data: list[dict[str, Any]] = []
        for first in range(0, len(self._texts), _TEXTS_AT_ONCE):
            if self._is_cancelled:
                raise ending()
            for vector in self._embed(first):
                told = self._told(np.ascontiguousarray(vector, dtype="<f4"))
                data.append({"object": "embedding", "index": len(data), "embedding": told})
        count = sum(map(self._count, self._texts))
        usage = {"prompt_tokens": count, "total_tokens": count}
        return {"object": "list", "data": data, "model": self._asked.name, "usage": usage}

    def _count(self, text: str | list[int]) -> int:
        """The tokens of a text that were computed."""
        if isinstance(text, str):
            text = self._runner.encode(text, parse_special=False)
        return min(len(text), self._runner.context)

    def _embed(self, first: int) -> Any:
        try:
            texts = self._texts[first : first + _TEXTS_AT_ONCE]
            adapter = self._asked.adapter
            return self._runner.embed(texts, truncate=self._truncate, adapter=adapter)
        except Error as error:
            if first == 0:
                raise
            raise RunError(f"of the texts from {first} on: {error}", code=error.code) from None

    def _told(self, vector: Any) -> Any:
        if self._encoding == "base64":
            return base64.b64encode(vector.tobytes()).decode()
        return vector.tolist()
