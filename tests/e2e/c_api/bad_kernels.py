"""Libraries of kernels that are refused, or whose kernel fails, and what each language must say.

`make` writes them beside `twice.pte`, which calls acme::twice.out, with `bad_kernels.tsv`: a line
for each case, with a part of the error's text and, behind a tab, the paths of the libraries, with
";" between. The program is opened with them and run; the process lives, and a good library computes
afterwards.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from codegen.c_header import ROOT

sys.path.append(str(ROOT / "tests" / "python"))
from runtime_programs import MethodBuilder, program

SCHEMA = b"acme::twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)\n"

_TEXT = "the lamp is out"
_SOURCE = """
#include "rl_kernel_v1.h"
#include <string.h>
static int32_t run(void* self, const rl_kernel_call_v1* call) {{
  const char text[] = "{text}";
  rl_text_v1 why;
  memset(&why, 0, sizeof why);
  why.data = text;
  why.size = sizeof text - 1;
  call->host->explain(call->context, why);
  return RL_INTERNAL;
}}
const rl_kernel_v1* rl_get_kernel_v1(uint32_t index) {{
  static const rl_kernel_v1 kernel = {{
      {version}, sizeof(rl_kernel_v1), "acme::twice.out", "{signature}", 0, 0, run, 0}};
  return index == 0 ? &kernel : 0;
}}
"""


def write_program(path: Path, schemas: bytes = SCHEMA) -> Path:
    """Writes y = acme::twice(x), for float32[2, 3]."""
    method = MethodBuilder()
    x, y = method.tensor(2, 3), method.tensor(2, 3)
    method.call("acme::twice.out", x, y, y)
    method.inputs, method.outputs = [x], [y]
    path.write_bytes(program(method, named_data={"rushlight/schemas": schemas}))
    return path


def make(folder: Path, twice: Path) -> None:
    """Writes the program, the libraries and the table.

    Args:
        folder: where they go.
        twice: a good library, with a kernel of acme::twice.out.
    """
    write_program(folder / "twice.pte")
    version = _library(folder, "version", version="9")
    signature = _library(folder, "signature", signature="dw=")
    failing = _library(folder, "failing")
    processor = folder / "processor.so"
    head = bytearray(b"\x7fELF\x02\x01\x01".ljust(64, b"\0"))
    head[16], head[18] = 3, 0xF7  # a shared object for BPF
    processor.write_bytes(head)
    backends = folder / "backends.so"
    shutil.copy(twice.parent / "libplugin_scale.so", backends)
    cases: list[tuple[str, tuple[Path, ...]]] = [
        ("no kernel for acme::twice.out (instruction 0)", ()),
        ("of version 9 of the interface; this runtime knows version 1", (version,)),
        ("(acme::twice.out): the kernel does not fit the operator", (signature,)),
        (_TEXT, (failing,)),
        ("the library is built for another processor", (processor,)),
        ("exports no rl_get_kernel_v1: it is not a library of kernels", (backends,)),
        ("the kernel acme::twice.out cannot be added: there is one", (twice, failing)),
    ]
    lines = [f"{text}\t{';'.join(map(str, paths))}\n" for text, paths in cases]
    (folder / "bad_kernels.tsv").write_text("".join(lines))


def _library(folder: Path, name: str, version: str = "1", signature: str = "tw=") -> Path:
    source, to = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(_SOURCE.format(text=_TEXT, version=version, signature=signature))
    command = ["cc", "-shared", "-fPIC", f"-I{ROOT / 'cpp' / 'abi'}", source, "-o", to]
    subprocess.run([str(part) for part in command], check=True)
    return to
