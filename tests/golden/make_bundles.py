"""Makes the bundled programs of this folder, Rushlight's own: `python make_bundles.py`.

Every later runtime must load them, and their test cases must pass. `executorch.bpte` is
ExecuTorch's: `python tests/peer/executorch_side.py bundle program=add.pt2 data=in.npz bpte=…`, of
an addition of two inputs.
"""

from __future__ import annotations

import pathlib

import torch
from torch.export import Dim, export

import rushlight as rl

HERE = pathlib.Path(__file__).parent


class Scale(torch.nn.Module):
    def forward(self, x: torch.Tensor, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
        return x * factor, x.argmax(-1)


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.tensor([1, 2], dtype=torch.int16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total.clone()


def main() -> None:
    torch.manual_seed(0)
    rows, x = Dim("rows", min=1, max=4), torch.randn(3, 5)
    methods = {
        "forward": export(Scale(), (x, 2.5), dynamic_shapes={"x": {0: rows}, "factor": None}),
        "count": export(Counter(), (torch.tensor([3, 4], dtype=torch.int16),)),
    }
    program = rl.export(methods, constant_methods={"limit": 7})
    cases = {
        "forward": [rl.TestCase((torch.randn(n, 5), 2.5), name=f"{n} rows") for n in (1, 4)],
        "count": [(torch.tensor([-3, 9], dtype=torch.int16),)],
        "limit": [rl.TestCase(expected=7)],
    }
    rl.bundle(program, cases).save(HERE / "bundle.bpte", quiet=True)


if __name__ == "__main__":
    main()
