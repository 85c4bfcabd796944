"""The examples do what they say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import rushlight as rl
from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def _run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert not re.search(r"Failed to load|deprecated|Warning", done.stderr), done.stderr
    return done.stdout


def test_staged_api(tmp_path: Path) -> None:
    output = _run(sys.executable, EXAMPLES / "staged_api.py", folder=tmp_path)
    assert "aten.relu" not in output
    numbers = [[float(n) for n in re.findall(r"-?\d\.?", line)] for line in output.splitlines()]
    assert numbers[-2:] == [[1, -2, 3], [2, -4, 6]]


def test_delegation(tmp_path: Path) -> None:
    output = _run(sys.executable, EXAMPLES / "delegation.py", folder=tmp_path)
    assert "%1 = sin %0 : 3\n" in output
    assert "1: the payload, 1 delegate, as eager" in output
    assert "2: one delegate, called twice, as eager" in output
    assert "3: 2 delegates, aten.sub.Tensor stays, as eager" in output
    assert "  aten.sub.Tensor: it has no instruction for aten.sub.Tensor" in output


def test_semantic_search_finds_answers_and_agrees_with_eager(tmp_path: Path) -> None:
    output = _run(sys.executable, EXAMPLES / "semantic_search.py", folder=tmp_path)
    answers = output.split("What causes the tides?")[1].splitlines()[1:4]
    assert "moon pulls the sea" in answers[0]
    assert re.search(r"same order of all \d+ lines +yes", output)
    difference = re.search(r"greatest difference from PyTorch +(\S+)", output)
    assert difference is not None and float(difference[1]) < 1e-4


def test_cpp_consumer_builds_against_an_installed_rushlight(tmp_path: Path) -> None:
    cmake = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
    build, prefix, consumer = ROOT / "build" / "dev", tmp_path / "prefix", tmp_path / "consumer"
    assert (build / "CMakeCache.txt").exists(), "run `make ext` first"
    _run(cmake, "--install", build, "--prefix", prefix, folder=tmp_path)
    _run(
        *(cmake, "-S", EXAMPLES / "cpp_consumer", "-B", consumer),
        *(f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"),
        folder=tmp_path,
    )
    _run(cmake, "--build", consumer, folder=tmp_path)

    model = torch.nn.Linear(3, 2).eval()
    rl.export(model, (torch.ones(1, 3),)).save(tmp_path / "model.pte", quiet=True)
    output = _run(consumer / "consumer", "model.pte", "1", "2", "-0.5", folder=tmp_path)
    expected = model(torch.tensor([1.0, 2.0, -0.5])).tolist()
    assert [float(n) for n in output.split()] == pytest.approx(expected, abs=1e-5)

    (tmp_path / "broken.pte").write_bytes(b"not a program")
    refused = subprocess.run(
        [consumer / "consumer", "broken.pte", "1"], cwd=tmp_path, capture_output=True, check=False
    )
    assert refused.returncode == 1 and refused.stderr.strip()


@pytest.fixture(scope="module")
def nano(shared_files: SharedFiles) -> tuple[Path, str]:
    """The file that examples/llm/nano_gpt.py trains, and what it prints."""

    def fill(folder: Path) -> None:
        script = EXAMPLES / "llm" / "nano_gpt.py"
        path = folder / "nano.pte"
        output = _run(sys.executable, script, "--iterations", "70", "--output", path, folder=folder)
        (folder / "printed.txt").write_text(output)

    folder = shared_files.folder("nano_gpt", fill)
    return folder / "nano.pte", (folder / "printed.txt").read_text()


def test_a_nano_gpt_learns_and_runs_in_cpp(nano: tuple[Path, str]) -> None:
    path, output = nano
    loss = re.match(r"70 iterations in .* s, loss (\S+)", output)
    assert loss is not None and float(loss[1]) < 3
    story = ROOT / "build" / "dev" / "tests" / "cpp" / "llm_story"
    assert story.exists(), "run `make ext` first"
    [line] = [line for line in output.splitlines() if line.startswith("Bread rises")]
    told = _run(story, path, "Bread rises", folder=path.parent)
    assert len(line) > 20 and told.startswith(line)


def test_a_chat_over_documents(nano: tuple[Path, str], tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "bees.md").write_text("Bees dance.\n\nA queen bee lays eggs in spring.\n")
    (tmp_path / "sub" / "tides.txt").write_text("The moon pulls the sea, which makes tides.\n")
    (tmp_path / "notes.bin").write_bytes(b"tides \xff")
    asked = ["--question", "When do queens lay eggs?", "--question", "What makes a tide?"]
    asked += ["--question", "Why?", "--tokens", "5"]
    script = EXAMPLES / "llm" / "documents.py"
    output = _run(sys.executable, script, nano[0], tmp_path, *asked, folder=tmp_path)
    sources = re.findall(r"^from (.*)$", output, re.MULTILINE)
    assert sources == ["bees.md", "sub/tides.txt, bees.md", "no document"]


def test_documents_by_embeddings(nano: tuple[Path, str], tmp_path: Path) -> None:
    texts = {"bees.md": "Bees dance.", "tides.md": "The moon pulls the sea.", "eggs.md": "Eggs."}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    question, file = "What makes a tide?", ROOT / "tests" / "golden" / "llm" / "v1.pte"
    asked = [nano[0], tmp_path, "--embedder", file, "--question", question, "--tokens", "1"]
    output = _run(sys.executable, EXAMPLES / "llm" / "documents.py", *asked, folder=tmp_path)
    vectors = rl.llm.load(file).embed([*texts.values(), question])
    near = dict(zip(texts, vectors[:-1] @ vectors[-1], strict=True))
    best = sorted((name for name in near if near[name] > 0), key=lambda name: -near[name])
    assert output.startswith(f"from {', '.join(best)}\n") and len(best) > 1


def test_facts_become_json(nano: tuple[Path, str], tmp_path: Path) -> None:
    script = EXAMPLES / "llm" / "extraction.py"
    text = "Ada ordered 3 lamps for Tuesday."
    output = _run(sys.executable, script, nano[0], text, folder=tmp_path)
    facts, _, last = output.strip().rpartition("\n")
    order = json.loads(facts)
    assert list(order) == ["customer", "items", "day"]
    assert all(isinstance(item["count"], int) for item in order["items"])
    saved = re.fullmatch(r"(\d+) tokens in (\d+) calls of the model", last)
    assert saved is not None and int(saved[2]) < int(saved[1])


def test_two_agents_share_a_briefing(nano: tuple[Path, str], tmp_path: Path) -> None:
    script = EXAMPLES / "llm" / "two_agents.py"
    about = EXAMPLES / "data" / "almanac.txt"
    output = _run(sys.executable, script, nano[0], "--about", about, folder=tmp_path)
    roles = re.findall(r"^(\w+): ", output, re.MULTILINE)
    assert roles == ["writer", "editor"] * 2
    reused = re.search(r"^(\d+) of (\d+) tokens of prompts were in the cache", output, re.MULTILINE)
    assert reused is not None and int(reused[1]) > 0.8 * int(reused[2])


@pytest.mark.full
@pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("javac") is None,
    reason="builds C++ and Java: needs cmake and a JDK on PATH",
)
def test_an_own_operator_from_python_to_c_and_java(tmp_path: Path) -> None:
    script = EXAMPLES / "own_operator" / "example.py"
    output = _run(sys.executable, script, "--folder", "f", "--iterations", "30", folder=tmp_path)
    assert re.search(r"^C: the same bits as Python, \S+ us$", output, re.MULTILINE)
    assert re.search(r"^Java: the same bits as Python, \S+ us$", output, re.MULTILINE)
    difference = re.search(r"difference from the decomposed form: (\S+)", output)
    assert difference is not None and float(difference[1]) < 1e-4
    sizes = re.findall(r"^(?:own|decomposed): .* app ([\d,]+) bytes$", output, re.MULTILINE)
    assert len(sizes) == 2 and all(int(size.replace(",", "")) < 1_000_000 for size in sizes)
