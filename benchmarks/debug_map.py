"""The cost of the map to Python lines: bytes of the file, CPU time and memory of an export.

Every row is a process of its own, which exports the model unchecked: `lstm WIDTH LENGTH` is an LSTM
of two layers, others are names from benchmarks/models.py. "map" is what the file has by default,
"full" what debug="full" stores, "written" the CPU seconds that it takes to write the former; the
peak is resident memory.

  python -m benchmarks debug_map --models "lstm 16 40,resnet50" --backends cpu
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import common

MODELS = ("lstm 16 40", "lstm 256 50", "lstm 256 100", "lstm 256 200", "minilm", "resnet50")
KIB, MIB = 1 << 10, 1 << 20


def main() -> None:
    options = common.parser(__doc__, models=MODELS, repeat=1)
    options.add_argument("--backends", default="portable,cpu,xnnpack", help="with commas")
    options.add_argument("--one", nargs=2, help=common.argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one:
        print(json.dumps(_measure(*arguments.one)))
        return
    report = common.Report(
        "The map to Python lines",
        [
            *("model", "backend", "file MiB", "map KiB", "of file", "full KiB", "left out"),
            *("places", "written s", "export s", "peak MiB"),
        ],
    )
    for name in arguments.models:
        for backend in arguments.backends.split(","):
            figures = _in_process(name, backend)
            report.add(
                name,
                backend,
                f"{figures['file'] / MIB:.2f}",
                f"{figures['map'] / KIB:.1f}",
                f"{figures['map'] / figures['file']:.1%}",
                f"{figures['full'] / KIB:.1f}",
                ", ".join(figures["left_out"]) or "nothing",
                f"{figures['places']:,}",
                f"{figures['written']:.2f}",
                f"{figures['export']:.1f}",
                f"{figures['peak'] / MIB:,.0f}",
                model=name,
                backend=backend,
                **figures,
            )
    report.finish(arguments.json)


def _in_process(name: str, backend: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", name, backend]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _measure(name: str, backend: str) -> dict[str, Any]:
    import torch
    from models import build

    import rushlight as rl
    from rushlight.serialize.debug import KEY, read_debug, write_debug
    from rushlight.serialize.pte import read_pte
    from rushlight.serialize.segments import as_bytes

    kind, *sizes = name.split()
    if sizes:
        width, length = map(int, sizes)
        module = torch.nn.LSTM(width, width, 2, batch_first=True).eval()
        program = torch.export.export(module, (torch.randn(1, length, width),))
    else:
        program = build(kind).export()
    start = time.process_time()
    made = rl.export(program, backend=backend, verify=False)
    data = made.buffer
    export = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    stored = as_bytes(read_pte(data).named_data[KEY])
    whole = made.manager.debug_map
    start = time.process_time()
    write_debug(whole, len(stored))
    written = time.process_time() - start
    delegates = [places for method in whole.methods.values() for places in method.delegates]
    instructions = sum(len(method.instructions) for method in whole.methods.values())
    return {
        "file": len(data),
        "map": len(stored),
        "full": len(write_debug(whole)),
        "left_out": read_debug(stored).left_out,
        "places": instructions + sum(map(len, delegates)),
        "written": written,
        "export": export,
        "peak": peak,
    }


if __name__ == "__main__":
    main()
