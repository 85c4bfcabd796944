"""Whether real ExecuTorch 1.4.1 runs a program, and if not, why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rushlight.inspect.model import Method, Operator
from rushlight.inspect.origin import Signature
from rushlight.schema import program as fb

# Backends and operator libraries that come with ExecuTorch's own wheel.
_BACKENDS = frozenset(
    {"XnnpackBackend", "OpenvinoBackend", "QnnBackend", "VgfBackend", "CoreMLBackend"}
)
_LIBRARIES = {
    "quantized_decomposed": "its quantised kernels (import executorch.kernels.quantized)",
    "llama": "its LLM kernels (import executorch.extension.llm.custom_ops.custom_ops)",
    "preprocess": "its LLM kernels (import executorch.extension.llm.custom_ops.custom_ops)",
}


def runs_kernel(name: str) -> bool:
    """Whether ExecuTorch has a kernel of this name, in its core or in a library beside it."""
    from rushlight.ir.executorch_kernels import LIBRARY_NAMES, NAMES

    return name in NAMES or name in LIBRARY_NAMES


def runs_backend(name: str) -> bool:
    """Whether a backend of this name comes with ExecuTorch."""
    return name in _BACKENDS


def reasons_against(
    plans: Iterable[fb.ExecutionPlan],
    operators: list[Operator],
    signatures: Mapping[str, Signature | None],
) -> list[str]:
    """Why ExecuTorch cannot run the program, each reason in words; empty if it can."""
    reasons = []
    for operator in operators:
        if not operator.executorch:
            what = "kernel" if operator.kind == "kernel" else "backend"
            times = "once" if operator.calls == 1 else f"{operator.calls} times"
            reasons.append(f"it has no {what} {operator.name} (used {times})")
    for name, signature in signatures.items():
        for varying in signature.varying if signature is not None else ():
            reasons.append(
                f"{name}: input {varying} is a number that may vary, ExecuTorch insists on the "
                f"one it was traced with (pass a 0-d tensor instead)"
            )
    for plan in plans:
        unbound = sum(
            isinstance(value.val, fb.Tensor)
            and value.val.shape_dynamism is fb.TensorShapeDynamism.DYNAMIC_UNBOUND
            for value in plan.values
        )
        if unbound:
            reasons.append(f"{plan.name}: {unbound} tensors have no bound on their sizes")
    return reasons


def needs(methods: list[Method], operators: list[Operator]) -> list[str]:
    """What ExecuTorch needs besides the file."""
    texts = []
    namespaces = {operator.name.partition("::")[0] for operator in operators}
    texts += [text for namespace, text in _LIBRARIES.items() if namespace in namespaces]
    backends = sorted({d.backend for method in methods for d in method.delegates})
    texts += [f"its {name} backend" for name in backends if runs_backend(name)]
    if any(value.role == "external" for method in methods for value in method.values):
        texts.append("the data file (.ptd) with the external tensors")
    return texts
