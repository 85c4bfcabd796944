# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Writes a functions.yaml for the operators of a program, as a start for kernels of your own.

    python -m rushlight.kernel_codegen.tools.gen_ops_def --model_file_path=MODEL.pte \\
        --output_path=functions.yaml

The names of kernels in it stand for those that you write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from rushlight.kernel_codegen.tools.yaml_util import write_entries
from rushlight.schema import program as fb
from rushlight.serialize.bundle import program_in
from rushlight.serialize.pte import read_pte


def get_operators(model_file: str) -> list[fb.Operator]:
    """The operators that a program's methods call, each once.

    Args:
        model_file: the program.
    """
    plans = read_pte(program_in(Path(model_file).read_bytes())).program.execution_plan
    found = {(op.name, op.overload): op for plan in plans for op in plan.operators}
    return list(found.values())


def dump_yaml(model_file: str, output_file: str) -> None:
    """Writes the entries of PyTorch's operators; says which others are left out.

    Args:
        model_file: the program.
        output_file: the file.
    """
    entries = []
    for operator in get_operators(model_file):
        if not operator.name.startswith("aten::"):
            print(f"Warning: {operator.name} is not PyTorch's; write its entry by hand")
            continue
        kernel = operator.name.replace("aten::", "torch::executor::")
        entries += [
            {
                "func": str(schema),
                "variants": "function",
                "dispatch": {"CPU": f"{kernel}_{schema.overload_name}"},
            }
            for schema in torch._C._jit_get_schemas_for_operator(operator.name)
            if schema.overload_name == operator.overload
        ]
    write_entries(output_file, entries)


def main(args: Sequence[Any]) -> None:
    """Writes the file that the command line asks for.

    Args:
        args: the arguments.
    """
    parser = argparse.ArgumentParser(description="Writes a start of functions.yaml")
    parser.add_argument("--output_path", required=True, help="the file")
    parser.add_argument("--model_file_path", required=True, help="the program")
    options = parser.parse_args(args)
    if not Path(options.model_file_path).is_file():
        parser.error(f"--model_file_path needs a file; there is none at {options.model_file_path}")
    dump_yaml(options.model_file_path, options.output_path)


if __name__ == "__main__":
    main(sys.argv[1:])
