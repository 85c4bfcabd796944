"""Lines of Python: which of them belong to the user."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import rushlight
from rushlight.ir.source import in_users_code, source_in


def trace(*files: str) -> str:
    return "".join(f'  File "{file}", line {i}, in f\n    x\n' for i, file in enumerate(files, 1))


@pytest.mark.parametrize(
    "file",
    ["model.py", "/home/me/rushlight/model.py", "/srv/torch/nets/model.py", "torch/model.py"],
)
def test_a_folder_of_the_user_may_have_any_name(file: str) -> None:
    assert in_users_code(file)
    library = str(Path(torch.__file__).parent / "nn" / "functional.py")
    assert source_in(trace(file, library)).file == file


@pytest.mark.parametrize(
    "file",
    [
        str(Path(torch.__file__).parent / "nn" / "modules" / "linear.py"),
        str(Path(rushlight.__file__).parent / "edge" / "recurrence.py"),
        "/usr/lib/python3/dist-packages/torch/nn/functional.py",
        "<eval_with_key>.1",
        "",
    ],
)
def test_lines_of_libraries_are_not_the_users(file: str) -> None:
    assert not in_users_code(file)
