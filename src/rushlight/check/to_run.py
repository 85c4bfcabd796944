"""What a runtime loads of a finished program that is checked."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

from rushlight.errors import Code, ExportError
from rushlight.pipeline import ExecutorchProgramManager


@contextlib.contextmanager
def to_run(manager: ExecutorchProgramManager) -> Iterator[str | bytes]:
    """What a runtime loads: the program's bytes, or, if they are many, a file that is there for as
    long as the context. It is mapped, so that weights are not in memory once more.

    Args:
        manager: the finished program.

    Raises:
        ExportError: the file cannot be written.
    """
    if not manager.is_large:
        yield manager.buffer
        return
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rushlight-"))
            path = os.path.join(folder, "program.pte")
            with open(path, "wb") as file:
                manager.write_to_file(file)
        except OSError as error:
            raise ExportError(
                f"cannot write the program to {tempfile.gettempdir()} to verify it: "
                f"{error.strerror}; make room there, set TMPDIR to another folder, or pass "
                f"verify=False",
                code=Code.ACCESS_FAILED,
            ) from error
        yield path
