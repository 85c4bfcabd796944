"""Makes the helpers of the compiler's tests importable: what is drawn here are their programs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
