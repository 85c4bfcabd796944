"""What adapters (LoRA) of rank 16 on all layers cost: prefill and decoding in 8da4w, with one, with
none, and by a program that takes none; and four sessions with an adapter each.

All take turns in one process; figures are medians. On a machine that does other work, --cpu
compares the CPU seconds on one thread.

  python -m benchmarks llm_adapters --models 135m --threads 1
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engines
import torch
from forms import Forms
from safetensors.torch import save_file

import rushlight.llm
from rushlight.llm.runner import Runner
from rushlight.serialize.pte import read_pte

RANK, PROMPT, TOKENS, SESSIONS = 16, 256, 48, 4
OPTIONS: dict[str, Any] = {"temperature": 0.0, "ignore_eos": True, "guesses": 0}


def main() -> None:
    options = engines.parser(__doc__)
    options.add_argument("--cpu", action="store_true", help="compare CPU seconds (one thread)")
    arguments = options.parse_args()
    clock = time.process_time if arguments.cpu else time.perf_counter
    rows, figures, salts = [], [], itertools.count(1)
    for name in arguments.models:
        model = Forms(arguments.work, name, arguments.layers)
        plain, base = model.file("8da4w.pte"), model.file("8da4w-adapters.pte")
        files = [_adapter(model, base, seed) for seed in range(SESSIONS)]
        for threads in arguments.threads:
            without = rushlight.llm.load(plain, threads=threads)
            runner = rushlight.llm.load(base, threads=threads)
            adapters = [runner.load_adapter(file) for file in files]
            cases: dict[str, tuple[Runner, list[Any]]] = {
                "takes none": (without, [None]),
                "none": (runner, [None]),
                "one": (runner, adapters[:1]),
                "4 sessions, takes none": (without, [None] * SESSIONS),
                "4 sessions, none": (runner, [None] * SESSIONS),
                "4 sessions, one for all": (runner, adapters[:1] * SESSIONS),
                "4 sessions, one each": (runner, adapters),
            }
            measured: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}
            for turn in range(arguments.repeat + 1):
                for case, (one, chosen) in cases.items():
                    rates = _rates(one, chosen, salts, clock)
                    measured[case] += [rates] if turn else []  # the first one reads the files
            for case, runs in measured.items():
                prefill, decode = (statistics.median(rates) for rates in zip(*runs, strict=True))
                told = [model.folder.name, str(threads), case, f"{prefill:.0f}", f"{decode:.1f}"]
                rows.append(told)
                figures.append({"model": name, "threads": threads, "case": case,
                                "prefill": prefill, "decode": decode})  # fmt: skip
    engines.table("Adapters", ["", "threads", "adapters", "prefill tok/s", "decode tok/s"], rows)
    engines.write_figures(arguments.json, "llm_adapters", figures)


def _adapter(model: Forms, base: Path, seed: int) -> Path:
    """The file of an adapter with small random weights for all layers."""
    path = model.folder / f"adapter-{seed}.ptd"
    if path.exists() and path.stat().st_mtime > base.stat().st_mtime:
        return path
    folder = model.folder / "adapter"
    folder.mkdir(exist_ok=True)
    about = json.loads(bytes(read_pte(base.read_bytes()).named_data["rushlight/llm"]))
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for site in about["adapters"]["sites"]:
        for part, shape in (("A", (RANK, site["inputs"])), ("B", (site["outputs"], RANK))):
            key = f"base_model.model.model.{site['name']}.lora_{part}.weight"
            tensors[key] = 1e-3 * torch.randn(shape, generator=generator)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": "all-linear"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    rushlight.llm.adapter(folder, base=base, out=path)
    return path


def _rates(
    runner: Runner, adapters: list[Any], salts: Iterator[int], clock: Any
) -> tuple[float, float]:
    """Tokens a second of all sessions together: of their prompts, and of their texts."""
    begin, streams = clock(), []
    for adapter in adapters:
        first = next(salts) * 104729  # no prompt is in the cache
        prompt = [(first + k * 7919) % runner.vocabulary_size for k in range(PROMPT)]
        streams.append(runner.stream(prompt, adapter=adapter, max_tokens=TOKENS, **OPTIONS))
    made, middle = 0, begin
    running = list(streams)
    while running:
        for stream in list(running):
            if next(stream, None) is None:
                running.remove(stream)
        counts = [stream.statistics.output_tokens for stream in streams]
        if not made and min(counts) > 0:
            middle, made = clock(), sum(counts)
    end = clock()
    tokens = len(adapters) * TOKENS - made
    return len(adapters) * PROMPT / (middle - begin), tokens / (end - middle)


if __name__ == "__main__":
    main()
