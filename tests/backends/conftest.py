"""Tests of backends that need a package of their own; `.venv-backends` has it (`make backends`).

Where it is missing their files are not collected: `tests/e2e/run/test_backends.py` runs them with
an interpreter that has it.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

# OpenVINO computes some int8 convolutions in float32 where a processor has AMX; the tests look at
# the kernels that it takes on others. It reads this when it is loaded.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")

collect_ignore_glob = [
    f"test_{name}*.py"
    for name, package in (("openvino", "openvino"), ("coreml", "coremltools"), ("nncf", "nncf"))
    if find_spec(package) is None
]
