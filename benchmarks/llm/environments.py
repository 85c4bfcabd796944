"""Peers of language models, each in a virtual environment of its own, which is made on first use.

What an environment does not have itself it sees in the one that runs the benchmark.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class MissingError(Exception):
    """A peer cannot be measured; the text says why."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment of the repository.

    Attributes:
        folder: its name; "" for the one that runs the benchmark.
        packages: what is installed in it, without dependencies: one of these is torch in places.
        variables: of the installation.
        target: of make, which makes it instead.
    """

    folder: str
    packages: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    target: str = ""


ENVIRONMENTS = {
    "": Environment(""),
    # A source distribution: llama.cpp is built for this processor, which takes minutes.
    "llamacpp": Environment(
        ".venv-llamacpp",
        ("llama-cpp-python==0.3.36", "diskcache>=5.6"),
        {"CMAKE_ARGS": "-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF"},
    ),
    "executorch": Environment(".venv-executorch", target="peer"),
    "openvino": Environment(
        ".venv-openvino-genai",
        ("openvino-genai==2026.4.1", "openvino==2026.4.1", "openvino-tokenizers==2026.4.1"),
    ),
    "onnxruntime": Environment(
        ".venv-onnxruntime-genai",
        (
            "onnxruntime-genai==0.18",
            "onnxruntime==1.31.*",
            "onnx==1.23.*",
            "onnx-ir==1.1.*",
            "protobuf>=6.31,<8",
        ),
    ),
}


def python_of(name: str) -> str:
    """The interpreter of an environment, which is made if it is missing.

    Raises:
        MissingError: it cannot be made.
    """
    environment = ENVIRONMENTS[name]
    if not environment.folder:
        return sys.executable
    folder = ROOT / environment.folder
    python = folder / "bin" / "python"
    done = folder / ".done-llm"
    if environment.target:
        if not python.exists():
            raise MissingError(f"{python} is missing: `make {environment.target}` makes it")
    elif not done.exists():
        _make(folder, environment)
        done.touch()
    return str(python)


def _make(folder: Path, environment: Environment) -> None:
    print(f"{folder.name}: install {', '.join(environment.packages)}", file=sys.stderr, flush=True)
    python = folder / "bin" / "python"
    _run([sys.executable, "-m", "venv", str(folder)])
    shared = f'import site; site.addsitedir("{sysconfig.get_path("purelib")}")\n'
    where = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    Path(where, "shared.pth").write_text(shared)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--no-deps", *environment.packages], environment.variables)


def _run(command: list[str], variables: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env={**os.environ, **(variables or {})}, capture_output=True, text=True
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise MissingError(f"{' '.join(command[:4])} …: {lines[-1] if lines else done.returncode}")
