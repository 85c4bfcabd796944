"""Memory of a program with dynamic shapes, beside the static program's and beside ExecuTorch.

A convolutional network (encoder, residual blocks, decoder) is exported once for images of
64x64 and once for any height and width up to 1024. Every row is a fresh process that calls the
program with images of the given sizes, one after the other; the figures are the growth of resident
memory that no file backs, since before the program was loaded, after each of these calls. "bound"
is the arena of the plan. Each side loads the file that it made.

  python benchmarks/dynamic_memory.py --small 64 --large 1024
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import common

KIB = 1 << 10


def main() -> None:
    options = common.parser(__doc__, models=(), repeat=1)
    options.add_argument("--small", type=int, default=64, help="pixels (default: %(default)s)")
    options.add_argument("--large", type=int, default=1024, help="the bound (default: %(default)s)")
    arguments = options.parse_args()
    small, large = arguments.small, arguments.large
    report = common.Report(
        f"Resident memory after calls, KiB ({small} and {large} pixels)",
        ["program", "by", "bound", *(f"{n}" for n in (small, small, large, small)), "of static"],
    )
    with common.workshop(arguments.work) as work, common.both_sides(arguments.executorch) as sides:
        for by, side in (("rushlight", sides.rushlight), ("executorch", sides.executorch)):
            files = {
                kind: _program(work, side, by, kind, small, large) for kind in ("static", "dynamic")
            }
            static = _measure(files["static"], by, [small, small], arguments)
            dynamic = _measure(files["dynamic"], by, [small, small, large, small], arguments)
            for kind, growths in (("static", static), ("dynamic", dynamic)):
                grown = [f"{n / KIB:,.0f}" for n in growths] + ["-"] * (4 - len(growths))
                bound = sum(sides.executorch.call("plan", pte=files[kind]).values())
                report.add(
                    kind,
                    by,
                    f"{bound / KIB:,.0f}",
                    *grown,
                    common.ratio(growths[1], static[1]),
                    program=kind,
                    by=by,
                    bound=bound,
                    grown=growths,
                )
    report.finish(arguments.json)


def _measure(
    pte: str, by: str, sizes: list[int], arguments: common.argparse.Namespace
) -> list[float]:
    """Medians over fresh processes."""
    runs = []
    for _ in range(arguments.repeat):
        ours = by == "rushlight"
        with (
            common.start_rushlight()
            if ours
            else common.start_executorch(arguments.executorch) as side
        ):
            runs.append(side.call("sizes", pte=pte, sizes=sizes)["anonymous"])
    return [common.median(values) for values in zip(*runs, strict=True)]


def _program(
    work: common.Workshop, side: common.Side, by: str, kind: str, small: int, large: int
) -> str:
    """The .pte that `side` makes of the network."""
    traced = work.folder / f"dynamic_memory.{kind}.{small}.{large}.pt2"
    if not traced.exists():
        _trace(traced, small, large if kind == "dynamic" else 0)
    pte = traced.with_suffix(f".{by}.pte")
    if not pte.exists():
        side.call("export", program=str(traced), pte=str(pte))
    return str(pte)


def _trace(path: Path, small: int, large: int) -> None:
    """Save the traced network, with dynamic height and width if `large` is not 0."""
    import torch

    torch.manual_seed(0)
    shapes = None
    if large:
        rows = torch.export.Dim("rows", min=16, max=large)
        columns = torch.export.Dim("columns", min=16, max=large)
        shapes = ({2: rows, 3: columns},)
    image = torch.randn(1, 3, small, small)
    torch.export.save(torch.export.export(_network(), (image,), dynamic_shapes=shapes), path)


def _network() -> Any:
    import torch
    from torch import nn

    class Block(nn.Sequential):
        def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
            convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)
            super().__init__(convolution, nn.BatchNorm2d(outputs), nn.ReLU())

    class Residual(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + super().forward(x)

    encoder = (Block(3, 16), Block(16, 32, stride=2), Residual(32, 32), Block(32, 64, stride=2))
    decoder = (nn.ConvTranspose2d(64, 32, 2, stride=2), Residual(32, 32), nn.Conv2d(32, 8, 1))
    return nn.Sequential(*encoder, Residual(64, 64), *decoder).eval()


if __name__ == "__main__":
    main()
