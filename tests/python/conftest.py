"""Makes the helpers beside the compiler's tests importable from its subfolders."""

import sys
from pathlib import Path

from browsing import browser, page  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent))
