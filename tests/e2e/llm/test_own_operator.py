"""A language model with an operator of the user's own: exported, and run by the runner."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_model import make_model, make_tokenizer, save
from typer.testing import CliRunner

import rushlight as rl
import rushlight.llm
from own_kernels import build_library
from rushlight import runtime
from rushlight.cli import app
from rushlight.runtime.registries import registered_kernels
from rushlight.schema import cpu_engine as fb

sys.path.append(str(Path(__file__).resolve().parents[1] / "c_api"))
from c_library import CError, Library
from c_texts import generate, generate_options

SNAKE = "acme::snake(Tensor x, float a) -> Tensor"
MESSAGES = [{"role": "user", "content": "the lamp"}]


class Snake(torch.nn.Module):
    """The activation of the model's layers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.acme.snake(x, 1.5)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def model() -> Any:
    if not hasattr(torch.ops.acme, "snake"):

        @rl.custom_op(SNAKE)
        def snake(x: torch.Tensor, a: float) -> torch.Tensor:
            return x + torch.sin(a * x) ** 2 / a

    made = make_model()
    for layer in made.model.layers:
        layer.mlp.act_fn = Snake()
    return made


@pytest.fixture(scope="module")
def path(model: Any, library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(
        model, make_tokenizer(), tmp_path_factory.mktemp("llm") / "m.pte", kernels=[library]
    )


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    yield
    for name in registered_kernels():
        runtime.unregister_kernel(name)


def _expected(model: Any, prompt: list[int], count: int) -> list[int]:
    with torch.no_grad():
        out = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False)
    return out[0, len(prompt) :].tolist()  # type: ignore[no-any-return]


def test_one_delegate_computes_it_and_is_checked(model: Any, library: Path) -> None:
    program = rl.llm.export(model, context=64, batch=8, kernels=[library])  # compares with eager
    [payload] = program.manager.payloads
    names = [type(node.operation).__name__ for node in fb.unpack(payload).nodes]
    assert names.count("KernelCall") == 1
    assert not registered_kernels()


def test_replies_equal_transformers(model: Any, path: Path, library: Path) -> None:
    runner = rl.llm.load(path, threads=1, kv="float32", kernels=[library])
    generator = torch.Generator().manual_seed(5)
    for length in (1, 9, 80):
        prompt = torch.randint(3, 300, (length,), generator=generator).tolist()
        reply = runner.generate(prompt, max_tokens=12, temperature=0)
        wanted = _expected(model, prompt, 12)
        assert reply.tokens == wanted[: wanted.index(0)] if 0 in wanted else wanted
    chat = runner.encode_chat(MESSAGES)
    reply = runner.generate(MESSAGES, max_tokens=6, temperature=0, ignore_eos=True)
    assert reply.tokens[:1] == _expected(model, chat, 1)


def test_a_registered_library_is_found(model: Any, path: Path, library: Path) -> None:
    runtime.register_kernel_library(library)
    for kernels in ([], [library]):
        runner = rl.llm.load(path, threads=1, kv="float32", kernels=kernels)
        reply = runner.generate([7, 8], max_tokens=1, temperature=0, ignore_eos=True)
        assert reply.tokens == _expected(model, [7, 8], 1)


def test_the_c_interface_takes_the_library(model: Any, path: Path, library: Path) -> None:
    c = Library()
    paths = (ctypes.c_char_p * 1)(str(library).encode())
    options = c.make("rl_llm_options", threads=1, cache=1, n_kernel_libraries=1)
    options.kernel_libraries = ctypes.cast(paths, ctypes.POINTER(ctypes.c_char_p))
    llm = c.handle("rl_llm_open", str(path).encode(), ctypes.byref(options))
    greedy = generate_options(c, llm, temperature=0.0, max_tokens=6, ignores_end=1)
    reader = generate(c, "rl_llm_generate", llm, [7, 8, 9], greedy)
    assert reader.tokens[0] == _expected(model, [7, 8, 9], 6)
    c.call("rl_llm_close", llm)
    with pytest.raises(CError, match=r"no kernel for acme::snake.out"):
        c.handle("rl_llm_open", str(path).encode(), None)
    table = ctypes.CDLL(str(library)).rl_get_kernel_v1
    table.restype = ctypes.POINTER(c.types["rl_kernel_v1"])
    kernels = (ctypes.POINTER(c.types["rl_kernel_v1"]) * 1)(table(0))
    linked = c.make("rl_llm_options", threads=1, cache=1, n_kernels=1, kernels=kernels)
    llm = c.handle("rl_llm_open", str(path).encode(), ctypes.byref(linked))
    reader = generate(c, "rl_llm_generate", llm, [7, 8, 9], greedy)
    assert reader.tokens[0] == _expected(model, [7, 8, 9], 6)
    c.call("rl_llm_close", llm)
    missing = c.make("rl_llm_options", n_kernels=1)
    with pytest.raises(CError, match=r"kernels is NULL"):
        c.handle("rl_llm_open", str(path).encode(), ctypes.byref(missing))


def test_what_is_missing_or_cannot_be_used(path: Path) -> None:
    with pytest.raises(rl.LoadError, match=r"no kernel for acme::snake.out") as caught:
        rl.llm.load(path)
    assert caught.value.code is rl.Code.OPERATOR_MISSING
    text = str(caught.value)
    assert "torch.ops.acme.snake(x, 1.5)" in text and "write RUSHLIGHT_KERNEL(acme, sn" in text, (
        text
    )
    with pytest.raises(rl.LoadError, match=r"write RUSHLIGHT_KERNEL\(acme, snake_out\)"):
        rl.llm.load(path.read_bytes())
    with pytest.raises(rl.LoadError, match=r"no/such.so: the library cannot be loaded"):
        rl.llm.load(path, kernels=["no/such.so"])
    with pytest.raises(rl.LoadError, match=r"give a list of paths"):
        rl.llm.load(path, kernels="libacme.so")
    with pytest.raises(rl.LoadError, match=r"kernels=5: give a list of paths"):
        rl.llm.load(path, kernels=5)  # type: ignore[arg-type]
    with pytest.raises(rl.LoadError, match=r"no kernel for acme::snake.out"):
        rl.llm.load(path, kernels=None)
    runtime.register_kernel(SNAKE, lambda x, a: np.array(x), in_delegates=True)
    runner = rl.llm.load(path, kv="float32")
    with pytest.raises(rl.RunError, match=r"a kernel in Python runs in modules alone"):
        runner.generate([7, 8], max_tokens=2)


def test_commands_take_the_library(path: Path, library: Path) -> None:
    text = path.with_name("text.txt")
    text.write_text("the lamp was small and the light was low " * 4)
    for command in (
        ["chat", str(path), "--max-tokens", "2"],
        ["bench", str(path), "--prompt", "8", "--output", "2", "--repeat", "1"],
        ["perplexity", str(path), "--file", str(text), "--context", "16"],
    ):
        for options, is_right in (([], False), (["--kernels", str(library)], True)):
            lines = "the lamp\n/exit\n"
            done = CliRunner().invoke(app, ["llm", *command, *options], input=lines)
            assert (done.exit_code == 0) == is_right, f"{command[0]}: {done.output}"
            assert ("acme::snake.out" in done.output) != is_right, done.output
