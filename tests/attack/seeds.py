"""The files that are attacked: golden ones, and exported ones with all that travels in a file."""

from __future__ import annotations

import shutil
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def write_seeds(folder: Path, *, exported: bool = True) -> None:
    """Write them: NAME.pte, and NAME.ptd beside those that have a data file. Bundled programs are
    among them.

    Args:
        exported: also those that PyTorch is needed for.
    """
    for path in sorted(GOLDEN.glob("*.pte")):
        if path.stat().st_size < 1 << 16:
            shutil.copy(path, folder / path.name)
    for path in sorted(GOLDEN.glob("*.bpte")):  # a program in it is read as one
        shutil.copy(path, folder / f"bundled_{path.stem}.pte")
    if exported:
        _export(folder)


def _export(folder: Path) -> None:
    import torch
    from torch.export import Dim

    import rushlight as rl
    from rushlight.edge import ExecutorchBackendConfig

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: torch.Tensor, scale: float = 2.0) -> dict[str, torch.Tensor]:
            y = torch.relu(self.linear(x)) * scale
            self.total.add_(y.sum(0))
            return {"y": y, "total": self.total * 1.0}

    torch.manual_seed(0)
    batch = Dim("batch", min=1, max=8)
    args = (torch.ones(3, 4),)
    shapes = {"x": {0: batch}}
    for name, backend in (("portable", "portable"), ("fat", ["cpu", "xnnpack", "portable"])):
        program = rl.export(Net().eval(), args, dynamic_shapes=shapes, backend=backend)
        program.save(folder / f"{name}.pte", quiet=True)
    config = ExecutorchBackendConfig(external_constants=lambda node: "external")
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    exported = torch.export.export(plain.eval(), args)
    rl.to_edge(exported).to_executorch(config).save(folder / "external.pte")
