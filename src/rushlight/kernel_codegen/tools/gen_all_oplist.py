# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Merges several selected_operators.yaml into one.

    python -m rushlight.kernel_codegen.tools.gen_all_oplist --output_dir=FOLDER \\
        --model_file_list_path=@LIST       # LIST has a file or its folder on each line

A single file may stand in place of `@LIST`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from torchgen.selective_build.selector import SelectiveBuilder, combine_selective_builders

from rushlight.files import write_text

_CONTENT = (
    "build_features",
    "custom_classes",
    "et_kernel_metadata",
    "include_all_non_op_selectives",
    "include_all_operators",
    "kernel_metadata",
    "operators",
)
_BUCK = re.compile(
    r"/.*/buck-out/.*/(fbsource|fbcode)/[0-9a-f]*/(.*)/__(.*)_et_oplist__/out/"
    r"selected_operators\.yaml"
)


def throw_if_any_op_includes_overloads(selective_builder: SelectiveBuilder) -> None:
    """Refuses operators that stand for all their overloads.

    Args:
        selective_builder: the operators.

    Raises:
        ValueError: there are such operators; says which.
    """
    names = [name for name, op in selective_builder.operators.items() if op.include_all_overloads]
    if names:
        raise ValueError(
            f"{', '.join(names)} stand for all overloads; name the overloads, or pass "
            "--allow-include-all-overloads"
        )


def resolve_model_file_path_to_buck_target(model_file_path: str) -> str:
    """The file, or the target of Buck that wrote it.

    Args:
        model_file_path: the file.
    """
    path = str(Path(model_file_path).resolve(strict=True))
    match = _BUCK.match(path)
    return f"{match[1]}//{match[2]}:{match[3]}" if match else path


def _in_list(path: str, option: str) -> list[str]:
    """The words of the file that an argument "@FILE" names."""
    if not path.startswith("@"):
        raise AssertionError(f"--{option} is neither a file nor @LIST, a list of files: {path}")
    return Path(path[1:]).read_text(encoding="utf-8").split()


def _selected(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if content is not None and not isinstance(content, dict):
        raise ValueError(f"{path} is no selected_operators.yaml: it has no fields")
    return content or {}


def _listed(path: str) -> list[dict[str, Any]]:
    """The contents of all files of a list, without empty ones."""
    files = _in_list(path, "model_file_list_path")
    if not files:
        raise AssertionError(
            f"{path[1:]} names no file; write a selected_operators.yaml by gen_oplist first"
        )
    contents = []
    for name in files:
        file = Path(name) if Path(name).is_file() else Path(name) / "selected_operators.yaml"
        if not file.is_file():
            raise AssertionError(f"there is no file {name}, nor {file}")
        content = _selected(file)
        if any(content.get(part) for part in _CONTENT):
            for operator in (content.get("operators") or {}).values():
                operator["debug_info"] = [resolve_model_file_path_to_buck_target(str(file))]
            contents.append(content)
    return contents


def _check_not_overlapping(contents: Iterable[Mapping[str, Any]]) -> None:
    sources: dict[str, Sequence[str]] = {}
    for content in contents:
        for name, operator in (content.get("operators") or {}).items():
            if name in sources:
                first, second = (
                    ", ".join(map(str, of)) for of in (sources[name], operator["debug_info"])
                )
                raise ValueError(
                    f"Operator {name} is used in 2 models: {first} and {second}; leave it out of "
                    "one, or do not pass --check-ops-not-overlapping"
                )
            sources[name] = operator.get("debug_info") or ["?"]


def _check_one_registry(targets: str | None) -> None:
    if targets and len(targets) > 1:
        names = _in_list(targets, "DEBUG-ONLY-check-prim-ops")
        if len(names) > 1:
            raise ValueError(
                f"several targets register the runtime's own operators: {', '.join(names)}; "
                "depend on one of them alone"
            )


def main(argv: Sequence[Any]) -> None:
    """Writes selected_operators.yaml into the folder that the command line names.

    Args:
        argv: the arguments.
    """
    parser = argparse.ArgumentParser(description="Merges lists of operators")
    add = parser.add_argument
    add("--output-dir", "--output_dir", required=True, help="the folder that gets the file")
    add(
        "--model-file-list-path",
        "--model_file_list_path",
        required=True,
        help="a selected_operators.yaml, or @LIST of such files",
    )
    add(
        "--allow-include-all-overloads",
        "--allow_include_all_overloads",
        action="store_true",
        help="an operator may stand for all its overloads",
    )
    add(
        "--check-ops-not-overlapping",
        "--check_ops_not_overlapping",
        action="store_true",
        help="refuse an operator that two files have",
    )
    add(
        "--DEBUG-ONLY-check-prim-ops",
        "--DEBUG_ONLY_check_prim_ops",
        help="@LIST of targets that register the runtime's own operators; refuse several",
    )
    options = parser.parse_args(argv)
    _check_one_registry(options.DEBUG_ONLY_check_prim_ops)
    path = options.model_file_list_path
    contents = [_selected(Path(path))] if Path(path).is_file() else _listed(path)
    if options.check_ops_not_overlapping:
        _check_not_overlapping(contents)
    builders = [SelectiveBuilder.from_yaml_dict(content) for content in contents]
    merged = reduce(combine_selective_builders, builders or [SelectiveBuilder.from_yaml_dict({})])
    if not options.allow_include_all_overloads:
        throw_if_any_op_includes_overloads(merged)
    text = yaml.safe_dump(merged.to_dict(), default_flow_style=False)
    write_text(Path(options.output_dir) / "selected_operators.yaml", text)


if __name__ == "__main__":
    main(sys.argv[1:])
