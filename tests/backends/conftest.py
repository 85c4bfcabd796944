"""Tests of backends that need a package of their own; `.venv-backends` has it (`make backends`).

Where it is missing their files are not collected: `tests/e2e/run/test_backends.py` runs them with
an interpreter that has it.
"""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [
    f"test_{name}*.py"
    for name, package in (("openvino", "openvino"), ("coreml", "coremltools"))
    if find_spec(package) is None
]
