"""What requests for chat and text completions have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.llm.reply import Statistics
from rushlight.llm.runner import Runner
from rushlight.llm.serve.answers import Answers
from rushlight.llm.serve.fields import Fields
from rushlight.llm.serve.models import read_model
from rushlight.llm.serve.sampling import read_sampling, read_streaming
from rushlight.llm.serve.settings import Settings


class TextCall:
    """A request for generated texts.

    Args:
        runner: the model.
        fields: of the request; those that are read here are taken.
        settings: have the ids of models.
        names: how answers' ids begin, and OpenAI's names for a whole answer and for an event.

    Raises:
        ApiError: a field is not as it must be.
    """

    def __init__(
        self, runner: Runner, fields: Fields, settings: Settings, names: tuple[str, str, str]
    ) -> None:
        self._runner = runner
        asked = read_model(fields, settings)
        self.streaming = read_streaming(fields)
        self._options = read_sampling(fields)
        if asked.adapter is not None:
            self._options["adapter"] = asked.adapter
        self._answers = Answers(*names, asked.name, self.streaming)

    def usage(self, statistics: Sequence[Statistics]) -> dict[str, Any]:
        """The last event, which counts tokens.

        Args:
            statistics: of the streams.
        """
        return self._answers.last_event(statistics)
