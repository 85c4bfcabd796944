"""Programs for the tests of Rust and C#, and what they compute in Python, as files of bytes.

Each file of numbers has nothing but its elements in row-major order.
"""

from __future__ import annotations

from pathlib import Path

import bad_kernels
import numpy as np
import torch
from c_api_models import Counter, Loop, Net, Noise
from c_library import PATH
from codegen.c_header import ROOT
from torch.export import Dim

import rushlight as rl
import rushlight.llm

GOLDEN = ROOT / "tests" / "golden"
LIBRARY = PATH
# A library of kernels: acme::twice.out(Tensor x, *, Tensor(a!) out).
TWICE = PATH.parent / "tests" / "cpp" / "libplugin_twice.so"
BACKENDS = ("portable", "cpu", "xnnpack")
BATCHES = (2, 9, 4)
PROMPT = "the lamp was"
TEXTS = ("", PROMPT, "na\u00efve caf\u00e9 \u2014 \u4f60\u597d \U0001f600", "a\x00b", "<s>")


class Image(torch.nn.Module):
    """An output whose elements do not lie in row-major order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2.0).to(memory_format=torch.channels_last)


class Scaled(torch.nn.Module):
    """Scalars."""

    def forward(self, x: torch.Tensor, n: int, flag: bool, how: str) -> torch.Tensor:
        return x * n if flag and how == "up" else x


def make(folder: Path) -> None:
    """Writes the programs and their results.

    Args:
        folder: where the files go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    _make_nets(folder)
    _make_small(folder)
    _make_texts(folder)


def _write(path: Path, array: np.ndarray) -> None:
    path.write_bytes(np.ascontiguousarray(array).tobytes())


def _make_nets(folder: Path) -> None:
    batch = Dim("batch", min=2, max=9)
    shapes = {"x": {0: batch}, "mask": {0: batch}}
    net = Net().eval()
    for backend in BACKENDS:
        path = folder / f"net_{backend}.pte"
        inputs = torch.randn(4, 6), torch.ones(4)
        rl.export(net, inputs, dynamic_shapes=shapes, backend=backend).save(path)
        module = rl.load(path)
        for size in BATCHES:
            x = np.random.default_rng(size).normal(size=(size, 6)).astype(np.float32)
            mask = np.linspace(0, 1, size, dtype=np.float32)
            _write(folder / f"x_{size}.bin", x)
            _write(folder / f"mask_{size}.bin", mask)
            for i, y in enumerate(module(x, mask)):
                _write(folder / f"{backend}_{size}_{i}.bin", np.asarray(y))


def _make_small(folder: Path) -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    rl.export(Image(), (x,)).save(folder / "image.pte")
    rl.export(Counter(), (torch.ones(3),)).save(folder / "counter.pte")
    rl.export(Noise(), (torch.zeros(4),), verify=False).save(folder / "noise.pte")
    torch.manual_seed(7)
    _write(folder / "noise_7.bin", torch.rand(4).numpy())
    rl.export(Scaled(), (torch.ones(3), 2, True, "up")).save(folder / "scaled.pte")
    rl.export(Loop(), (torch.zeros(2),), verify=False).save(folder / "loop.pte")
    bad_kernels.make(folder, TWICE)


def _make_texts(folder: Path) -> None:
    runner = rushlight.llm.load(GOLDEN / "llm" / "v1.pte")
    samplings = {
        "greedy": {"temperature": 0.0, "max_tokens": 12},
        "sampled": {"temperature": 0.9, "top_k": 20, "top_p": 0.9, "seed": 5, "max_tokens": 12},
    }
    for name, options in samplings.items():
        reply = runner.generate(PROMPT, ignore_eos=True, **options)
        _write(folder / f"{name}.tokens", np.asarray(reply.tokens, np.int32))
        (folder / f"{name}.txt").write_text(reply.text, encoding="utf-8")
    _write(folder / "prompt.tokens", np.asarray(runner.encode(PROMPT), np.int32))
    for i, text in enumerate(TEXTS):
        tokens = runner.encode(text)
        (folder / f"text_{i}.txt").write_bytes(text.encode())
        _write(folder / f"text_{i}.tokens", np.asarray(tokens, np.int32))
        (folder / f"text_{i}.decoded").write_bytes(runner.decode(tokens).encode())
    messages = [{"role": "user", "content": 'say "hi"\n\\ \u00e9 \U0001f600'}]
    _write(folder / "chat.tokens", np.asarray(runner.encode_chat(messages), np.int32))
    _write(folder / "embedded.bin", np.asarray(runner.embed(["a lamp", "the light"]), np.float32))
