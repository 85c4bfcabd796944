"""The small models and tokenizers of other parts' tests are used here as well."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [
    str(Path(__file__).resolve().parent.parent / part) for part in ("exporter", "tokenizer")
]
