"""ExecuTorch's names for Rushlight: each is the same object as ours, and nothing is decided here.

Importing this package loads neither torch nor the compiler. What has no counterpart raises an
ImportError that says so. `EXECUTORCH_TORCH_SHIMS=1` stands for `import executorch.torch_shims`.
"""

from __future__ import annotations

import importlib
import os
import sys

from executorch._absent import NoSuchModule, absent, refuse_beside_real

refuse_beside_real()
if not any(isinstance(finder, NoSuchModule) for finder in sys.meta_path):
    sys.meta_path.append(NoSuchModule())  # type: ignore[arg-type]
if os.environ.get("EXECUTORCH_TORCH_SHIMS") == "1":
    importlib.import_module("executorch.torch_shims")

__getattr__ = absent(__name__)
