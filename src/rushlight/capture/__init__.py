"""Capture: an `nn.Module` becomes an `ExportedProgram` and its shape contract."""

from rushlight.capture.capture import Model, capture, trace
from rushlight.capture.contract import contract_of
from rushlight.capture.saved import load_exported

__all__ = ["Model", "capture", "contract_of", "load_exported", "trace"]
