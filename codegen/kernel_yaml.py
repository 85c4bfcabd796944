"""The kernels as ExecuTorch's files of kernels name them: functions.yaml, and those beside it.

An application's CMake files name these files to choose operators of them. The names of kernels are
ExecuTorch's; our generator of bindings knows by them that the runtime has the kernels itself.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch
import torchgen
import yaml
from torchgen.gen import parse_native_yaml
from torchgen.model import NativeFunction

from codegen.kernel_entries import OPS_FILE, Entry

FOLDER = Path("compat/executorch/kernels")
HEADER = "# Written by codegen/kernel_table.py from ops/ops.yaml; do not edit.\n"
# The files of each namespace.
FILES = {
    "aten": ("portable/functions.yaml",),
    "dim_order_ops": ("portable/functions.yaml",),
    "et_copy": ("portable/functions.yaml", "portable/et_copy_ops.yaml"),
    "quantized_decomposed": ("quantized/quantized.yaml",),
}
# Those that ExecuTorch has a second, faster kernel for; here they are the same.
OPTIMIZED = frozenset(
    (
        *("_fft_r2c.out", "_log_softmax.out", "add.out", "add.Scalar_out", "bmm.out", "div.out"),
        *("div.Scalar_out", "elu.out", "exp.out", "gelu.out", "grid_sampler_2d.out"),
        *("le.Scalar_out", "le.Tensor_out", "linear.out", "mm.out", "mul.out", "mul.Scalar_out"),
        *("native_layer_norm.out", "neg.out", "sigmoid.out", "sub.out", "sub.Scalar_out"),
        *("sum.IntList_out", "where.self_out"),
    )
)
# Names of ExecuTorch's that do not follow from the operator's.
NAMES = {
    "_log_softmax.out": "log_softmax_out",
    "_softmax.out": "softmax_out",
    "_to_copy.out": "to_copy_out",
    "div.out_mode": "div_out_mode",
    "dequantize_per_tensor.Tensor_out": "dequantize_per_tensor_tensor_args_out",
    "max.dim_max": "max_out",
    "max_pool2d_with_indices_backward.grad_input": "max_pool2d_with_indices_backward_out",
    "mean.out": "mean_dim_out",
    "min.dim_min": "min_out",
    "quantize_per_tensor.Tensor_out": "quantize_per_tensor_tensor_args_out",
    "sum.IntList_out": "sum_dim_out",
    "topk.values": "topk_values",
    "where.self_out": "where_out",
}
# Operators whose kernels begin the overload with a small letter.
SMALL = frozenset(
    (
        *("add", "choose_qparams", "clamp", "div", "eq", "fill", "ge", "gt", "le", "lt"),
        *("masked_fill", "mul", "ne", "rsub", "sub"),
    )
)


def kernel_name(op: str) -> str:
    """The name of an operator's kernel in ExecuTorch: add_scalar_out for aten::add.Scalar_out."""
    namespace, _, rest = op.partition("::")
    name, _, overload = rest.partition(".")
    if rest in NAMES:
        return NAMES[rest]
    if namespace == "quantized_decomposed" and name.startswith(("add", "embedding", "mixed")):
        name = f"quantized_{name}"
    overload = overload.removesuffix("out").rstrip("_")
    overload = overload.lower() if name in SMALL else overload
    suffix = "_out" if "." in rest else ""
    return "_".join(part for part in (name, overload) if part) + suffix


@cache
def _of_torch() -> dict[str, NativeFunction]:
    """The operators that a file may name without their schemas."""
    folder = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
    parsed = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
    return {str(f.func.name): f for f in parsed.native_functions}


@cache
def _written() -> dict[str, str]:
    """The schemas that ops.yaml has, by operator."""
    rows = yaml.safe_load(OPS_FILE.read_text(encoding="utf-8"))
    return {row["op"]: row["schema"] for row in rows if "schema" in row}


def _schema(op: str) -> str:
    written = _written().get(op)
    if written is not None:
        return f"{op}{written}"
    name, _, overload = op.partition(".")
    return str(torch._C._get_schema(name, overload))


def _has_keyword(op: str) -> bool:
    """Whether an argument's name is a word of Python, as `from` of uniform.out."""
    f = _of_torch().get(op.removeprefix("aten::"))
    arguments = f.func.schema_order_arguments() if f is not None else ()
    return any(keyword.iskeyword(argument.name) for argument in arguments)


def _row(entry: Entry, kernel: str) -> str:
    """An entry of a file."""
    rest = entry.op.removeprefix("aten::")
    f = _of_torch().get(rest)
    if f is not None:
        head = f"op: {rest}"
        if "nondeterministic_seeded" in f.tags:
            head += "\n  tags: nondeterministic_seeded"
        if rest.startswith("new_") or rest.partition(".")[0].endswith("_like"):
            head += "\n  dispatch: {}"  # torchgen refuses such operators without one
    else:
        head = f"func: {_schema(entry.op)}\n  variants: function"
    kernels = f"  kernels:\n    - arg_meta: null\n      kernel_name: torch::executor::{kernel}\n"
    return f"\n- {head}\n{kernels}"


def kernel_files(entries: Iterable[Entry]) -> dict[Path, str]:
    """The texts of the files, by their paths."""
    rows: dict[str, list[str]] = {}
    for entry in sorted(entries, key=lambda entry: entry.op):
        namespace = entry.op.partition("::")[0]
        if namespace not in FILES or not {"w", "W"} & set(entry.signature):
            continue
        if _has_keyword(entry.op):
            continue  # torchgen refuses them
        kernel = kernel_name(entry.op)
        for name in FILES[namespace]:
            rows.setdefault(name, []).append(_row(entry, kernel))
        rest = entry.op.removeprefix("aten::")
        if rest in OPTIMIZED:
            optimized = f"opt_{kernel.removeprefix('_')}"
            rows.setdefault("optimized/optimized.yaml", []).append(_row(entry, optimized))
    return {FOLDER / name: HEADER + "".join(text) for name, text in rows.items()}
