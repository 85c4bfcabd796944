"""The loss of image models in static int8, beside ONNX Runtime's and ExecuTorch's quantizers.

Each quantises the same model with the same calibration images, and computes the same other images:
ours by the recipe int8, in our runtime with the cpu backend; ExecuTorch's XNNPACKQuantizer as the
graph that it makes; ONNX Runtime's `quantize_static` with its defaults, and with a scale for each
channel of weights. The figures are the signal to noise of the outputs beside eager float32, in dB:
the mean over `--draws` of the calibration images, and their range. Deep models of random weights
amplify roundings, so that the draw alone may make 4 dB. Weights are random and batch norms settled.
ONNX Runtime runs without its extended fusions, by which EfficientNet computes zeros.

`--ranges` measures something else: the CPU time that finding our ranges takes, beside that of the
model's own runs on the same images.

  python -m benchmarks quantized_accuracy --models resnet18 --peers onnxruntime
  python -m benchmarks quantized_accuracy --models efficientnet_b0 --ranges
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import common
import engine
import models
import numpy as np
from common import ROOT

from rushlight.peers.side import Side, SideError

SCRIPT = ROOT / "benchmarks" / "sides" / "quantize_side.py"
PEERS = ("executorch", "onnxruntime")
COLUMNS = ("ours", "executorch", "onnxruntime", "onnxruntime per channel")
Array = Any


def main() -> None:
    options = common.parser(__doc__, models=list(models.VISION), repeat=8)
    options.add_argument(
        "--calibration", type=int, default=4, help="images that calibrate (default: %(default)s)"
    )
    options.add_argument(
        "--draws", type=int, default=3, help="of calibration images (default: %(default)s)"
    )
    options.add_argument(
        "--peers",
        type=lambda text: [name for name in text.split(",") if name],
        default=list(PEERS),
        help="who to compare with, with commas (default: %(default)s)",
    )
    options.add_argument(
        "--onnxruntime",
        default=str(ROOT / ".venv-onnxruntime" / "bin" / "python"),
        metavar="PYTHON",
        help="Python with it (`make onnxruntime` makes the default one)",
    )
    options.add_argument(
        "--ranges", action="store_true", help="measure how long it takes to find our ranges"
    )
    arguments = options.parse_args()
    if arguments.ranges:
        _time_ranges(arguments)
        return
    pythons = engine.pythons_of(arguments)
    columns = [name for name in COLUMNS if name.partition(" ")[0] in ("ours", *arguments.peers)]
    report = common.Report(
        f"int8: dB of the outputs for {arguments.repeat} images beside eager float32",
        ["model", *columns, "ours - best"],
    )
    with common.workshop(arguments.work) as work:
        for name in arguments.models:
            _compare(work, pythons, name, arguments, columns, report)
    report.finish(arguments.json)


def _compare(
    work: common.Workshop,
    pythons: Mapping[str, str],
    name: str,
    arguments: argparse.Namespace,
    columns: Sequence[str],
    report: common.Report,
) -> None:
    tests = _images(work, f"{name}.tests", name, arguments.repeat, seed=2)
    exact = _eager(work, name, tests)
    figures: dict[str, list[float]] = {}
    for draw in range(arguments.draws):
        stem = f"{name}.calibration{draw}"
        calibration = _images(work, stem, name, arguments.calibration, seed=2 * draw + 1)
        for column in columns:
            outputs = work.folder / "outputs.npz"
            try:
                _QUANTIZERS[column](work, pythons, name, calibration, tests, outputs)
                figures.setdefault(column, []).append(_sqnr(exact, _outputs(outputs)))
            except SideError as error:
                print(f"  {column} cannot: {error.reason}", file=sys.stderr, flush=True)
    means = {column: statistics.mean(values) for column, values in figures.items()}
    peers = [value for column, value in means.items() if column != "ours"]
    ahead = means["ours"] - max(peers) if peers else math.nan
    cells = [_cell(figures.get(column, [])) for column in columns]
    report.add(name, *cells, f"{ahead:+.1f}" if peers else "-", model=name, **figures)


def _cell(values: Sequence[float]) -> str:
    """The mean and the range."""
    if not values:
        return "-"
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.1f} to {max(values):.1f})"


def _images(work: common.Workshop, stem: str, name: str, count: int, seed: int) -> Path:
    """The .npz with images like the model's example."""
    with np.load(work.data(name)) as example:
        shape = example["in0"].shape
    draw = np.random.default_rng(seed)
    path = work.folder / f"{stem}.npz"
    np.savez(path, **{f"in{i}": draw.standard_normal(shape, np.float32) for i in range(count)})
    return path


def _read(path: Path) -> list[Array]:
    with np.load(path) as arrays:
        return [arrays[f"in{i}"] for i in range(len(arrays))]


def _outputs(path: Path) -> list[Array]:
    with np.load(path) as arrays:
        return [arrays[f"out{i}"] for i in range(len(arrays))]


