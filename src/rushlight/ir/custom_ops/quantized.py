"""Out-variants of torch's `quantized_decomposed` operators.

The library (`torch.ao.quantization.fx._decomposed`) has only functional operators; a program names
their out-variants, as ExecuTorch does. ExecuTorch's library of quantised kernels defines these
out-variants with torch when it is loaded, and ends the process if they are already defined. So ours
are defined in a namespace of our own, and are renamed when they are written to a program.
"""

from __future__ import annotations

from functools import cache
from threading import Lock

import torch
from torch._ops import OpOverload

NAMESPACE = "quantized_decomposed"
OUT_NAMESPACE = "rushlight_quantized_decomposed"
"""The namespace in torch of the operators that a program names with `NAMESPACE`."""

_LIB = torch.library.Library(OUT_NAMESPACE, "FRAGMENT")
_LOCK = Lock()
_OVERLOADS = {
    "default": "out",
    "dtype": "dtype_out",
    "tensor": "Tensor_out",
    "tensor2": "tensor2_out",
}
_RESULTS = ("scale_out", "zero_point_out")  # of operators that choose a scale and a zero point


@cache
def out_variant(target: OpOverload) -> OpOverload | None:
    """The out-variant of a functional operator of the library; defined at the first call.

    None if `target` does not return one or two tensors, or has an overload that is not known here.
    """
    overload = _OVERLOADS.get(target._overloadname)
    results = [str(r.type) for r in target._schema.returns]
    if overload is None or results not in (["Tensor"], ["Tensor", "Tensor"]):
        return None
    base = _base(target)
    with _LOCK:
        if overload not in (torch._C._jit_get_operation(f"{OUT_NAMESPACE}::{base}")[1] or ()):
            _LIB.define(_schema(target, overload, len(results)))
    packet = getattr(getattr(torch.ops, OUT_NAMESPACE), base)
    operator: OpOverload = getattr(packet, overload)
    return operator


def _base(target: OpOverload) -> str:
    return target._schema.name.partition("::")[2]


def _schema(target: OpOverload, overload: str, count: int) -> str:
    text = str(target._schema)
    arguments = text[text.index("(") + 1 : text.rindex(") ->")]
    arguments += ", " if "*, " in arguments else ", *, "
    base = _base(target)
    if count == 1:
        return f"{base}.{overload}({arguments}Tensor(a!) out) -> Tensor(a!)"
    outs = ", ".join(f"Tensor({a}!) {r}" for a, r in zip("ab", _RESULTS, strict=True))
    return f"{base}.{overload}({arguments}{outs}) -> (Tensor(a!), Tensor(b!))"
