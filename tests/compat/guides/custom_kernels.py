"""The last part of the guide to language models: a kernel in C++, in PyTorch and in a model."""

from __future__ import annotations

from pathlib import Path

import torch
from guides.documents import Document
from guides.repairs import (
    calculation,
    kernel_names,
    missing_import,
    optional_tensor,
    wrapper_include,
)
from guides.scenario import CUSTOM_LINEAR, Scenario, Step, python

# The operator in PyTorch, and the module that the guide's replacement puts in the place of Linear.
_OPERATOR = """
import torch

library = torch.library.Library("myop", "DEF")
for schema in {schemas!r}:
    library.define(schema)


@torch.library.impl(library, "custom_linear", "CompositeExplicitAutograd")
def custom_linear(weight, input, bias):
    product = weight.t() @ input
    return product if bias is None else product + bias.unsqueeze(1)


@torch.library.impl(library, "custom_linear.out", "CompositeExplicitAutograd")
def custom_linear_out(weight, input, bias, *, out):
    return out.copy_(custom_linear(weight, input, bias))


class CustomLinear(torch.nn.Module):
    def __init__(self, in_features, out_features, bias):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(in_features, out_features))
        self.bias = bias

    def forward(self, x):
        return torch.ops.myop.custom_linear(self.weight, x.t(), self.bias).t()
"""
_EXPORT = """
from executorch.exir import to_edge

torch.manual_seed(1)
layers = [nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2))]
model = nn.Sequential(*layers).eval()
replace_linear_with_custom_linear(model)
assert isinstance(model[0], CustomLinear) and isinstance(model[2][0], CustomLinear)
x = torch.arange(1.0, 7.0).reshape(2, 3)
to_edge(torch.export.export(model, (x,))).to_executorch().save("linear.pte")
with open("expected.txt", "w") as file:
    print(*model(x).flatten().tolist(), file=file)
"""
# The same kernel through the guide's wrapper, in PyTorch itself.
_IN_PYTORCH = """
import torch

torch.ops.load_library("cmake-out/libcustom_linear_pytorch.so")
weight, x = torch.randn(3, 4), torch.randn(3, 2)
for bias in (None, torch.randn(4)):
    expected = weight.t() @ x + (0 if bias is None else bias.unsqueeze(1))
    torch.testing.assert_close(torch.ops.myop.custom_linear(weight, x, bias), expected)
    out = torch.empty(4, 2)
    torch.ops.myop.custom_linear.out(weight, x.t().contiguous().t(), bias, out=out)
    torch.testing.assert_close(out, expected)
"""


def scenario(guide: Document) -> Scenario:
    """The kernel, registered by EXECUTORCH_LIBRARY, runs in a program of a replaced model."""
    lines = guide.block("custom_linear(Tensor weight").split("\n")
    schemas = [line.replace("Tensor(?)", "Tensor?") for line in lines if line]
    kernel = kernel_names(calculation(guide.block("// custom_linear.h / custom_linear.cpp")))
    wrapped = wrapper_include(optional_tensor(guide.block("// custom_linear_pytorch.cpp")))
    replacement = missing_import(guide.block("def  replace_linear_with_custom_linear"))
    operator = _OPERATOR.format(schemas=schemas)
    return Scenario(
        "custom kernels: a kernel in C++, in a model",
        [
            python("export_linear.py", operator + replacement + _EXPORT),
            Step(
                ["cmake", "-S", ".", "-B", "cmake-out", f"-DCMAKE_PREFIX_PATH={_torch()}"],
                {
                    "custom_linear.cpp": kernel,
                    "custom_linear_pytorch.cpp": wrapped,
                    "schemas.txt": "\n".join(schemas),
                },
            ),
            Step(["cmake", "--build", "cmake-out", "-j2"]),
            Step(["./cmake-out/run"], check=_check),
            python("in_pytorch.py", _IN_PYTORCH),
        ],
        [CUSTOM_LINEAR / name for name in ("custom_linear.h", "main.cpp", "CMakeLists.txt")],
        has_checkout=True,
    )


def _torch() -> str:
    return torch.utils.cmake_prefix_path


def _check(printed: str, folder: Path) -> None:
    expected = [float(word) for word in (folder / "expected.txt").read_text().split()]
    got = [float(word) for word in printed.split()]
    assert len(got) == len(expected) and all(
        abs(a - b) < 1e-4 for a, b in zip(got, expected, strict=True)
    ), f"eager has {expected}"
