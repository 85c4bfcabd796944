"""The map to Python lines as emit makes it: which paths of source files it has."""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath, PureWindowsPath

import pytest

from rushlight.emit.debug import DebugMapBuilder, _relative
from rushlight.schema.source import Source


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        (PurePosixPath("/home/me/net/model.py"), PurePosixPath("/home/me"), "net/model.py"),
        (PurePosixPath("/home/me/model.py"), PurePosixPath("/home/me"), "model.py"),
        (PurePosixPath("/home/you/net/model.py"), PurePosixPath("/home/me"), "net/model.py"),
        (PurePosixPath("/model.py"), PurePosixPath("/home/me"), "model.py"),
        (PurePosixPath("a/b/model.py"), PurePosixPath("/home/me"), "a/b/model.py"),
        (PurePosixPath("../../b/model.py"), PurePosixPath("/home/me"), "b/model.py"),
        (PurePosixPath("<string>"), PurePosixPath("/home/me"), "<string>"),
        (PureWindowsPath(r"C:\me\net\model.py"), PureWindowsPath(r"c:\me"), "net/model.py"),
        (PureWindowsPath(r"D:\you\net\model.py"), PureWindowsPath(r"C:\me"), "net/model.py"),
        (PureWindowsPath(r"D:\model.py"), PureWindowsPath(r"C:\me"), "model.py"),
        (PureWindowsPath(r"\\host\share\net\model.py"), PureWindowsPath(r"C:\me"), "net/model.py"),
    ],
    ids=str,
)
def test_paths_do_not_tell_where_they_lie(path: PurePath, folder: PurePath, expected: str) -> None:
    assert _relative(path, folder) == expected


def test_equal_paths_are_one() -> None:
    builder = DebugMapBuilder()
    for number, path in enumerate(("/x/net/model.py", "/x/other/../net/model.py")):
        builder.add("forward", f"n{number}", "aten.add", Source(path, number, "forward", "", ""))
    files = {node.line.file for node in builder.map.methods["forward"].instructions}
    assert files == {"net/model.py"}
