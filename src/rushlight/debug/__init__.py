"""Runs a model and its program side by side, and names the first value that departs."""

from rushlight.debug.compare import Gap
from rushlight.debug.run import Departures, debug

__all__ = ["Departures", "Gap", "debug"]
