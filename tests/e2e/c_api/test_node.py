"""The Node binding: its package is built and installed as a user does, and its own tests pass on
programs made here, whose outputs, tokens and texts Python has computed first."""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import bad_kernels
import numpy as np
import pytest
import torch
from c_library import PATH
from codegen.c_header import ROOT
from torch.export import Dim

import rushlight as rl
import rushlight.llm
from rushlight.edge import MemoryPlanningPass
from rushlight.inspect import Inspector

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))
from runtime_programs import delegated, program

NODE = ROOT / "bindings" / "node"
GOLDEN = ROOT / "tests" / "golden"
SLOW = 1 << 19  # elements of the slow program


class Net(torch.nn.Module):
    """Dynamic sizes, two inputs of one size, several outputs and dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)
        self.norm = torch.nn.LayerNorm(5)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.norm(torch.relu(self.linear(x))) * mask[:, None]
        return y, y.argmax(-1), y > 0, y.half()


class Dtypes(torch.nn.Module):
    """Each dtype comes back as it is."""

    def forward(self, *xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(x.logical_not() if x.dtype == torch.bool else x + x for x in xs)


class Scaled(torch.nn.Module):
    """Scalars and texts as inputs."""

    def forward(self, x: torch.Tensor, n: int, flag: bool, how: str) -> torch.Tensor:
        return x * n if flag and how == "up" else x


class Permuted(torch.nn.Module):
    """An output whose dimensions do not lie in their order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).contiguous(memory_format=torch.channels_last)


class Slow(torch.nn.Module):
    """Many operators, each of them some milliseconds; the last one reads the input again."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for _ in range(300):
            y = torch.sin(y)
        return y + x


class Large(torch.nn.Module):
    """Arenas of some megabytes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.flip(x * 2, [0]) + torch.exp(x) + x


def _told(value: Any) -> Any:
    """A value as the tests of the binding read it."""
    if not isinstance(value, np.ndarray):
        return value
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"dtype": value.dtype.name, "sizes": list(value.shape), "base64": data}


def _add(folder: Path, name: str, inputs: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """What Python's runtime gives for the program `name` and these inputs."""
    module, cases = rl.load(folder / f"{name}.pte", threads=2), []
    for values in inputs:
        outputs = module(*values)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        case = {"method": "forward", "inputs": values, "outputs": outputs}
        cases.append({k: v if k == "method" else [_told(x) for x in v] for k, v in case.items()})
    return cases


def _net_programs(folder: Path) -> dict[str, Any]:
    batch = Dim("batch", min=2, max=9)
    example = torch.randn(4, 6), torch.randn(4)
    rng = np.random.default_rng(3)
    inputs: list[tuple[Any, ...]] = [
        (rng.normal(size=(n, 6)).astype(np.float32), rng.normal(size=n).astype(np.float32))
        for n in (2, 9, 4)
    ]
    cases = {}
    for backend in ("portable", "cpu", "xnnpack"):
        shapes = {"x": {0: batch}, "mask": {0: batch}}
        made = rl.export(Net().eval(), example, dynamic_shapes=shapes, backend=backend)
        made.save(folder / f"net_{backend}.pte")
        cases[f"net_{backend}"] = _add(folder, f"net_{backend}", inputs)
    return cases


def _programs(folder: Path) -> dict[str, Any]:
    """Writes the programs; their cases."""
    cases = _net_programs(folder)
    names = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool")
    numbers = [np.arange(6).reshape(2, 3).astype(name) for name in names]
    image = np.random.default_rng(5).normal(size=(1, 3, 4, 5)).astype(np.float32)
    for name, net, inputs in (
        ("dtypes", Dtypes(), tuple(numbers)),
        ("permuted", Permuted(), (image,)),
        ("scalars", Scaled(), (np.ones(3, np.float32), 2, True, "up")),
    ):
        example = tuple(torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in inputs)
        rl.export(net, example).save(folder / f"{name}.pte")
        cases[name] = _add(folder, name, [inputs])
    zeros = (torch.zeros(SLOW),)
    # Its input and output lie in the caller's memory.
    lent = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    rl.export(Slow(), zeros, verify=False, memory=lent).save(folder / "slow.pte")
    rl.export(Large(), zeros).save(folder / "large.pte")
    bad_kernels.make(folder, PATH.parent / "tests" / "cpp" / "libplugin_twice.so")
    blobs = [b"SCL1" + struct.pack("f", 3)]
    (folder / "scaled.pte").write_bytes(program(delegated("Scale", 2), blobs=blobs))
    return cases


def _texts() -> dict[str, Any]:
    """What the runner of Python gives."""
    model, prompt = rushlight.llm.load(GOLDEN / "llm" / "v1.pte"), "the lamp was"
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "naïve 😀"}]
    tokenized = []
    for text in ("", prompt, "naïve café — 你好", "a\x00b", "<s>", "x" * 5000):
        tokens = list(model.encode(text))
        tokenized.append({"text": text, "tokens": tokens, "decoded": model.decode(tokens)})
    generated = []
    for names, options in (
        ({"maxTokens": 12, "temperature": 0}, {"max_tokens": 12, "temperature": 0}),
        (
            {"maxTokens": 12, "temperature": 0.9, "topK": 20, "topP": 0.9, "seed": 5},
            {"max_tokens": 12, "temperature": 0.9, "top_k": 20, "top_p": 0.9, "seed": 5},
        ),
        (
            {"maxTokens": 8, "temperature": 1, "minP": 0.05, "repetitionPenalty": 1.2, "seed": 9},
            {"max_tokens": 8, "temperature": 1, "min_p": 0.05, "repetition_penalty": 1.2}
            | {"seed": 9},
        ),
    ):
        made = model.generate(prompt, ignore_eos=True, **options)
        generated.append({"options": names, "tokens": list(made.tokens), "text": made.text})
    texts = ["a lamp", "the light"]
    vectors = [base64.b64encode(v.tobytes()).decode() for v in model.embed(texts)]
    return {
        "prompt": prompt,
        "messages": messages,
        "chat": list(model.encode_chat(messages)),
        "tokenized": tokenized,
        "generated": generated,
        "embedded": {"texts": texts, "vectors": vectors},
    }


