"""The tiny model of the tests of `rushlight.llm` is used here as well."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "llm"))
