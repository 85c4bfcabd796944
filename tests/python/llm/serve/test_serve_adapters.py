"""Adapters as models of the API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import NotFoundError, OpenAI
from peft_folders import Folder
from servers import serving
from typer.testing import CliRunner

import rushlight.llm
from rushlight.cli import app
from rushlight.llm.runner import Runner

ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "the lamp"}], "max_tokens": 12}


@pytest.fixture(scope="module")
def file(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapters")
    rushlight.llm.adapter(Folder(folder / "lora").write(), base=program, out=folder / "sql.ptd")
    return folder / "sql.ptd"


@pytest.fixture(scope="module")
def client(runner: Runner, file: Path) -> Iterator[OpenAI]:
    with serving(runner, adapters={"sql": runner.load_adapter(file)}) as port:
        address = f"http://127.0.0.1:{port}/v1"
        with OpenAI(base_url=address, api_key="none", max_retries=0) as client:
            yield client


def test_models_are_listed(client: OpenAI) -> None:
    models = {model.id: model for model in client.models.list().data}
    assert set(models) == {"tiny", "sql"}
    assert models["sql"].parent == "tiny"  # type: ignore[attr-defined]
    assert models["tiny"].parent is None  # type: ignore[attr-defined]
    assert client.models.retrieve("sql").id == "sql"
    with pytest.raises(NotFoundError, match="the server has 'tiny', 'sql'"):
        client.models.retrieve("law")


def test_a_request_names_its_adapter(client: OpenAI, program: Path, file: Path) -> None:
    runner = rushlight.llm.load(program, threads=1)
    adapters = {"tiny": None, "sql": runner.load_adapter(file)}
    texts = {}
    for name, own in adapters.items():
        reply = client.chat.completions.create(model=name, temperature=0, **ASKED)
        assert reply.model == name
        texts[name] = reply.choices[0].message.content
        options = {"temperature": 0, "max_tokens": 12, "adapter": own}
        assert texts[name] == runner.generate(ASKED["messages"], **options).text
        text = client.completions.create(model=name, prompt="the", temperature=0, max_tokens=12)
        assert text.choices[0].text == runner.generate("the", **options).text
        echoed = client.completions.create(
            model=name, prompt="the lamp", echo=True, logprobs=0, max_tokens=1
        )
        assert echoed.choices[0].logprobs is not None
        prompt = runner.encode("the lamp")
        told = echoed.choices[0].logprobs.token_logprobs
        assert told is not None
        expected = pytest.approx(runner.score(prompt, adapter=own), abs=1e-5)
        assert told[1 : len(prompt)] == expected
        vectors = client.embeddings.create(model=name, input=["the lamp"])
        assert vectors.model == name
    assert texts["tiny"] != texts["sql"]
    one, other = (
        client.embeddings.create(model=name, input=["the lamp"]).data[0].embedding
        for name in adapters
    )
    assert one != other
    with pytest.raises(NotFoundError, match="no model 'law'"):
        client.chat.completions.create(model="law", **ASKED)


def test_names_that_are_taken(program: Path, file: Path) -> None:
    arguments = ["llm", "serve", str(program), "--port", "0", "--name", "sql"]
    told = CliRunner().invoke(app, [*arguments, "--adapter", str(file)])
    assert told.exit_code == 1 and "the model's own id" in told.output
    told = CliRunner().invoke(app, [*arguments, "--adapter", f"x={program}"])
    assert told.exit_code == 1 and "not a .ptd data file" in told.output