def _run(*command: str | Path, **options: Any) -> str:
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, **options
    )
    assert run.returncode == 0, f"{command}\n{run.stdout[-6000:]}\n{run.stderr[-3000:]}"
    return str(run.stdout)


def _package(folder: Path) -> Path:
    """Builds the package and installs it, as a user does; the folder that has it."""
    missing = [tool for tool in ("node", "npm", "cmake") if shutil.which(tool) is None]
    assert not missing, f"there is no {missing[0]}: on Debian, apt install nodejs npm cmake"
    prefix, build, app = folder / "prefix", folder / "build", folder / "app"
    _run("cmake", "--install", PATH.parent, "--prefix", prefix)
    werror = "-DCMAKE_C_FLAGS=-Werror"
    _run("cmake", "-S", NODE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", werror)
    _run("cmake", "--build", build)
    packed = _run("npm", "pack", build / "package", "--pack-destination", folder, cwd=folder)
    shutil.rmtree(build)
    shutil.rmtree(prefix)
    app.mkdir()
    (app / "package.json").write_text("{}")
    archive = folder / packed.strip().splitlines()[-1]
    _run("npm", "install", "--offline", "--no-audit", archive, cwd=app)
    assert not (app / "node_modules" / "rushlight").is_symlink()
    return app


def _run_page(app: Path) -> None:
    """The example of the page runs as it stands."""
    page = (ROOT / "docs" / "node.md").read_text(encoding="utf-8")
    code = page.split("```js\n")[1].split("```")[0]
    loads = "const { LanguageModel, Module, Tensor } = require('rushlight');"
    assert loads in code
    (app / "page.mjs").write_text(
        code.replace(loads, "import { LanguageModel, Module, Tensor } from 'rushlight';")
    )
    rl.export(torch.nn.Linear(3, 2).eval(), (torch.zeros(2, 3),)).save(app / "model.pte")
    shutil.copy(GOLDEN / "llm" / "v1.pte", app / "llm.pte")
    assert _run("node", "page.mjs", cwd=app)


@pytest.mark.full
def test_node(tmp_path: Path) -> None:
    app, programs = _package(tmp_path), tmp_path / "programs"
    programs.mkdir()
    plugins = PATH.parent / "tests" / "cpp"
    expected = {
        "programs": _programs(programs),
        "llm": _texts(),
        "slow": SLOW,
        "libraries": {name: str(plugins / f"libplugin_{name}.so") for name in ("twice", "scale")},
    }
    (programs / "expected.json").write_text(json.dumps(expected))
    shutil.copytree(NODE / "test", app / "test")
    _run_page(app)
    environment = {
        **{k: v for k, v in os.environ.items() if k != "RUSHLIGHT_NODE_ADDON"},
        "RUSHLIGHT_TEST_PROGRAMS": str(programs),
        "RUSHLIGHT_TEST_GOLDEN": str(GOLDEN),
    }
    tests = sorted((app / "test").glob("*.test.*"))
    told = _run("node", "--expose-gc", "--test", *tests, cwd=app, env=environment)
    summary = dict(line[2:].split(" ", 1) for line in told.splitlines() if line[:2] in ("# ", "ℹ "))
    assert int(summary["pass"]) >= 30 and summary["fail"] == "0", told[-3000:]
    for name in ("node", "steps"):  # traces that the tests have written
        assert Inspector(programs / f"{name}.etdump").event_blocks
