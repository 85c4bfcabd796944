"""Language models by ExecuTorch's C++ interface: TextLLMRunner, tokenizers, Sampler.

The texts must be those of our own runner, the tokens those of the library that a tokenizer is of.
"""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

import rushlight.llm
import rushlight.pipeline
from rushlight.llm.tokenizer import compile
from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests" / "python" / "llm")]
from tiny_model import make_model, make_tokenizer, save  # noqa: E402

FOLDER = ROOT / "compat" / "executorch"
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
PROMPT = "the lamp was"
pytestmark = pytest.mark.full


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def text(shared_files: SharedFiles, prefix: Path) -> Path:
    """The built application."""

    def fill(folder: Path) -> None:
        build = folder / "build"
        source = Path(__file__).resolve().parent / "llm"
        for command in (
            (
                *(CMAKE, "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
                *(f"-DEXECUTORCH_FOLDER={FOLDER}", f"-Drushlight_DIR={prefix}/lib/cmake/rushlight"),
            ),
            (CMAKE, "--build", build, "--parallel", "2"),
        ):
            done = _run(*command)
            assert done.returncode == 0, done.stdout + done.stderr

    return shared_files.folder("compat_llm", fill) / "build" / "text"


def _lines(text: Path, *arguments: object, code: int = 0) -> dict[str, str]:
    """What the application prints for the test, by the first word of each line."""
    done = _run(text, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    lines = [line[1:] for line in done.stdout.splitlines() if line.startswith("=")]
    return dict(line.partition(" ")[::2] for line in lines) | {"log": done.stderr}


def _replaced(line: str) -> str:
    """A text of single tokens, whose characters may be incomplete."""
    return bytes.fromhex(line).decode(errors="replace")


def _text(line: str) -> str:
    return bytes.fromhex(line).decode()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return make_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(make_model(context=256), tokenizer, tmp_path_factory.mktemp("compat") / "model.pte")


@pytest.fixture(scope="module")
def xnnpack(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of the form that ExecuTorch's runner takes."""
    path = tmp_path_factory.mktemp("compat") / "xnnpack.pte"
    return save(make_model(context=256), tokenizer, path, backend="xnnpack", context=256)


@pytest.mark.parametrize(
    ("form", "source"),
    [("model", "program"), ("model", "table"), ("model", "none"), ("xnnpack", "table")],
)
def test_greedy_texts_are_our_runners(
    request: pytest.FixtureRequest,
    text: Path,
    tokenizer: Tokenizer,
    tmp_path: Path,
    form: str,
    source: str,
) -> None:
    model: Path = request.getfixturevalue(form)
    (tmp_path / "tokenizer.table").write_bytes(compile(tokenizer))
    path = {"program": model, "table": tmp_path / "tokenizer.table", "none": "-"}[source]
    got = _lines(text, "generate", model, path, 12, PROMPT, code=2)
    runner = rushlight.llm.load(model, threads=1)
    session = runner.session()
    first = session.generate(PROMPT, max_tokens=12, temperature=0.0)
    second = session.generate(" and", max_tokens=12, temperature=0.0)
    whole = runner.generate(
        runner.encode(PROMPT) + runner.encode(" and"), max_tokens=12, temperature=0.0
    )
    assert _text(got["first"]) == first.text and first.text
    assert _text(got["second"]) == second.text
    assert _text(got["echoed"]) == PROMPT + first.text
    assert _text(got["prefilled"]) == whole.text
    assert first.text.startswith(_text(got["stopped"])) and got["stopped"] != got["first"]
    assert got["counts"] == f"{len(runner.encode(PROMPT))} {len(first.tokens)}"
    assert got["short"] == "3" and got["error"] == "Error::InvalidArgument"
    if source != "none":
        assert got["context"] == "256" and got["end"] == "0"


def test_a_runner_of_parts(text: Path, xnnpack: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.table").write_bytes(compile(tokenizer))
    got = _lines(text, "parts", xnnpack, tmp_path / "tokenizer.table", 12, PROMPT, code=2)
    runner = rushlight.llm.load(xnnpack, threads=1)
    first = runner.generate(PROMPT, max_tokens=12, temperature=0.0)
    assert _replaced(got["first"]) == first.text
    assert got["counts"] == f"{len(runner.encode(PROMPT))} {len(first.tokens)}"
    assert got["steps"] == str(len(first.tokens))  # one for the prompt, one for each but the first
    both = runner.encode(PROMPT) + runner.encode(" and")
    whole = runner.generate(both, max_tokens=12, temperature=0.0)
    assert _replaced(got["prefilled"]) == whole.text
    assert got["error"] == "Error::InvalidArgument"  # longer than the context


class _Integers(torch.nn.Module):
    def forward(self, tokens: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return tokens + position


def test_logits_that_are_no_numbers_of_floating_point_are_refused(
    text: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.table").write_bytes(compile(tokenizer))
    args = (torch.zeros(1, 4, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    length = torch.export.Dim("length", min=2, max=64)
    captured = torch.export.export(_Integers(), args, dynamic_shapes=({1: length}, None))
    facts = {"get_max_seq_len": 64, "use_kv_cache": True}
    edge = rushlight.pipeline.to_edge(captured, constant_methods=facts)
    (tmp_path / "m.pte").write_bytes(edge.to_executorch().buffer)
    got = _lines(text, "parts", tmp_path / "m.pte", tmp_path / "tokenizer.table", 2, PROMPT, code=2)
    assert got["error"] == "Error::InvalidProgram"
    assert "returns logits in float, half or bfloat16, but this one returns" in got["log"]
    assert "of type Long" in got["log"]


def test_what_is_no_language_model_is_refused(text: Path, model: Path, tmp_path: Path) -> None:
    rushlight.export(torch.nn.Linear(3, 2), (torch.zeros(1, 3),)).save(
        tmp_path / "linear.pte", quiet=True
    )
    for path, reason in (
        (tmp_path / "linear.pte", "no tokenizer: export it with one"),
        (tmp_path / "none.pte", "no such file"),
    ):
        assert reason in _lines(text, "generate", path, "-", 3, "a", code=4)["log"]
    (tmp_path / "tokenizer.json").write_text("{}")
    log = _lines(text, "generate", model, tmp_path / "tokenizer.json", 3, "a", code=3)["log"]
    assert "rushlight.llm.tokenizer.compile" in log


def test_tokens_are_the_librarys(
    text: Path, model: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.table").write_bytes(compile(tokenizer))
    said = "the lamp <|user|> äöü 日本"
    for path in (model, tmp_path / "tokenizer.table"):
        got = _lines(text, "tokens", path, said)
        tokens = [int(token) for token in got["tokens"].split()]
        assert tokens == tokenizer.encode(said).ids
        assert _text(got["each"]) == _text(got["whole"]) == said
        assert got["ends"].split()[2] == str(tokenizer.get_vocab_size())
    (tmp_path / "cut.table").write_bytes(compile(tokenizer)[:-100])
    assert _run(text, "tokens", tmp_path / "cut.table", said).returncode == 3


def _write_llama2c(path: Path, pieces: list[tuple[bytes, float]]) -> Path:
    longest = max(len(piece) for piece, _ in pieces)
    data = struct.pack("<4i", len(pieces), 1, 2, longest)
    for piece, score in pieces:
        data += struct.pack("<fi", score, len(piece)) + piece
    path.write_bytes(data)
    return path


def _merged(pieces: list[tuple[bytes, float]], text: str) -> list[int]:
    """The tokens by the rule: the pair with the best score is joined, until none is left."""
    numbers = {piece: i for i, (piece, _) in reversed(list(enumerate(pieces)))}
    tokens = [numbers[b" "]]
    for character in text:
        encoded = character.encode()
        tokens += [numbers[encoded]] if encoded in numbers else [byte + 3 for byte in encoded]
    while True:
        joined = [pieces[a][0] + pieces[b][0] for a, b in pairwise(tokens)]
        found = [(pieces[numbers[j]][1], -i) for i, j in enumerate(joined) if j in numbers]
        if not found:
            return tokens
        at = -max(found)[1]
        tokens[at : at + 2] = [numbers[joined[at]]]


PIECES: list[tuple[bytes, float]] = [
    *((b"<unk>", 0.0), (b"<s>", 0.0), (b"</s>", 0.0)),
    *((f"<0x{byte:02X}>".encode(), 0.0) for byte in range(256)),
    *((bytes([letter]), -100.0) for letter in b" abcdefghijklmnopqrstuvwxyz"),
    *(("ä".encode(), -100.0), (b" t", -1.0), (b"he", -2.0), (b" the", -3.0), (b"la", -4.0)),
    *((b" a", -5.0), (b"an", -6.0), (b"and", -7.0), (b" and", -8.0), (b"aa", -9.0), (b"aaa", -9.0)),
]


@pytest.mark.parametrize("said", ["the lamp and the lane", "aaaaaaa", "ä日 x", "theand"])
def test_tokens_of_llama2c(text: Path, tmp_path: Path, said: str) -> None:
    path = _write_llama2c(tmp_path / "tokenizer.bin", PIECES)
    got = _lines(text, "tokens", path, said)
    assert [int(token) for token in got["tokens"].split()] == _merged(PIECES, said)
    assert _text(got["each"]) == _text(got["whole"]) == said
    assert got["ends"] == f"1 2 {len(PIECES)}" and got["wrapped"].startswith("1 2 ")


@pytest.mark.interop
@pytest.mark.parametrize("said", ["the lamp and the lane", "aaaaaaa", "theand"])
def test_tokens_of_llama2c_are_those_of_its_library(
    text: Path, tmp_path: Path, executorch_python: Path, said: str
) -> None:
    path = _write_llama2c(tmp_path / "tokenizer.bin", PIECES)
    script = (
        "import sys; from pytorch_tokenizers import pytorch_tokenizers_cpp as cpp\n"
        "made = cpp.Llama2cTokenizer(); made.load(sys.argv[1])\n"
        "print(*made.encode(sys.argv[2], 1, 1))\n"
    )
    done = _run(executorch_python, "-c", script, path, said)
    assert done.returncode == 0, done.stderr
    expected = [int(word) for word in done.stdout.split()]
    got = _lines(text, "tokens", path, said)
    assert [1, *(int(token) for token in got["tokens"].split()), 2] == expected


def test_damaged_tokenizers_of_llama2c(text: Path, tmp_path: Path) -> None:
    data = _write_llama2c(tmp_path / "tokenizer.bin", PIECES).read_bytes()
    for name, damaged in (
        ("cut.bin", data[:38]),
        ("head.bin", data[:10]),
        ("many.bin", struct.pack("<4i", 1 << 30, 1, 2, 5) + data[16:]),
        ("negative.bin", struct.pack("<4i", 3, 1, 2, 5) + struct.pack("<fi", 0.0, -5)),
    ):
        (tmp_path / name).write_bytes(damaged)
        assert _run(text, "tokens", tmp_path / name, "a").returncode == 3


def _draw(temperature: float, topp: float, state: int, count: int) -> list[int]:
    """Tokens by the definition: xorshift64*, and the most probable tokens with `topp`."""
    mask, tokens = (1 << 64) - 1, []
    for _ in range(count):
        logits = [0.1 * k / temperature for k in range(32)]
        weights = [math.exp(logit - logits[-1]) for logit in logits]
        order = sorted(range(32), key=lambda k: -weights[k])
        if not 0 < topp < 1:
            order = list(range(32))
        kept: list[int] = []
        total = 0.0
        for token in order:
            kept.append(token)
            total += weights[token] / sum(weights)
            if 0 < topp < 1 and total > topp:
                break
        state ^= state >> 12
        state ^= (state << 25) & mask
        state ^= state >> 27
        coin = (((state * 0x2545F4914F6CDD1D) & mask) >> 40) / 2**24 * total
        for token in kept:
            coin -= weights[token] / sum(weights)
            if coin < 0:
                break
        tokens.append(token)
    return tokens


@pytest.mark.parametrize(("temperature", "topp"), [(1.0, 0.9), (0.5, 0.3), (2.0, 1.0)])
def test_the_sampler_draws_what_its_definition_says(
    text: Path, temperature: float, topp: float
) -> None:
    got = _lines(text, "sample", temperature, topp, 42, 200)["tokens"].split()
    assert [int(token) for token in got] == _draw(temperature, topp, 42, 200)
    assert _lines(text, "sample", 0, topp, 42, 3)["tokens"] == "31 31 31"


def _headers() -> list[Any]:
    folder = FOLDER / "include"
    llm = folder / "executorch" / "extension" / "llm"
    return sorted([*llm.rglob("*.h"), *(folder / "pytorch").rglob("*.h")])


@pytest.mark.parametrize("header", _headers(), ids=lambda header: header.name)
def test_each_header_compiles_alone(tmp_path: Path, header: Path) -> None:
    include = FOLDER / "include"
    (tmp_path / "rushlight").symlink_to(ROOT / "cpp")
    source = tmp_path / "header.cpp"
    source.write_text(f"#include <{header.relative_to(include)}>\n")
    c10 = include / "executorch" / "runtime" / "core" / "portable_type" / "c10"
    flags = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"]
    done = _run("g++", *flags, "-fsyntax-only", f"-I{include}", f"-I{c10}", f"-I{tmp_path}", source)
    assert done.returncode == 0, done.stderr


def test_what_has_no_counterpart_says_what_to_use(tmp_path: Path) -> None:
    include = FOLDER / "include"
    (tmp_path / "rushlight").symlink_to(ROOT / "cpp")
    source = tmp_path / "multimodal.cpp"
    source.write_text(
        "#include <executorch/extension/llm/runner/multimodal_runner.h>\n"
        'auto runner = executorch::extension::llm::create_multimodal_runner("m.pte", nullptr);\n'
    )
    flags = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fsyntax-only"]
    c10 = include / "executorch" / "runtime" / "core" / "portable_type" / "c10"
    done = _run("g++", *flags, f"-I{include}", f"-I{c10}", f"-I{tmp_path}", source)
    assert done.returncode != 0 and "create_text_llm_runner()" in done.stderr
