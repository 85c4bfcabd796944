"""`executorch.runtime` and `executorch.extension`: running programs."""

from __future__ import annotations

_RUNTIME = "rushlight.runtime"

MODULES: dict[str, dict[str, str]] = {
    "runtime": {
        "BackendRegistry": "rushlight.runtime.registries",
        "Method": "rushlight.runtime.runtime",
        "OperatorRegistry": "rushlight.runtime.registries",
        "Program": "rushlight.runtime.runtime",
        "Runtime": _RUNTIME,
        "Verification": _RUNTIME,
    },
}

ABSENT: dict[str, str] = {}
