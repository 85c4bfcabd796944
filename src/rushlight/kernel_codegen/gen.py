# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Writes the C++ that registers kernels in the runtime, from functions.yaml and custom_ops.yaml.

    python -m rushlight.kernel_codegen.gen --functions-yaml-path=FILE --install-dir=FOLDER

FOLDER gets RegisterCodegenUnboxedKernelsEverything.cpp (RegisterKernelsEverything.cpp and
RegisterKernels.h with --manual-registration), NativeFunctions.h, which declares the kernels, and
Functions.h, by which an application calls them. With --custom-ops-yaml-path it gets
RegisterSchema.cpp and RegisterCPUWrappedOps.cpp as well, which give the operators to PyTorch with
the same kernels; or, with kernels on PyTorch's tensors, RegisterCPUCustomOps.cpp. Kernels that come
with the runtime (:mod:`.own_kernels`) are in none.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torchgen
from torchgen.gen import get_custom_build_selector
from torchgen.utils import FileManager, make_file_manager

from rushlight.kernel_codegen.files import gen_custom_ops, gen_headers
from rushlight.kernel_codegen.functions import (
    ComputeFunction,
    compute_native_function_declaration,
    gen_functions_declarations,
    get_ns_grouped_kernels,
    static_dispatch,
)
from rushlight.kernel_codegen.kernels import ComputeCodegenUnboxedKernels, gen_unboxing
from rushlight.kernel_codegen.own_kernels import without_runtime_kernels
from rushlight.kernel_codegen.wrapped import gen_wrapped_ops
from rushlight.kernel_codegen.yaml_files import (
    parse_yaml,
    parse_yaml_files,
    translate_native_yaml,
)

__all__ = [
    "ComputeCodegenUnboxedKernels",
    "ComputeFunction",
    "compute_native_function_declaration",
    "gen_custom_ops",
    "gen_functions_declarations",
    "gen_headers",
    "gen_unboxing",
    "get_ns_grouped_kernels",
    "main",
    "parse_yaml",
    "parse_yaml_files",
    "static_dispatch",
    "translate_native_yaml",
]

_ATEN = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"


def _add_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "-s",
        "--source-path",
        "--source_path",
        default=str(Path(__file__).parent),
        help="a folder that has templates of the files in templates/; by default our own",
    )
    add("--functions-yaml-path", "--functions_yaml_path", help="PyTorch's operators, and kernels")
    add("--custom-ops-yaml-path", "--custom_ops_yaml_path", help="your operators, and kernels")
    add(
        "--aten-yaml-path",
        "--aten_yaml_path",
        default=str(_ATEN / "native_functions.yaml"),
        help="PyTorch's native_functions.yaml; by default the one that is installed",
    )
    add(
        "--tags-path",
        "--tags_path",
        default=str(_ATEN / "tags.yaml"),
        help="PyTorch's tags.yaml; by default the one that is installed",
    )
    add(
        "-d",
        "--install-dir",
        "--install_dir",
        default="build/generated",
        help="the folder that gets the files",
    )
    add(
        "-o",
        "--output-dependencies",
        "--output_dependencies",
        help="a file that gets the list of the files, for CMake",
    )
    add("--dry-run", "--dry_run", action="store_true", help="write no file but that list")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Writes the C++ that registers kernels")
    _add_files(parser)
    add = parser.add_argument
    add(
        "--static-dispatch-backend",
        "--static_dispatch_backend",
        nargs="*",
        help="has no effect: kernels are the CPU's",
    )
    add(
        "--op-registration-whitelist",
        "--op_registration_whitelist",
        nargs="*",
        help="the operators that are wanted, without overloads: aten::add own::f",
    )
    add(
        "--op-selection-yaml-path",
        "--op_selection_yaml_path",
        help="the operators that are wanted: selected_operators.yaml of gen_oplist",
    )
    add("--rocm", action="store_true", help="names of CUDA stand for those of ROCm")
    add("--use-aten-lib", "--use_aten_lib", action="store_true", help="tensors are PyTorch's")
    add(
        "--manual-registration",
        "--manual_registration",
        action="store_true",
        help="the application calls register_all_kernels(); no static object does it",
    )
    add(
        "--generate",
        nargs="*",
        choices=["headers", "sources"],
        default=["headers", "sources"],
        help="which files are written",
    )
    add(
        "--add-exception-boundary",
        "--add_exception_boundary",
        action="store_true",
        help="an exception of a kernel becomes an error of the run",
    )
    return parser


def _write(options: argparse.Namespace) -> FileManager:
    selector = get_custom_build_selector(
        options.op_registration_whitelist, options.op_selection_yaml_path
    )
    parsed, own = parse_yaml_files(
        tags_yaml_path=options.tags_path,
        aten_yaml_path=options.aten_yaml_path,
        native_yaml_path=options.functions_yaml_path,
        custom_ops_yaml_path=options.custom_ops_yaml_path,
        selector=selector,
        use_aten_lib=options.use_aten_lib,
    )
    if not options.use_aten_lib:
        parsed = without_runtime_kernels(parsed)
        own = without_runtime_kernels(own) if own else None
    own_functions = own.native_functions if own else []
    files = make_file_manager(options=options)
    if "headers" in options.generate:
        gen_headers(
            native_functions=parsed.native_functions,
            gen_custom_ops_header=bool(options.custom_ops_yaml_path),
            custom_ops_native_functions=own_functions,
            selector=selector,
            kernel_index=parsed.kernel_index,
            cpu_fm=files,
            use_aten_lib=options.use_aten_lib,
        )
    if "sources" in options.generate:
        gen_unboxing(
            native_functions=parsed.native_functions,
            cpu_fm=files,
            selector=selector,
            use_aten_lib=options.use_aten_lib,
            kernel_index=parsed.kernel_index,
            manual_registration=options.manual_registration,
            add_exception_boundary=options.add_exception_boundary,
        )
        if own_functions:
            gen_custom_ops(
                native_functions=own_functions,
                selector=selector,
                kernel_index=parsed.kernel_index,
                cpu_fm=files,
                rocm=options.rocm,
            )
            gen_wrapped_ops(
                native_functions=own_functions,
                selector=selector,
                kernel_index=parsed.kernel_index,
                cpu_fm=files,
            )
    return files


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the files that the command line asks for.

    Args:
        argv: the arguments; by default those of the process.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    if not Path(options.source_path, "templates").is_dir():
        parser.error(
            f"--source-path {options.source_path} has no folder templates/; leave it out to use "
            "the templates that are installed"
        )
    for path in (options.functions_yaml_path, options.custom_ops_yaml_path):
        if path and not Path(path).is_file():
            parser.error(f"there is no file {path}")
    files = _write(options)
    if options.output_dependencies:
        path = Path(options.output_dependencies).resolve()
        files.write_outputs(path.stem, str(path))


if __name__ == "__main__":
    main(sys.argv[1:])
