"""Names that scripts for ExecuTorch import from torch, and that newer releases of it have lost.

    torch.export.export_for_training                    is torch.export.export
    torch.ao.quantization.quantize_pt2e                 is torchao.quantization.pt2e.quantize_pt2e
    torch.ao.quantization.quantizer.xnnpack_quantizer   is executorch.backends.xnnpack.quantizer's

Names that torch has are left alone.
"""

from __future__ import annotations

import importlib
import sys

import torch.ao.quantization
import torch.export

_MODULES = {
    "torch.ao.quantization.quantize_pt2e": "torchao.quantization.pt2e.quantize_pt2e",
    "torch.ao.quantization.quantizer": "torchao.quantization.pt2e.quantizer",
    "torch.ao.quantization.quantizer.xnnpack_quantizer": (
        "executorch.backends.xnnpack.quantizer.xnnpack_quantizer"
    ),
}


def _install() -> None:
    if not hasattr(torch.export, "export_for_training"):
        torch.export.export_for_training = torch.export.export  # type: ignore[attr-defined]
    for name, source in _MODULES.items():
        try:
            importlib.import_module(name)
        except ImportError:
            parent, _, last = name.rpartition(".")
            module = importlib.import_module(source)
            sys.modules[name] = module
            setattr(sys.modules[parent], last, module)


_install()
