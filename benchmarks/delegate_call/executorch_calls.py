"""Run by ExecuTorch's Python: `executorch_calls.py PLUGIN.so CALLS PROGRAM.pte...` prints the
nanoseconds of a run of each program."""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path


def main(plugin: str, calls: str, *programs: str) -> None:
    import torch
    from executorch.extension.pybindings import _portable_lib

    if not ctypes.CDLL(plugin).nothing_is_registered():
        sys.exit("ExecuTorch did not take the backend")
    inputs, n = [torch.ones(4)], int(calls)
    for program in programs:
        data = Path(program).read_bytes()  # the module reads it without a copy
        module = _portable_lib._load_for_executorch_from_buffer(data)
        for _ in range(n // 10):
            module.forward(inputs)
        begin = time.perf_counter()
        for _ in range(n):
            module.forward(inputs)
        print((time.perf_counter() - begin) / n * 1e9)


if __name__ == "__main__":
    main(*sys.argv[1:])
