"""Running programs from Python, without torch: `load`, and ExecuTorch's `Runtime` on top of it."""

from __future__ import annotations

from rushlight.runtime.backends import (
    Backend,
    BackendContext,
    include_path,
    register_backend,
    register_backend_capsule,
    register_backend_library,
    unregister_backend,
)
from rushlight.runtime.failures import install_crash_report
from rushlight.runtime.load import load
from rushlight.runtime.measures import Memory, TraceEvent
from rushlight.runtime.module import Method, Module
from rushlight.runtime.registries import (
    backend_registry,
    operator_registry,
    register_kernel,
    register_kernel_library,
    unregister_kernel,
)
from rushlight.runtime.runtime import Program, Runtime, Verification
from rushlight.runtime.signature import Signature
from rushlight.runtime.state import Snapshot, State
from rushlight.runtime.stepping import Stepper
from rushlight.runtime.trace import Recording, Trace, TraceOptions

__all__ = [
    "Backend",
    "BackendContext",
    "Memory",
    "Method",
    "Module",
    "Program",
    "Recording",
    "Runtime",
    "Signature",
    "Snapshot",
    "State",
    "Stepper",
    "Trace",
    "TraceEvent",
    "TraceOptions",
    "Verification",
    "backend_registry",
    "include_path",
    "install_crash_report",
    "load",
    "operator_registry",
    "register_backend",
    "register_backend_capsule",
    "register_backend_library",
    "register_kernel",
    "register_kernel_library",
    "unregister_backend",
    "unregister_kernel",
]
