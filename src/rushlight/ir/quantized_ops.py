"""Out-variants of torch's `quantized_decomposed` operators.

The library (`torch.ao.quantization.fx._decomposed`) has functional operators alone; a program names
their out-variants. Names are the ones that ExecuTorch registers, where it has the operator.
"""

from __future__ import annotations

import torch
from torch._ops import OpOverload

NAMESPACE = "quantized_decomposed"

_LIB = torch.library.Library(NAMESPACE, "FRAGMENT")
_OVERLOADS = {
    "default": "out",
    "dtype": "dtype_out",
    "tensor": "Tensor_out",
    "tensor2": "tensor2_out",
}
_RESULTS = ("scale_out", "zero_point_out")  # of the operators that choose both


def out_variant(target: OpOverload) -> OpOverload | None:
    """The out-variant of a functional operator of the library, which is defined if need be.

    None if `target` returns other than one or two tensors, or is an overload of its own kind.
    """
    overload = _OVERLOADS.get(target._overloadname)
    results = [str(r.type) for r in target._schema.returns]
    if overload is None or results not in (["Tensor"], ["Tensor", "Tensor"]):
        return None
    packet = target._overloadpacket
    name = target._schema.name
    # Another package of the same process may have defined it, with the same schema.
    if overload not in torch._C._jit_get_operation(name)[1]:
        _LIB.define(_schema(target, overload, 1 if len(results) == 1 else 2))
    return getattr(packet, overload)  # type: ignore[no-any-return]


def _schema(target: OpOverload, overload: str, count: int) -> str:
    text = str(target._schema)
    arguments = text[text.index("(") + 1 : text.rindex(") ->")]
    arguments += ", " if "*, " in arguments else ", *, "
    base = target._schema.name.partition("::")[2]
    if count == 1:
        return f"{base}.{overload}({arguments}Tensor(a!) out) -> Tensor(a!)"
    outs = ", ".join(f"Tensor({a}!) {r}" for a, r in zip("ab", _RESULTS, strict=True))
    return f"{base}.{overload}({arguments}{outs}) -> (Tensor(a!), Tensor(b!))"
