"""Capture: an `nn.Module` becomes an `ExportedProgram` and its shape contract."""

from rushlight.capture.capture import capture
from rushlight.capture.contract import contract_of

__all__ = ["capture", "contract_of"]
