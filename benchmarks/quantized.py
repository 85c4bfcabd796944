"""Quantised models beside ExecuTorch with XNNPACK, ONNX Runtime and OpenVINO.

Every engine has its own tools quantise the model with the same recipe and the same calibration
data: ours, ExecuTorch's XNNPACKQuantizer (rows quantised at run time: our graph, lowered by it, for
that quantizer quantises the indices of embeddings, too), ONNX Runtime's QDQ, dynamic and block-wise
tools; OpenVINO runs ONNX Runtime's files. Then all take turns, as in `engine.py`, our float program
and our runtime with ExecuTorch's file among them. ONNX Runtime's dynamic tool sees constants alone:
weights behind a transposition, as those that GPT-2 shares with its embedding, it leaves in float
unless its own preparation goes before, so that both of its files run. The error of each is that of
its outputs beside eager float32, as signal to noise in dB.

  python -m benchmarks quantized --models minilm:int8-dynamic --threads 1
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import common
import engine
import numpy as np
from common import ROOT
from tables import engine_tables
from tables.engine_tables import OURS, SHORT, Speed

from rushlight.files import write_text
from rushlight.peers import runtimes
from rushlight.peers.side import Side, SideError
from rushlight.peers.turns import take_turns

SCRIPT = ROOT / "benchmarks" / "sides" / "quantize_side.py"
CASES = (
    "mobilenet_v2:int8", "mobilenet_v2_conventional:int8", "resnet50:int8",
    "minilm:int8-dynamic", "minilm:int4-dynamic", "gpt2:int8-dynamic", "gpt2:int4-dynamic",
)  # fmt: skip
FLOAT = "float32"
THEIRS = "executorch's file"  # in our runtime
UNPREPARED = "onnxruntime unprepared"  # its dynamic tool and nothing before it
CALLS = 8  # of calibration


def main() -> None:
    arguments = engine.options_of(__doc__, models=CASES).parse_args()
    pythons = engine.pythons_of(arguments)
    rows = []
    with common.workshop(arguments.work) as work:
        for case in arguments.models:
            name, _, recipe = case.partition(":")
            files = _files(work, pythons, name, recipe)
            rows += _measure(work, pythons, case, files, arguments)
    _show(rows)
    if arguments.json is not None:
        write_text(arguments.json, json.dumps([row.figures() for row in rows], indent=1) + "\n")


# --- files ----------------------------------------------------------------------------------------


def _calibration(work: common.Workshop, name: str) -> str:
    """The .npz with the inputs of several calls, like the model's example."""
    path = work.folder / f"{name}.calibration.npz"
    if path.exists():
        return str(path)
    with np.load(work.data(name)) as example:
        inputs = [example[f"in{i}"] for i in range(sum(n.startswith("in") for n in example))]
    draw = np.random.default_rng(1)
    arrays = []
    for call in range(CALLS):
        for array in inputs:
            if call == 0 or (array.max() <= 1 and array.dtype.kind == "i"):
                arrays.append(array)  # the example itself, and masks
            elif array.dtype.kind == "i":
                arrays.append(draw.integers(0, array.max(), array.shape, dtype=array.dtype))
            else:
                arrays.append(draw.standard_normal(array.shape, dtype=array.dtype))
    np.savez(path, **{f"in{i}": array for i, array in enumerate(arrays)})
    return str(path)


def _files(
    work: common.Workshop, pythons: Mapping[str, str], name: str, recipe: str
) -> dict[str, str]:
    """The file of each engine, and of ours in float; engines whose tools fail are left out."""
    files = {}
    unprepared = (UNPREPARED,) if recipe == "int8-dynamic" and "onnxruntime" in pythons else ()
    for by in (FLOAT, *pythons, *unprepared):
        suffix = runtimes.RUNTIMES[_runtime_of(by)].suffix
        stem = f"{name}.{by}" if by == FLOAT else f"{name}-{recipe}.{by.replace(' ', '-')}"
        path = work.folder / f"{stem}{suffix}"
        if by in (OURS, FLOAT) or not path.exists():
            print(f"{name}: {recipe} for {by}", file=sys.stderr, flush=True)
            try:
                _make(work, pythons, name, recipe, by, path)
            except SideError as error:
                print(f"  {by} cannot: {error.reason}", file=sys.stderr, flush=True)
                continue
        files[by] = str(path)
    if "executorch" in files:
        files[THEIRS] = files["executorch"]
    return files


