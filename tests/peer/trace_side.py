"""The commands of ``executorch_side.py`` for traces.

* ``run_traced pte= data= dump= values= [method=] [calls=]``: run a program with ExecuTorch's own
  event tracer, and write its trace and the values in it; answers with the outputs of the last call.
  Needs the environment of `make tracing-peer`.
"""

from __future__ import annotations

from typing import Any

import side
import torch

_VALUES = 1 << 22  # bytes for values


def run_traced(
    pte: str, data: str, dump: str, values: str, method: str = "forward", calls: int = 1
) -> list[Any]:
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    module = _load_for_executorch(pte, enable_etdump=True, debug_buffer_size=_VALUES)
    assert module.has_etdump()
    inputs = list(map(torch.from_numpy, side.read_inputs(data)))
    for _ in range(int(calls)):
        outputs = module.run_method(method, inputs)
    module.write_etdump_result_to_file(dump, values)
    return [output.tolist() for output in outputs if isinstance(output, torch.Tensor)]


COMMANDS: dict[str, side.Command] = {"run_traced": run_traced}
