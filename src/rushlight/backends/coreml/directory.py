"""Writes and reads a folder as a single block of bytes, as ExecuTorch's Core ML delegate does.

First come the contents of all files, one after the other; then a table of files and folders in
JSON. The bytes of the table are reversed, so that a reader finds its beginning at the end of the
block. The table lists children before their folder; the last row is the folder itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE, _FOLDER = 0, 1


def flatten(folder: Path) -> bytes:
    """The bytes of a folder with all its contents; equal contents give equal bytes."""
    contents = bytearray()
    nodes: list[dict[str, Any]] = []

    def add(path: Path) -> int:
        children: dict[str, int] = {}
        offset = size = 0
        if path.is_dir():
            children = {child.name: add(child) for child in sorted(path.iterdir())}
        else:
            data = path.read_bytes()
            offset, size = len(contents), len(data)
            contents.extend(data)
        nodes.append(
            {
                "children": children,
                "dataRegion": {"offset": offset, "size": size},
                "kind": _FOLDER if path.is_dir() else _FILE,
                "name": path.name,
            }
        )
        return len(nodes) - 1

    add(folder)
    table = json.dumps({"nodes": nodes}, separators=(",", ":"), ensure_ascii=False).encode()
    return bytes(contents) + table[::-1]


def read_files(data: bytes | memoryview) -> dict[str, bytes]:
    """The files of a flattened folder: {path in it: contents}.

    Raises:
        ValueError: if the bytes are not a flattened folder.
    """
    data = bytes(data)
    try:
        table, _ = json.JSONDecoder().raw_decode(data[::-1].decode("utf-8", "replace"))
        nodes = table["nodes"]
        files: dict[str, bytes] = {}
        todo, seen = [("", len(nodes) - 1)], set()
        while todo:
            path, index = todo.pop()
            if index in seen or not 0 <= index < len(nodes):
                raise ValueError(f"the row {index} of {len(nodes)} is missing or in two folders")
            seen.add(index)
            node = nodes[index]
            if node["kind"] == _FILE:
                at, size = node["dataRegion"]["offset"], node["dataRegion"]["size"]
                if not 0 <= at <= at + size <= len(data) or path in files:
                    raise ValueError(f"the file {path!r} lies outside of the {len(data)} bytes")
                files[path] = data[at : at + size]
            for name, child in node["children"].items():
                todo.append((f"{path}/{name}" if path else name, child))
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"these bytes are not a flattened folder: {error!r}") from None
    return files
