# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Merges two files of kernels: what the first has hides the second's entry of that operator.

    python -m rushlight.kernel_codegen.tools.merge_yaml --functions_yaml_path=FILE \\
        --fallback_yaml_path=FILE --output_dir=FOLDER     # writes FOLDER/merged.yaml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rushlight.kernel_codegen.tools.yaml_util import write_entries


def _operator(entry: Mapping[str, Any]) -> str:
    """The operator's name with its namespace and overload."""
    name = str(entry["op"] if "op" in entry else entry["func"].split("(")[0])
    return name if "::" in name else f"aten::{name}"


def _entries(path: str) -> dict[str, Mapping[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return {_operator(entry): entry for entry in yaml.safe_load(file) or ()}


def merge(functions_yaml_path: str, fallback_yaml_path: str | None, output_dir: str) -> None:
    """Writes merged.yaml.

    Args:
        functions_yaml_path: the file whose entries are all taken.
        fallback_yaml_path: the file that has the entries of other operators, if it exists.
        output_dir: the folder that gets merged.yaml.
    """
    entries = _entries(functions_yaml_path)
    if fallback_yaml_path is not None and Path(fallback_yaml_path).exists():
        entries |= {k: e for k, e in _entries(fallback_yaml_path).items() if k not in entries}
    write_entries(Path(output_dir) / "merged.yaml", list(entries.values()))


def main(argv: Sequence[str]) -> None:
    """Merges the files that the command line names.

    Args:
        argv: the arguments.
    """
    parser = argparse.ArgumentParser(description="Merges two files of kernels")
    parser.add_argument("--functions-yaml-path", "--functions_yaml_path", required=True)
    parser.add_argument("--fallback-yaml-path", "--fallback_yaml_path")
    parser.add_argument("--output-dir", "--output_dir", required=True)
    options = parser.parse_args(argv)
    if not Path(options.functions_yaml_path).is_file():
        parser.error(f"there is no file {options.functions_yaml_path}")
    merge(options.functions_yaml_path, options.fallback_yaml_path, options.output_dir)


if __name__ == "__main__":
    main(sys.argv[1:])