def _eager(work: common.Workshop, name: str, tests: Path) -> list[Array]:
    import torch

    module = torch.export.load(work.traced(name)).module()
    with torch.no_grad():
        return [module(torch.from_numpy(image)).numpy() for image in _read(tests)]


def _sqnr(exact: Sequence[Array], results: Sequence[Array]) -> float:
    pairs = [(a.astype(np.float64), b) for a, b in zip(exact, results, strict=True)]
    noise = sum(np.square(b - a).sum() for a, b in pairs)
    signal = sum(np.square(a).sum() for a, _ in pairs)
    return 10 * math.log10(signal / noise) if noise > 0 else math.inf


def _time_ranges(arguments: argparse.Namespace) -> None:
    report = common.Report(
        f"int8: seconds of CPU for {arguments.calibration} images, median of {arguments.repeat}",
        ["model", "runs", "observed runs", "ranges", "ranges and observing / runs"],
    )
    with common.workshop(arguments.work) as work:
        for name in arguments.models:
            calibration = _read(
                _images(work, f"{name}.calibration", name, arguments.calibration, 1)
            )
            times = [_seconds(work, name, calibration) for _ in range(arguments.repeat)]
            runs, observed, ranges = map(common.median, zip(*times, strict=True))
            share = common.median((o + r) / t - 1 for t, o, r in times)
            cells = [f"{seconds:.2f}" for seconds in (runs, observed, ranges)]
            report.add(
                *(name, *cells, f"{share:.1f}x"),
                model=name, runs=runs, observed=observed, ranges=ranges, share=share,
            )  # fmt: skip
    report.finish(arguments.json)


def _seconds(
    work: common.Workshop, name: str, images: Sequence[Array]
) -> tuple[float, float, float]:
    """CPU seconds on one thread: the model's runs, observed runs, and the search for the ranges."""
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    from rushlight.quantization.calibrate import Item, observers_of, run_through
    from rushlight.quantization.ranges import RangeObserver
    from rushlight.quantization.recipes import RECIPES

    torch.set_num_threads(1)
    exported = torch.export.load(work.traced(name))
    items = [Item((torch.from_numpy(image),), {}) for image in images]
    plain: Any = exported.module()
    make = RECIPES["int8"].quantizer
    assert make is not None
    prepared: Any = prepare_pt2e(exported.module(), make())
    with torch.no_grad():
        plain(*items[0].args)  # the first run makes room
        start = time.process_time()
        for item in items:
            plain(*item.args)
    ran = time.process_time()
    run_through(prepared, items, None)
    observed = time.process_time()
    for _, observer in observers_of(prepared):
        if isinstance(observer, RangeObserver):
            observer.calculate_qparams()
    return ran - start, observed - ran, time.process_time() - observed


# --- quantizers -----------------------------------------------------------------------------------


def _ours(
    work: common.Workshop, pythons: Any, name: str, calibration: Path, tests: Path, outputs: Path
) -> None:
    import torch

    import rushlight as rl

    exported = torch.export.load(work.traced(name))
    images = [(torch.from_numpy(image),) for image in _read(calibration)]
    program = rl.quantize(exported, calibrate=images, recipe="int8")
    module = rl.load(rl.export(program, backend="cpu", verify=False).buffer)
    results = [np.asarray(module(image)) for image in _read(tests)]
    np.savez(outputs, **{f"out{i}": value for i, value in enumerate(results)})


def _executorch(
    work: common.Workshop, pythons: Any, name: str, calibration: Path, tests: Path, outputs: Path
) -> None:
    with Side(pythons["executorch"], SCRIPT, threads=1) as side:
        side.call(
            *("executorch_outputs",), program=work.traced(name), calibration=str(calibration),
            tests=str(tests), outputs=str(outputs),
        )  # fmt: skip


def _onnxruntime(per_channel: bool) -> Callable[..., None]:
    def quantize(
        work: common.Workshop,
        pythons: Any,
        name: str,
        calibration: Path,
        tests: Path,
        outputs: Path,
    ) -> None:
        file = work.folder / f"{name}.onnxruntime.onnx"
        if not file.exists():
            with engine.side_of(pythons["onnxruntime"]) as side:
                side.call(
                    *("lower",), runtime="onnxruntime", program=work.traced(name), file=str(file)
                )
        with Side(pythons["onnxruntime"], SCRIPT, threads=1) as side:
            side.call(
                *("onnxruntime_outputs",), onnx=str(file), calibration=str(calibration),
                tests=str(tests), outputs=str(outputs), per_channel=per_channel,
            )  # fmt: skip

    return quantize


_QUANTIZERS: Mapping[str, Callable[..., None]] = {
    "ours": _ours,
    "executorch": _executorch,
    "onnxruntime": _onnxruntime(per_channel=False),
    "onnxruntime per channel": _onnxruntime(per_channel=True),
}


if __name__ == "__main__":
    try:
        main()
    except SideError as error:
        sys.exit(str(error))