def _make(
    work: common.Workshop,
    pythons: Mapping[str, str],
    name: str,
    recipe: str,
    by: str,
    path: Path,
) -> None:
    if by in (OURS, FLOAT):
        program = work.traced(name) if by == FLOAT else quantized_program(work, name, recipe)
        _export(program, path)
        return
    calibration = _calibration(work, name)
    with Side(pythons[_runtime_of(by)], SCRIPT, threads=2) as side:
        if by == "executorch" and recipe != "int8":
            side.call(
                "executorch_as_is", program=quantized_program(work, name, recipe), file=str(path)
            )
        elif by == "executorch":
            side.call(
                *("executorch",), program=work.traced(name), calibration=calibration,
                file=str(path),
            )  # fmt: skip
        elif by == UNPREPARED:
            side.call("onnxruntime_dynamic", onnx=_onnx(work, pythons, name), file=str(path))
        elif by == "onnxruntime":
            side.call(
                *("onnxruntime",), onnx=_onnx(work, pythons, name), calibration=calibration,
                file=str(path), recipe=recipe,
            )  # fmt: skip
        else:
            onnx = work.folder / f"{name}-{recipe}.onnxruntime.onnx"
            side.call("openvino", onnx=str(onnx), file=str(path))


def _export(program: str, path: Path) -> None:
    import rushlight as rl

    path.write_bytes(rl.export(program, backend="cpu", verify=False).buffer)


def quantized_program(work: common.Workshop, name: str, recipe: str) -> str:
    """The file of ``torch.export.save`` with the graph that our quantizer made."""
    import torch
    from torch.utils import _pytree as pytree

    import rushlight as rl

    path = work.folder / f"{name}-{recipe}.pt2"
    if path.exists():
        return str(path)
    exported = torch.export.load(work.traced(name))
    arrays = runtimes.side.read_inputs(_calibration(work, name))
    spec = exported.call_spec.in_spec
    assert spec is not None
    calls = []
    for at in range(0, len(arrays), spec.num_leaves):
        tensors = [torch.from_numpy(a) for a in arrays[at : at + spec.num_leaves]]
        args, kwargs = pytree.tree_unflatten(tensors, spec)
        names = list(exported.module(check_guards=False).graph._codegen.pytree_info.orig_args)
        calls.append({**dict(zip(names, args, strict=False)), **kwargs} if kwargs else args)
    data = calls if recipe == "int8" else None
    torch.export.save(rl.quantize(exported, calibrate=data, recipe=recipe), path)
    return str(path)


def _onnx(work: common.Workshop, pythons: Mapping[str, str], name: str) -> str:
    path = work.folder / f"{name}.onnxruntime.onnx"
    if not path.exists():
        with engine.side_of(pythons["onnxruntime"]) as side:
            side.call(*("lower",), runtime="onnxruntime", program=work.traced(name), file=str(path))
    return str(path)


# --- runs -----------------------------------------------------------------------------------------


class Row:
    """One case on one number of threads."""

    def __init__(
        self, case: str, speed: Speed, sizes: Mapping[str, int], sqnr: Mapping[str, float]
    ):
        self.case = case
        self.speed = speed
        self.sizes = sizes
        self.sqnr = sqnr

    def figures(self) -> dict[str, Any]:
        """The row as JSON."""
        return {
            "case": self.case,
            "threads": self.speed.threads,
            "medians": self.speed.medians,
            "times": self.speed.times,
            "bytes": self.sizes,
            "sqnr": self.sqnr,
        }


