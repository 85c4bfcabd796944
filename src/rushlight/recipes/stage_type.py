"""The names of the stages that an `ExportSession` runs."""

from __future__ import annotations

from enum import Enum


class StageType(str, Enum):
    """A stage of an export; members compare equal to their values."""

    SOURCE_TRANSFORM = "source_transform"
    QUANTIZE = "quantize"
    TORCH_EXPORT = "torch_export"
    TO_EDGE_TRANSFORM_AND_LOWER = "to_edge_transform_and_lower"
    TO_EDGE = "to_edge"
    EDGE_PROGRAM_MANAGER_TRANSFORM = "edge_program_manager_transform"
    TO_BACKEND = "to_backend"
    TO_EXECUTORCH = "to_executorch"


def name_of(stage_type: object) -> str:
    """The name of a stage for messages, also of a stage of the user's own."""
    return stage_type.name if isinstance(stage_type, StageType) else str(stage_type)
