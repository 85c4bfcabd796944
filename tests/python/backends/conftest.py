"""Makes the helpers beside it importable from the folders of the backends."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
