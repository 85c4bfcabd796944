"""`rushlight llm serve`."""

from __future__ import annotations

import importlib.util
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from servers import CHAT, ask
from tiny_model import make_model, make_tokenizer
from typer.testing import CliRunner

import rushlight.llm
from rushlight.cli import app
from rushlight.cli.llm import chat
from rushlight.llm.serve import server


def _refused(*arguments: str, **variables: str) -> str:
    result = CliRunner().invoke(app, ["llm", "serve", *arguments], env=variables)
    assert result.exit_code == 1, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_comes(program: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-m", "rushlight.cli", "llm", "serve", str(program)]
    with subprocess.Popen(
        [*command, "--port", "0", "--threads", "1", "--name", "lamp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("lamp: http://127.0.0.1:"), process.stderr.read()
        port = int(line.split("127.0.0.1:")[1].split()[0])
        status, _, body = ask(
            port, "/v1/chat/completions", {**CHAT, "model": "lamp", "max_tokens": 3}
        )
        assert status == 200 and json.loads(body)["usage"]["completion_tokens"] <= 3
        process.send_signal(end)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == (0 if end is signal.SIGINT else -signal.SIGTERM)
    assert errors == ""


def test_other_machines_need_a_key(program: Path) -> None:
    told = _refused(str(program), "--host", "0.0.0.0", "--port", "0", RUSHLIGHT_API_KEY="")
    assert "set the environment variable RUSHLIGHT_API_KEY" in told


def test_a_port_that_is_used(program: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        told = _refused(str(program), "--port", str(used.getsockname()[1]))
    assert "cannot listen on 127.0.0.1 port" in told and "--port" in told


def test_an_address_that_is_not_ours(program: Path) -> None:
    assert "cannot listen on 192.0.2.1 port" in _refused(str(program), "--host", "192.0.2.1")


@pytest.fixture(scope="module")
def mute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program without a tokenizer."""
    path = tmp_path_factory.mktemp("mute") / "mute.pte"
    rushlight.llm.export(make_model(), batch=8, verify=False).save(path, quiet=True)
    return path


def test_a_program_without_a_tokenizer(mute: Path) -> None:
    assert "mute.pte has no tokenizer" in _refused(str(mute), "--port", "0")


def test_a_tokenizer_and_a_template_from_files(
    mute: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tokenizer, template = mute, tmp_path / "tokenizer.json", tmp_path / "t.jinja"
    make_tokenizer().save(str(tokenizer))
    template.write_text("{% for m in messages %}ä{{ m.content }}{% endfor %}", encoding="utf-8")
    runners: list[Any] = []
    monkeypatch.setattr(server, "serve", lambda runner, settings, sock: runners.append(runner))
    monkeypatch.setattr(chat, "Talk", lambda runner, *_: runners.append(runner))
    options = ["--tokenizer", str(tokenizer), "--chat-template", str(template)]
    for command in (["serve", str(path), "--port", "0"], ["chat", str(path)]):
        result = CliRunner().invoke(app, ["llm", *command, *options], input="")
        assert result.exit_code == 0, result.output
        runner = runners.pop()
        said = runner.encode_chat([{"role": "user", "content": "the"}])
        assert runner.decode(said) == "äthe"
    told = _refused(str(path), "--port", "0", *options[:2], "--chat-template", str(tmp_path / "no"))
    assert "--chat-template: cannot read" in told


def test_a_package_that_is_missing(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def without(name: str, *given: Any) -> Any:
        return None if name == "uvicorn" else find(name, *given)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    told = _refused(str(program))
    assert "a server needs uvicorn" in told and "pip install 'rushlight[serve]'" in told
