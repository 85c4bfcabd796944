"""Loads the library of operators, uses them in PyTorch, and exports a program that calls one.

python export.py LIBRARY FILE.pte
"""

from __future__ import annotations

import sys

import torch
from executorch.exir import to_edge


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.compat_yaml.scaled(x + 1, 2.5)


def main(library: str, file: str) -> None:
    torch.ops.load_library(library)
    x = torch.arange(6.0).reshape(2, 3)
    torch.testing.assert_close(torch.ops.compat_yaml.scaled(x, 3.0), x * 3)
    out = torch.empty(0)
    torch.ops.compat_yaml.scaled.out(x, -1.0, out=out)
    torch.testing.assert_close(out, -x)
    try:
        torch.ops.compat_yaml.scaled(x.to(torch.int32), 3.0)
    except RuntimeError as error:
        assert "scaled.out failed" in str(error)
    else:
        raise AssertionError("a tensor of int32 was taken")

    torch.library.register_fake("compat_yaml::scaled", lambda x, factor: torch.empty_like(x))
    program = to_edge(torch.export.export(Scaled(), (x,))).to_executorch()
    with open(file, "wb") as opened:
        program.write_to_file(opened)


if __name__ == "__main__":
    main(*sys.argv[1:])
