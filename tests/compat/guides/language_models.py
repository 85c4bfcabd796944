"""The guide to language models: nanoGPT exported, delegated, quantised, run from C++ and traced."""

from __future__ import annotations

import re
from pathlib import Path

from guides import custom_kernels
from guides.documents import Document, find_document
from guides.repairs import ETDUMP_NAMES, omitted_targets
from guides.scenario import FILES, Scenario, Step, python

_FIRST = '#include "basic_sampler.h"'
PROMPT = "Bread rises"
COUNT = 30  # tokens that the guide's main.cpp writes
_NAMES = ("model.py", "basic_sampler.h", "basic_tokenizer.h")
_LOAD = 'Module model("nanogpt.pte", Module::LoadMode::MmapUseMlockIgnoreErrors'
_EXPECTED = f"""
from model import greedy, write_vocabulary
write_vocabulary()
with open("expected.txt", "w") as file:
    file.write(greedy({PROMPT!r}, {COUNT}))
"""
# The runtime's result against the module that was exported.
_SAME = """
from executorch.runtime import Runtime
method = Runtime.get().load_program("nanogpt.pte").load_method("forward")
logits = torch.as_tensor(method.execute(list(example_inputs))[0])
torch.testing.assert_close(logits, m(*example_inputs)[0], atol=5e-2, rtol=5e-2)
print("equal to eager")
"""


def document(folder: Path) -> Document:
    return find_document(folder, _FIRST)


def scenarios(folder: Path) -> list[Scenario]:
    guide = document(folder)
    portable = guide.block(
        "# export_nanogpt.py", having="EdgeCompileConfig(_check_ir_validity=False)"
    )
    xnnpack = guide.block("# export_nanogpt.py", having="# Load partitioner for Xnnpack")
    portable_build = guide.block("# CMakeLists.txt", having="nanogpt_runner main.cpp")
    xnnpack_build = guide.block("cmake_minimum_required", having="# Build with Xnnpack backend")
    main = _main(guide)
    traced_export, traced_main, traced_build = _traced(guide, xnnpack, main, xnnpack_build)
    inspector = guide.block("from executorch.devtools import Inspector", "    inspector.print_data")
    return [
        _application("nanoGPT: portable kernels", portable, main, portable_build),
        _application("nanoGPT: XNNPACK", xnnpack, main, xnnpack_build),
        _application(
            "nanoGPT: quantised for XNNPACK",
            _quantised(guide, xnnpack) + _SAME,
            main,
            _quantised_build(guide, xnnpack_build),
            is_quantised=True,
        ),
        _scenario(
            "nanoGPT: what is delegated",
            [python("export_nanogpt.py", _delegation(guide, xnnpack), _check_delegation)],
        ),
        _application(
            "nanoGPT: ETRecord, ETDump and Inspector",
            traced_export,
            traced_main,
            traced_build,
            [
                python(
                    "inspect_nanogpt.py",
                    inspector + 'print(open("inspector_out.txt").read())\n',
                    _check_table,
                )
            ],
            release=True,
        ),
        custom_kernels.scenario(guide),
    ]


def _scenario(name: str, steps: list[Step], has_checkout: bool = False) -> Scenario:
    return Scenario(name, steps, [FILES / file for file in _NAMES], has_checkout)


def _application(
    name: str,
    export: str,
    main: str,
    build: str,
    after: list[Step] | None = None,
    release: bool = False,
    is_quantised: bool = False,
) -> Scenario:
    kind = ["-D", "CMAKE_BUILD_TYPE=Release"] if release else []
    # The guide exports the quantised model with fixed sizes, which main.cpp's prompts do not have.
    run = Step(["./cmake-out/nanogpt_runner"], stdin=PROMPT + "\n", check=_check_text)
    steps = [
        python("export_nanogpt.py", export),
        python("expected.py", _EXPECTED),
        Step(
            ["cmake", "-S", ".", "-B", "cmake-out", *kind],
            {"main.cpp": main, "CMakeLists.txt": build},
        ),
        Step(["cmake", "--build", "cmake-out", "-j2"]),
        *([] if is_quantised else [run]),
        *(after or []),
    ]
    return _scenario(name, steps, has_checkout=True)


