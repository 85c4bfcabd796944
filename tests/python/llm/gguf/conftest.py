"""The small models of the exporter's tests are used here as well."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "exporter"))
