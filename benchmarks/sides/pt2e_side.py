"""Quantises a captured model to int8 by PT2E; for a Python with torchao, which ExecuTorch brings.

PYTHON pt2e_side.py CAPTURED CALIBRATION OUT: files of `torch.export.save` and `torch.save`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)


def main(captured: str, calibration: str, out: str) -> None:
    """Activations as uint8 with one scale, weights as int8 with a scale for each channel."""
    batches = torch.load(calibration)
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.load(captured).module(), quantizer)
    with torch.no_grad():
        for args in batches:
            prepared(*args)
    converted = convert_pt2e(prepared, fold_quantize=True)
    torch.export.save(torch.export.export(converted, batches[0]), Path(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
