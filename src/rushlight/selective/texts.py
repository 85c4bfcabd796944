"""The texts of the C++ files that a selective build generates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from rushlight.selective.products import Products
from rushlight.selective.sources import Sources
from rushlight.selective.uses import CPU, XNNPACK, Uses

_HEAD = "// Written for a selective build of Rushlight from its programs; do not edit.\n"
# The names of dtypes in cpp/core/dtype.h, where it is not that of torch with a capital letter.
_DTYPES = {
    "uint8": "UInt8", "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64",
    "float16": "Float16", "float32": "Float32", "float64": "Float64", "complex64": "Complex64",
    "complex32": "Complex32", "complex128": "Complex128", "bool": "Bool", "bfloat16": "BFloat16",
    "float8_e5m2": "Float8E5M2", "float8_e4m3fn": "Float8E4M3FN",
    "float8_e5m2fnuz": "Float8E5M2FNUZ", "float8_e4m3fnuz": "Float8E4M3FNUZ",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "bits16": "Bits16",
}  # fmt: skip


def kernels_text(uses: Uses, sources: Sources, name: str) -> str:
    """`kernels.cpp`: the table of kernels."""
    rows = []
    for operator, calls in sorted(uses.operators.items()):
        if operator in uses.own:
            continue
        row = sources.kernels[operator]
        for key in sorted({call.key(row.signature.endswith("=")) for call in calls}):
            head = f'    {{"{operator}", "{row.signature}", kernels::{row.function}'
            # A call without tensors has no key; it fits every kernel of its name.
            rows.append(f"{head}}}," if key == "v1/" else f'{head},\n     "{key}"}},')
    table = ["constexpr Kernel kKernels[] = {", *rows, "};"] if rows else []
    add = "return table.add(kKernels);" if rows else "(void)table;\n  return {};"
    return "\n".join(
        [
            _HEAD.rstrip(),
            f'#include "{name}.h"',
            '#include "rushlight/kernels/portable/declarations.h"',
            '#include "rushlight/kernels/portable/portable.h"',
            "",
            "namespace rushlight {",
            "namespace {",
            "",
            *table,
            "",
            "}  // namespace",
            "",
            f"Status register_portable_kernels(KernelTable& table) {{\n  {add}\n}}",
            "",
            "}  // namespace rushlight",
            "",
            f"const rushlight::KernelTable* {name}::kernels() {{",
            "  static rushlight::KernelTable table;",
            "  static const bool filled = rushlight::register_portable_kernels(table).ok();",
            "  return filled ? &table : nullptr;",
            "}",
            "",
        ]
    )


def backends_text(backends: Collection[str], name: str, module: bool) -> str:
    """`backends.cpp`: the table of backends; `module` says whether there are files."""
    includes, made, added = [], [], []
    if CPU in backends:
        includes.append('#include "rushlight/backends/cpu/cpu_backend.h"')
        made.append("  static CpuBackend cpu;")
        added.append("  RL_TRY(table.add(CpuBackend::kId, &cpu));")
    if XNNPACK in backends:
        includes.append('#include "rushlight/backends/xnnpack/xnnpack_backend.h"')
        if module:
            includes.append('#include "rushlight/module/files/desktop_files.h"')
        made.append(f"  static XnnpackBackend xnnpack({'&desktop_files()' if module else ''});")
        if not module:
            made[-1] = "  static XnnpackBackend xnnpack;"
        added.append("  RL_TRY(table.add(XnnpackBackend::kId, &xnnpack));")
    parameter = "BackendTable& table" if added else "BackendTable&"
    return "\n".join(
        [
            _HEAD.rstrip(),
            f'#include "{name}.h"',
            *includes,
            "",
            "namespace rushlight {",
            "",
            f"Status register_default_backends({parameter}) {{",
            *made,
            *added,
            "  return {};",
            "}",
            "",
            "const BackendTable* default_backends() {",
            "  static BackendTable table;",
            "  static const bool filled = register_default_backends(table).ok();",
            "  return filled && table.size() > 0 ? &table : nullptr;",
            "}",
            "",
            "}  // namespace rushlight",
            "",
            f"const rushlight::BackendTable* {name}::backends() {{",
            "  return rushlight::default_backends();",
            "}",
            "",
        ]
    )


def selection_text(
    uses: Uses, dtypes: Iterable[str], products: Products, isa: str, loops_isa: str
) -> str:
    """`rushlight_selection.h`; see cpp/kernel/selection.h."""
    lines = [_HEAD.rstrip(), "#pragma once", ""]
    if XNNPACK not in uses.backends:
        lines.append(
            "#define RL_SELECTED_NODES(X)" + "".join(f" X({k})" for k in sorted(uses.nodes))
        )
        lines.append(
            "#define RL_SELECTED_TILE_OPS(X)" + "".join(f" X({op})" for op in sorted(uses.tile_ops))
        )
        flags = [str(kind in uses.weights).lower() for kind in ("nibbles", "row_groups")]
        lines.append(f"#define RL_SELECTED_WEIGHTS {{{', '.join(flags)}}}")
    known = [_DTYPES[dtype] for dtype in dtypes if dtype in _DTYPES]
    lines.append("#define RL_SELECTED_DTYPES(X)" + "".join(f" X({d})" for d in known))
    lines.append(f"#define RL_SELECTED_PRODUCTS {products.text}")
    if isa != "all":
        lines += [f"#define RL_SELECTED_ISA {loops_isa}", f"#define RL_SELECTED_DOT_ISA {isa}"]
    return "\n".join(lines) + "\n"


def header_text(uses: Uses, name: str, module: bool, embedded: Sequence[str]) -> str:
    """The header of the library."""
    what = [
        f"{len(uses.operators)} operators" if uses.operators else "",
        f"the backends {', '.join(sorted(uses.backends))}" if uses.backends else "",
    ]
    has = " and ".join(part for part in what if part) or "no kernels"
    own = [f"//   {operator}" for operator in sorted(uses.own)]
    lines = [
        _HEAD.rstrip(),
        f"// The library {name} runs programs that need {has}, no others.",
        *(["// The application itself adds the kernels of"] if own else []),
        *own,
        "#pragma once",
        "",
        '#include "rushlight/method/method.h"',
        *(['#include "rushlight/module/module.h"'] if module else []),
        "",
        f"namespace {name} {{",
        "",
        "// For MethodOptions, which rushlight::Method takes" + (
            "; rushlight::Module finds them itself." if module else "."
        ),
        "// nullptr if there is no backend.",
        "const rushlight::KernelTable* kernels();",
        "const rushlight::BackendTable* backends();",
    ]  # fmt: skip
    if embedded:
        lines += ["", "// The bytes of the programs."]
        lines += [f"rushlight::Span<const uint8_t> {stem}();" for stem in embedded]
    return "\n".join([*lines, "", f"}}  // namespace {name}", ""])


def programs_text(programs: Mapping[str, Path], name: str) -> str:
    """`programs.cpp`: the programs as constant arrays, which the assembler reads from their files;
    a program may be too large for a compiler."""
    lines = [
        _HEAD.rstrip(),
        f'#include "{name}.h"',
        "",
        "#if !defined(__GNUC__)",
        '#error "programs are embedded by GCC and Clang alone; load them from files instead"',
        "#endif",
        "#if defined(__APPLE__)",
        '#define RL_CONSTANTS ".const_data"',
        '#define RL_SYMBOL(name) "_" name',
        "#else",
        '#define RL_CONSTANTS ".section .rodata.programs,\\"a\\""',
        "#define RL_SYMBOL(name) name",
        "#endif",
    ]
    for stem, path in programs.items():
        symbol = f"rushlight_{name}_{stem}"
        quoted = str(path).replace("\\", "\\\\").replace('"', '\\"')
        quoted = quoted.replace("\\", "\\\\").replace('"', '\\"')
        lines += [
            "",
            f"// {path.stat().st_size} bytes.",
            "__asm__(RL_CONSTANTS",
            f'        "\\n.balign 128\\n" RL_SYMBOL("{symbol}") ":\\n"',
            f'        ".incbin \\"{quoted}\\"\\n"',
            f'        RL_SYMBOL("{symbol}_end") ":\\n.byte 0\\n.text\\n");',
            f'extern "C" const uint8_t {symbol}[];',
            f'extern "C" const uint8_t {symbol}_end[];',
            f"rushlight::Span<const uint8_t> {name}::{stem}() {{",
            f"  return {{{symbol}, static_cast<size_t>({symbol}_end - {symbol})}};",
            "}",
        ]
    return "\n".join(lines) + "\n"