def _check_text(printed: str, folder: Path) -> None:
    expected = (folder / "expected.txt").read_text(encoding="utf-8")
    text = re.sub(r"^[DIEF] \d\d:.*\n", "", printed, flags=re.MULTILINE)  # lines of ET_LOG
    assert text == f"Enter model prompt: {PROMPT}{expected}\n", f"eager writes {expected!r}"


def _check_delegation(printed: str, folder: Path) -> None:
    del folder
    assert re.search(r"Number of delegated nodes:\s+[1-9]", printed), "no node is delegated"
    assert "aten_view_copy_default" in printed, "the table of operators lacks view_copy"
    assert "backend_id: XnnpackBackend" in printed, "the graph has no delegate"


def _check_table(printed: str, folder: Path) -> None:
    del folder
    assert "Method::execute" in printed and "DELEGATE_CALL" in printed, "events are missing"


def _main(guide: Document) -> str:
    return "".join(
        [
            guide.block("// main.cpp", having="#include <cstdint>"),
            guide.block("// main.cpp", having="// The value of the gpt2"),
            guide.block("// main.cpp", having="int main() {"),
        ]
    )


def _replace(code: str, old: str, new: str) -> str:
    if old not in code:
        raise ValueError(f"the guide's code has no {old!r}")
    return code.replace(old, new, 1)


def _between(code: str, start: str, end: str, new: str) -> str:
    """The code with what stands from `start` to before `end` replaced."""
    return code[: code.index(start)] + new + code[code.index(end) :]


def _quantised(guide: Document, export: str) -> str:
    quantise = guide.block("# export_nanogpt.py", having="duplicate_dynamic_quant_chain")
    lower = guide.block("from executorch.backends.xnnpack.partition.xnnpack_partitioner import (")
    config = "edge_config = get_xnnpack_edge_compile_config()\n"
    return _between(
        export, "# Trace the model", "# Save the Xnnpack-delegated", quantise + config + lower
    )


def _quantised_build(guide: Document, build: str) -> str:
    """The guide repeats the end of CMakeLists.txt, with the targets of a quantised program."""
    target = guide.block("add_executable(nanogpt_runner main.cpp)", having="    PRIVATE\n")
    return build[: build.index("add_executable(")] + target


def _delegation(guide: Document, export: str) -> str:
    summary = guide.block("from executorch.devtools.backend_debug import get_delegation_info")
    graph = guide.block("from executorch.exir.backend.utils import format_delegated_graph")
    return _replace(
        export, "et_program = edge_manager", summary + graph + "et_program = edge_manager"
    )


def _traced(guide: Document, export: str, main: str, build: str) -> tuple[str, str, str]:
    copied = guide.block("# export_nanogpt.py", "edge_manager_copy =", "import copy")
    saved = guide.block('etrecord_path = "etrecord.bin"')
    lowering = "# Delegate exported model to Xnnpack backend"
    export = _replace(export, lowering, copied + lowering) + saved

    create = guide.block("std::unique_ptr<ETDumpGen> etdump_gen_")
    write = guide.block("ETDumpGen* etdump_gen = static_cast")
    include = guide.block("// main.cpp", having="#include <executorch/devtools/etdump")
    main = include + main
    main = _replace(main, "// The value of the gpt2", ETDUMP_NAMES + "// The value of the gpt2")
    main = _between(main, _LOAD, "\n  const auto max_input_tokens", create)
    end = main.rindex("}")
    main = main[:end] + write + main[end:]

    options = guide.block("option(EXECUTORCH_ENABLE_EVENT_TRACER", "option(EXECUTORCH_BUILD_DEVT")
    targets = guide.block("target_link_libraries(", having="# ... omit existing ones")
    marker = "# Set options for executorch build.\n"
    build = _replace(build, marker, marker + options) + omitted_targets(targets)
    return export, main, build
