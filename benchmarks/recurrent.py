"""Recurrent layers by the cpu backend beside ONNX Runtime: time, size and export.

Each is in a process of its own and they take turns (see `engine`). ONNX Runtime has the layers as
its own operators. Ratios are those of medians over the turns, the peer's time to ours in float32.
`int8` is ours with recipe int8-dynamic, and has no peer here.

  python -m benchmarks recurrent --models lstm --threads 1
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import common
import engine
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import rushlight as rl
from rushlight.peers.side import SideError
from rushlight.peers.turns import middle, take_turns

ONNX = common.ROOT / "benchmarks" / "sides" / "recurrent_onnx.py"
# Of each: the layer, and its sequence [length, batch, width].
CASES: dict[str, tuple[str, dict[str, Any], tuple[int, int, int]]] = {
    "lstm": ("LSTM", {"hidden_size": 256, "num_layers": 2}, (200, 1, 80)),
    "lstm_batch": ("LSTM", {"hidden_size": 256, "num_layers": 2}, (200, 8, 80)),
    "lstm_both_ways": ("LSTM", {"hidden_size": 128, "bidirectional": True}, (200, 1, 80)),
    "lstm_small": ("LSTM", {"hidden_size": 48}, (50, 1, 16)),
    "gru": ("GRU", {"hidden_size": 256, "num_layers": 2}, (200, 1, 80)),
    "rnn": ("RNN", {"hidden_size": 256}, (200, 1, 80)),
}


def main() -> None:
    options = common.parser(__doc__, models=list(CASES), repeat=20)
    options.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")])
    options.add_argument(
        "--onnxruntime",
        default=str(common.ROOT / ".venv-onnxruntime" / "bin" / "python"),
        metavar="PYTHON",
        help="Python with it and `onnx` (`make onnxruntime` makes the default one)",
    )
    arguments = options.parse_args()
    pythons = {
        "rushlight": sys.executable,
        "int8": sys.executable,
        "onnxruntime": arguments.onnxruntime,
    }
    table = Table(
        *("layer", "threads", "ms", "ONNX Runtime", "ratio", "int8", "KiB", "int8 KiB", "export")
    )
    with common.workshop(arguments.work) as work:
        for name in arguments.models:
            files, export = _written(work.folder, name, arguments.onnxruntime)
            sizes = [f"{Path(files[by]).stat().st_size / 1024:.0f}" for by in ("rushlight", "int8")]
            for threads in arguments.threads or [1, 2]:
                seconds = _times(work.folder, name, pythons, files, threads, arguments.repeat)
                ratio = seconds["onnxruntime"] / seconds["rushlight"]
                times = [f"{seconds[by] * 1e3:.2f}" for by in ("rushlight", "onnxruntime", "int8")]
                row = (*times[:2], f"{ratio:.2f}", times[2], *sizes, f"{export:.1f} s")
                table.add_row(name, str(threads), *row)
    Console().print(table)


def _written(folder: Path, name: str, peer: str) -> tuple[dict[str, str], float]:
    """The files of all, and the CPU seconds of our export."""
    kind, options, shape = CASES[name]
    torch.manual_seed(0)
    layer = getattr(nn, kind)(shape[-1], **options).eval()
    x = torch.randn(shape)
    files = {by: str(folder / f"{name}.{by}") for by in ("rushlight", "int8", "onnxruntime")}
    files = {by: file + (".onnx" if by == "onnxruntime" else ".pte") for by, file in files.items()}
    started = time.process_time()
    program = rl.export(layer, (x,), backend="cpu", verify=False)
    seconds = time.process_time() - started
    program.save(files["rushlight"], quiet=True)
    quantised = rl.quantize(layer, (x,), recipe="int8-dynamic")
    rl.export(quantised, backend="cpu", verify=False).save(files["int8"], quiet=True)
    weights, data = folder / f"{name}.weights.npz", folder / f"{name}.npz"
    np.savez(weights, **{key: value.numpy() for key, value in layer.state_dict().items()})
    subprocess.run([peer, str(ONNX), kind, str(weights), files["onnxruntime"]], check=True)
    with torch.no_grad():
        np.savez(data, in0=x.numpy(), out0=layer(x)[0].numpy())
    return files, seconds


def _times(
    folder: Path,
    name: str,
    pythons: dict[str, str],
    files: dict[str, str],
    threads: int,
    repeat: int,
) -> dict[str, float]:
    data = str(folder / f"{name}.npz")
    runtime = {"int8": "rushlight"}
    with engine.started(pythons, lambda by: runtime.get(by, by)) as sides:
        for by, side in sides.items():
            side.call(
                "open", runtime=runtime.get(by, by), file=files[by], data=data, threads=threads
            )
            _check(folder, data, side, 0.05 if by == "int8" else engine.TOLERANCE, f"{name}: {by}")
        return {by: middle(turns) for by, turns in take_turns(sides, repeat).items()}


def _check(folder: Path, data: str, side: Any, tolerance: float, what: str) -> None:
    """Ends the run if a result is not eager's."""
    path = str(folder / "out.npz")
    side.call("outputs", path=path)
    with np.load(data) as eager, np.load(path) as ours:
        worst = np.abs(ours["out0"] - eager["out0"]).max() / np.abs(eager["out0"]).max()
    if not worst <= tolerance:
        sys.exit(f"{what} is {worst:.1e} of the greatest output off")


if __name__ == "__main__":
    try:
        main()
    except SideError as error:
        sys.exit(str(error))
