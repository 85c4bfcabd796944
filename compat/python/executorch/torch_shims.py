"""Names that newer PyTorch lost, put back: `import executorch.torch_shims`.

| name | what it is now |
|---|---|
| `torch.export.export_for_training` | `torch.export.export` |
| `torch.ao.quantization.quantize_pt2e` | `torchao.quantization.pt2e.quantize_pt2e` |
| `torch.ao.quantization.quantizer` | `torchao.quantization.pt2e.quantizer` |
| `torch.ao.quantization.quantizer.xnnpack_quantizer` | torchao's `XNNPACKQuantizer` |

What a PyTorch still has is left alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

import torch
import torch.ao.quantization
import torch.export

from rushlight.ir.quiet import import_torchao

MODULES = {
    "torch.ao.quantization.quantize_pt2e": "torchao.quantization.pt2e.quantize_pt2e",
    "torch.ao.quantization.quantizer": "torchao.quantization.pt2e.quantizer",
    "torch.ao.quantization.quantizer.xnnpack_quantizer": (
        "torchao.testing.pt2e._xnnpack_quantizer"
    ),
}

if not hasattr(torch.export, "export_for_training"):
    torch.export.export_for_training = torch.export.export

import_torchao()
for _name, _home in MODULES.items():
    if _name in sys.modules or importlib.util.find_spec(_name) is not None:
        continue
    _module = importlib.import_module(_home)
    sys.modules[_name] = _module
    _parent, _, _last = _name.rpartition(".")
    setattr(sys.modules[_parent], _last, _module)
