"""`Stage`, the base of the stages of an export, and what they hand on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from rushlight.recipes.stage_type import StageType


class PipelineArtifact:
    """What a stage hands to the next one.

    Attributes:
        data: models, captured programs or a manager, by the stage that made it.
        context: everything else, by name: what the session was given, and what stages add.
    """

    def __init__(self, data: Any, context: dict[str, Any]) -> None:
        self.data = data
        self.context = context

    def add_context(self, key: str, value: Any) -> None:
        """Set an entry of the context."""
        self.context[key] = value

    def get_context(self, key: str, default: Any = None) -> Any:
        """An entry of the context, or `default`."""
        return self.context.get(key, default)

    def copy_with_new_data(self, new_data: Any) -> PipelineArtifact:
        """Other data with a copy of the context."""
        return PipelineArtifact(new_data, self.context.copy())


class Stage(ABC):
    """A stage of an export; derive from it for stages of your own."""

    _artifact: PipelineArtifact | None = None

    @property
    @abstractmethod
    def stage_type(self) -> StageType:
        """The name under which a session runs it."""

    @property
    @abstractmethod
    def valid_predecessor_stages(self) -> Sequence[StageType]:
        """The stages of which one must run right before it; empty for any."""

    @property
    @abstractmethod
    def can_start_pipeline(self) -> bool:
        """Whether it may be the first stage."""

    @abstractmethod
    def run(self, artifact: PipelineArtifact) -> None:
        """Run on what the stage before it handed on, and keep the result in `_artifact`."""

    def get_artifacts(self) -> PipelineArtifact:
        """The result of the last `run`; RuntimeError if there was none."""
        if self._artifact is None:
            raise RuntimeError(
                f"Stage: {type(self).__name__} not executed, so it has no result: call run() first"
            )
        return self._artifact
