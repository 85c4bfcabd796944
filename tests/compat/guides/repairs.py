"""The repairs of the guides' code, one by one, each with its reason. Nothing else is changed."""

from __future__ import annotations

import re
from collections.abc import Callable

_SPACES = (
    (r"^from(\S+?)import (.*)$", r"from \1 import \2"),
    (r"^import(\S+?)as(\w+)$", r"import \1 as \2"),
    (r"^import(\w+)$", r"import \1"),
    (r"^class(\w+)", r"class \1"),
    (r"^def(\w+)\(", r"def \1("),
)


def lost_spaces(code: str) -> str:
    """The delegation guide has lost the spaces around keywords, and all that lines begin with.

    Spaces come back after `from`, `import`, `class` and `def`, and around `as`. Lines are indented
    again by what Python says: a function of a class ends with its `return`, or where the next one
    begins (`__init__`, which returns nothing); `with` has one line.
    """
    lines = []
    for line in code.split("\n"):
        for pattern, replacement in _SPACES:
            line = re.sub(pattern, replacement, line)
        lines.append(line)
    return "\n".join(_indented(lines))


def _indented(lines: list[str]) -> list[str]:
    level, in_class, after_with, in_brackets = 0, False, False, 0
    indented = []
    for line in lines:
        if after_with:
            indented.append("    " + line)
            after_with = False
            continue
        if line.startswith("class "):
            level, in_class = 0, True
        elif line.startswith("def "):
            level = 1 if in_class else 0
        prefix = "    " * (level + (1 if in_brackets and not line.startswith(")") else 0))
        indented.append(prefix + line if line else "")
        in_brackets += line.count("(") - line.count(")")
        if line.startswith(("class ", "def ")):
            level += 1
        elif line.startswith("with "):
            after_with = True
        elif line.startswith("return"):
            level, in_class = (1, True) if _next_is_function(lines, len(indented)) else (0, False)
    return indented


def _next_is_function(lines: list[str], index: int) -> bool:
    return index < len(lines) and lines[index].startswith("def ")


def replaced(old: str, new: str) -> Callable[[str], str]:
    """A repair that puts `new` in the place of `old`, which must be there.

    Raises:
        ValueError: when it is applied to code without `old`.
    """

    def repair(code: str) -> str:
        if old not in code:
            raise ValueError(f"nothing to repair: the code has no {old!r}")
        return code.replace(old, new)

    return repair


# The guide leaves namespaces out where it shows a part of main.cpp.
ETDUMP_NAMES = "using executorch::etdump::ETDumpGen;\nusing torch::executor::etdump_result;\n"
# An optional tensor has lost a character of its type.
optional_tensor = replaced("Tensor(?)", "Tensor?")
# A comment stands for the targets that were named before.
omitted_targets = replaced("    # ... omit existing ones\n", "    nanogpt_runner PRIVATE\n")
# The guide leaves the kernel's calculation out: transposed weight times input, plus bias.
calculation = replaced(
    "    // calculation\n",
    "    // calculation\n"
    "    const ssize_t rows = weight.size(1), columns = input.size(1), depth = weight.size(0);\n"
    "    for (ssize_t r = 0; r < rows; ++r) {\n"
    "        for (ssize_t c = 0; c < columns; ++c) {\n"
    "            float sum = bias ? bias->const_data_ptr<float>()[r] : 0.f;\n"
    "            for (ssize_t d = 0; d < depth; ++d) {\n"
    "                sum += weight.const_data_ptr<float>()[d * rows + r] *\n"
    "                       input.const_data_ptr<float>()[d * columns + c];\n"
    "            }\n"
    "            out.mutable_data_ptr<float>()[r * columns + c] = sum;\n"
    "        }\n"
    "    }\n",
)
# It leaves out, too, where EXECUTORCH_LIBRARY and the names of types come from.
kernel_names = replaced(
    "#include <executorch/runtime/kernel/kernel_includes.h>\n",
    "#include <executorch/runtime/kernel/kernel_includes.h>\n"
    "#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>\n"
    '#include "custom_linear.h"\n'
    "using executorch::aten::Tensor;\nusing std::optional;\n",
)
# And where WRAP_TO_ATEN comes from.
wrapper_include = replaced(
    "#include <torch/library.h>\n",
    "#include <torch/library.h>\n"
    "#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>\n",
)


def missing_import(code: str) -> str:
    """The function that replaces modules reads `nn` without an import."""
    return "from torch import nn\n" + code


# Replacements within lines, which a comparison of the guide's lines with what runs applies, too.
REPLACED: tuple[tuple[str, str], ...] = (("Tensor(?)", "Tensor?"),)
# Why lines of a guide are left out.
DOWNLOADS = "downloads: the files are of our own writing"
OMISSIONS = "stands for lines that were shown before"
