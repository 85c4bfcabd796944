"""The small models of the tests of `rushlight.llm` are used here as well."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "python" / "llm"
sys.path += [str(TESTS), str(TESTS / "exporter")]
