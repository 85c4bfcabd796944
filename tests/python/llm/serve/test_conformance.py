"""ExecuTorch's own tests of servers with OpenAI's API, on ours. They want a model that says
something, and calls a tool when it is asked to, so a tiny one is trained to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from servers import serving
from tiny_model import TEMPLATE, make_model, make_tokenizer, save

import rushlight.llm
from rushlight.llm.runner import Runner
from rushlight.llm.template import ChatTemplate

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather for a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TALKS: list[tuple[str, Any, str]] = [
    ("Say hello in one word.", None, "Hello."),
    ("Count to three.", None, "one, two, three"),
    ("Reply with exactly: 你好世界 🌍 café", None, "你好世界 🌍 café"),
    ("Say hi.", None, "Hi."),
    ("What is the weather in Paris? Use the tool.", [WEATHER], CALL),
]


def _trained() -> tuple[torch.nn.Module, Any]:
    """A model that knows these talks by heart."""
    template, tokenizer, model = ChatTemplate(TEMPLATE), make_tokenizer(), make_model(64, 0.02)
    texts = []
    for question, tools, answer in TALKS:
        messages = [{"role": "user", "content": question}]
        prompt = tokenizer.encode(template.render(messages, tools=tools).text).ids
        texts.append((prompt, tokenizer.encode(f"{answer}<|end|>").ids))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(300):
        losses = []
        for prompt, answer in texts:
            labels = torch.tensor([[-100] * len(prompt) + answer])
            losses.append(model(torch.tensor([prompt + answer]), labels=labels).loss)
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss < 0.02:
            break
    assert loss < 0.1
    return model, tokenizer


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    model, tokenizer = _trained()
    path = save(model, tokenizer, tmp_path_factory.mktemp("talker") / "talker.pte")
    return rushlight.llm.load(path, threads=1)


@pytest.mark.full
@pytest.mark.interop
def test_executorchs_tests_of_servers_pass(talker: Runner, executorch_python: Path) -> None:
    folder = executorch_python.parent.parent
    pattern = "lib/python*/site-packages/executorch/examples/llm_server/conformance/test_*.py"
    tests = sorted(folder.glob(pattern))
    assert tests, f"{folder} has no {pattern}"
    with serving(talker, name="talker") as port:
        given = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_MODEL": "talker"}
        command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *map(str, tests)],
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout and "skipped" not in done.stdout, done.stdout
