"""Passes over Edge graphs."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.edge.export_pass import Argument, ExportPass, NodeMetadata, PassResult, ProxyValue

__all__ = [
    "Argument",
    "ExportPass",
    "NodeMetadata",
    "PassResult",
    "ProxyValue",
]

__getattr__ = absent(
    __name__, "subclass ExportPass, or give a function from a GraphModule to a PassResult"
)
