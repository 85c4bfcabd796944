"""Fat programs: one method lowered for several backends, in one file with one set of constants.

The portable form keeps the method's name, so every runtime can run the file; the others are further
methods, `forward@openvino`, listed in an index in the file's named data. The index also has a known
answer for each method: inputs from a formula, and samples of eager's results for them.
`rushlight.load` chooses a form by the backends that are there and by its known answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram

from rushlight.check import amplifies_roundings, eager_results, quantises
from rushlight.errors import Code, ExportError
from rushlight.partition import Partitioner
from rushlight.partition.coverage import coverage
from rushlight.partition.registry import find_partitioner
from rushlight.pipeline import EdgeProgramManager, ExecutorchProgramManager
from rushlight.runtime.forms import PORTABLE, SAMPLES, TOLERANCE, answer_inputs, plan_name

Backend = str | Partitioner | tuple[str | Partitioner, ...]
"""A backend by name or as a partitioner, or several that share one form, in order."""


@dataclass(frozen=True)
class Form:
    """One way to lower a program.

    Attributes:
        name: the user's name for it, which is part of its methods' names.
        partitioners: its partitioners, in order; none for "portable".
    """

    name: str
    partitioners: tuple[Partitioner, ...] = ()


def forms_of(backend: Backend | Sequence[Backend]) -> list[Form]:
    """The forms that `export(backend=...)` describes, in order of preference.

    A list gets "portable" as its last form if it has none.

    Raises:
        ExportError: for an unknown backend, or two forms of one name.
    """
    listed: list[Any] = backend if isinstance(backend, list) else [backend]
    forms = [_form(one) for one in listed]
    if isinstance(backend, list) and all(form.name != PORTABLE for form in forms):
        forms.append(Form(PORTABLE))
    names = [form.name for form in forms]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ExportError(
            f"backend={names}: {', '.join(twice)} is there twice; name each form once",
            code=Code.INVALID_ARGUMENT,
        )
    return forms


def _form(backend: Backend) -> Form:
    parts = backend if isinstance(backend, tuple) else (backend,)
    partitioners = [_partitioner(part) for part in parts]
    return Form(
        "+".join(n for n, _ in partitioners), tuple(p for _, p in partitioners if p is not None)
    )


def _partitioner(backend: str | Partitioner) -> tuple[str, Partitioner | None]:
    if isinstance(backend, Partitioner):
        spec = backend.delegation_spec
        return (spec.backend_id if spec is not None else type(backend).__name__), backend
    if not isinstance(backend, str):
        raise ExportError(
            f"backend={backend!r}: give the name of a backend, a Partitioner, or a list of them",
            code=Code.INVALID_ARGUMENT,
        )
    return backend, None if backend == PORTABLE else find_partitioner(backend)


def check_fallbacks(manager: EdgeProgramManager, limit: float) -> None:
    """Check that calls on the portable kernels have at most the share `limit` of the cost.

    Raises:
        ExportError: names these operators with their shares, reasons and lines.
    """
    for method in sorted(manager.methods):
        covered = coverage(manager.exported_program(method))
        total = sum(c.cost for c in covered) or 1.0
        stayed = sorted((c for c in covered if not c.backend and c.cost), key=lambda c: -c.cost)
        share = sum(c.cost for c in stayed) / total
        if share <= limit:
            continue
        lines = [
            f"  {c.cost / total:6.1%}  {c.operator}: "
            f"{'; '.join(f'{b}: {r}' for b, r in sorted(c.reasons.items())) or 'no reason given'}"
            f"  ({c.source})"
            for c in stayed[:_SHOWN]
        ]
        more = f"\n  and {len(stayed) - _SHOWN} more calls" if len(stayed) > _SHOWN else ""
        raise ExportError(
            f"{share:.1%} of the estimated cost stays on the portable kernels, strict allows "
            f"{limit:.1%}:\n" + "\n".join(lines) + f"{more}\nRewrite these lines with what the "
            f"backend takes, or allow more with strict=<share>",
            code=Code.NOT_SUPPORTED,
            where=method,
        )


_SHOWN = 10


def join(forms: Mapping[str, EdgeProgramManager]) -> EdgeProgramManager:
    """One manager with the methods of all forms.

    Args:
        forms: the manager of each form; methods of "portable" keep their names.

    Raises:
        ExportError: if a method has the same name as the form of another one.
    """
    portable = forms[PORTABLE]
    taken = portable.methods | portable.config_methods
    more: dict[str, tuple[EdgeProgramManager, str]] = {}
    for name, manager in forms.items():
        for method in manager.methods if name != PORTABLE else ():
            plan = plan_name(method, name)
            if plan in taken or plan in more:
                raise ExportError(
                    f"two methods of the file would be called {plan!r}, which is the form "
                    f"{name!r} of the method {method!r}: rename the other one",
                    code=Code.INVALID_ARGUMENT,
                )
            more[plan] = (manager, method)
    return portable.with_forms(more)


def takes_anything(manager: EdgeProgramManager) -> bool:
    """Whether a backend took a part of any method."""
    return any(c.backend for m in manager.methods for c in coverage(manager.exported_program(m)))


def index(
    forms: Iterable[str],
    manager: ExecutorchProgramManager,
    captured: Mapping[str, ExportedProgram],
) -> dict[str, Any]:
    """The index of the forms, for the file's named data under `KEY`."""
    names = list(forms)
    methods = {}
    for method, program in captured.items():
        plans = [
            {"form": name, "plan": plan_name(method, name), "backends": backends_of(manager, plan)}
            for name in names
            if (plan := plan_name(method, name)) in manager.methods
        ]
        answer = _known_answer(manager.contracts[method], program)
        methods[method] = {"forms": plans, **({"answer": answer} if answer else {})}
    digest = hashlib.sha256(repr(methods).encode())
    for payload in manager.payloads:
        digest.update(payload)
    return {"version": 1, "id": digest.hexdigest(), "order": names, "methods": methods}