def _measure(
    work: common.Workshop,
    pythons: Mapping[str, str],
    case: str,
    files: Mapping[str, str],
    arguments: argparse.Namespace,
) -> list[Row]:
    name = case.partition(":")[0]
    rows = []
    sqnr: dict[str, float] = {}
    interpreters = {by: pythons[_runtime_of(by)] for by in files}
    with engine.started(interpreters, runtime=_runtime_of) as sides:
        for threads in arguments.threads:
            for by, side in sides.items():
                opening = {"file": files[by], "data": work.data(name), "threads": threads}
                side.call("open", runtime=_runtime_of(by), **opening)
                if by not in sqnr:
                    sqnr[by] = _sqnr(work, side, name)
            times = take_turns(sides, arguments.repeat)
            speed = Speed(case, threads, times, 0, 1.0, 1.0)
            engine_tables.say(speed)
            sizes = {
                by: sum(p.stat().st_size for p in runtimes.RUNTIMES[_runtime_of(by)].files(file))
                for by, file in files.items()
            }
            rows.append(Row(case, speed, sizes, sqnr))
    return rows


def _runtime_of(by: str) -> str:
    if by == UNPREPARED:
        return "onnxruntime"
    return OURS if by in (FLOAT, THEIRS) else by


def _sqnr(work: common.Workshop, side: Side, name: str) -> float:
    """dB of the first output beside eager's."""
    path = str(work.folder / "out.npz")
    side.call("outputs", path=path)
    with np.load(work.data(name)) as eager, np.load(path) as outputs:
        exact = eager["out0"].astype(np.float64)
        noise = np.square(outputs["out0"] - exact).sum()
    return 10 * math.log10(np.square(exact).sum() / noise) if noise > 0 else math.inf


def _show(rows: Sequence[Row]) -> None:
    engines = list(dict.fromkeys(by for row in rows for by in row.speed.times))
    others = {FLOAT: "ours f32", THEIRS: "ET's here", UNPREPARED: "ORT unprepared"}
    names = [{**others, **SHORT}[by] for by in engines]
    peers = [by for by in engines if _runtime_of(by) != OURS]
    table = common.table_of(
        "Latency: medians in ms; peer / ours (lower end of its 95 % interval)",
        [
            "model",
            "threads",
            *names,
            "f32 / ours",
            "ET / ours",
            "unprepared / ours",
            "best / ours",
            "1→",
            "ET / here",
        ],
    )
    one = {row.case: row.speed.medians[OURS] for row in rows if row.speed.threads == 1}
    for row in rows:
        medians = row.speed.medians
        there = [by for by in peers if by in medians]
        groups = [[FLOAT], ["executorch"], [UNPREPARED], there]
        ratios = [_ratio(row.speed, group, OURS) for group in groups]
        gain = one.get(row.case, math.nan) / medians[OURS]
        table.add_row(
            *(row.case, str(row.speed.threads)),
            *(f"{1e3 * medians[by]:.2f}" if by in medians else "-" for by in engines),
            *ratios,
            f"{gain:.2f}x" if row.speed.threads > 1 else "",
            _ratio(row.speed, ["executorch"], THEIRS),
        )
    common.print_table(table)
    table = common.table_of(
        "MB of the file, and dB of the outputs beside eager float32",
        ["model", *names, *(f"{name} dB" for name in names)],
    )
    for row in {row.case: row for row in rows}.values():
        table.add_row(
            row.case,
            *(f"{row.sizes[by] / 1e6:.1f}" if by in row.sizes else "-" for by in engines),
            *(f"{row.sqnr[by]:.1f}" if by in row.sqnr else "-" for by in engines),
        )
    common.print_table(table)


def _ratio(speed: Speed, peers: Sequence[str], to: str) -> str:
    if not peers or not all(by in speed.medians for by in (*peers, to)):
        return "-"
    return "{:.2f}x (≥ {:.2f})".format(*speed.ratio(peers, to))


if __name__ == "__main__":
    try:
        main()
    except SideError as error:
        sys.exit(str(error))