def backends_of(manager: ExecutorchProgramManager, plan: str) -> list[str]:
    """The ids of the backends that a method of the file calls."""
    plans = manager.executorch_program.execution_plan
    method = next(p for p in plans if p.name == plan)
    return sorted({delegate.id for delegate in method.delegates})


def _known_answer(contract: Mapping[str, Any], program: ExportedProgram) -> dict[str, Any] | None:
    """Inputs by formula and samples of eager's results. None if eager refuses such inputs, or if
    results depend so much on roundings that they do not tell whether a form is right."""
    if program.example_inputs is None:
        return None
    leaves, structure = pytree.tree_flatten(program.example_inputs)
    described = [_describe(leaf) for leaf in leaves]
    made = [
        torch.from_numpy(value).to(leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf
        for value, leaf in zip(answer_inputs(described), leaves, strict=True)
    ]
    args, kwargs = pytree.tree_unflatten(made, structure)
    try:
        results = eager_results(program, args, kwargs)
    except (RuntimeError, AssertionError, ValueError, IndexError):
        return None
    if quantises(program) and amplifies_roundings(program, args, kwargs, TOLERANCE / 2):
        return None
    outputs = [_sample(r) for r in results if isinstance(r, torch.Tensor)]
    if len(outputs) != len(results) or not outputs or any(not o["values"] for o in outputs):
        return None
    return {"inputs": described, "outputs": outputs}


def _describe(leaf: Any) -> dict[str, Any]:
    if not isinstance(leaf, torch.Tensor):
        return {"value": leaf}
    values = leaf.detach().to(torch.float64).flatten()
    finite = values[values.isfinite()]
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 1.0)
    dtype = str(leaf.dtype).removeprefix("torch.")
    return {"dtype": dtype, "shape": list(leaf.shape), "low": low, "high": high}


def _sample(result: torch.Tensor) -> dict[str, Any]:
    flat = result.detach().to(torch.float64).flatten().numpy()
    stride = max(1, flat.size // SAMPLES)
    values = flat[::stride]
    finite = flat[np.isfinite(flat)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    return {
        "shape": list(result.shape),
        "step": stride,
        "largest": largest,
        "values": [float(v) for v in values] if np.isfinite(values).all() else [],
    }
