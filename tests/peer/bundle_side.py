"""The commands of ``executorch_side.py`` for bundled programs (.bpte).

* ``bundle program= data= bpte= [xnnpack=]``: lower a program as ``export`` does and bundle it with
  one test case, whose expected outputs are eager's.
* ``read_bundle bpte=``: the methods of a bundled program, each with the dtypes, sizes, dim
  orders and bytes of the inputs and expected outputs of its test cases.
* ``verify bpte= method= index= [rtol=] [atol=]``: whether ExecuTorch finds the outputs of a test
  case to be as expected; else its error.
* ``verify_in_order bpte= method= count=``: the same of the first test cases, in one load.
* ``traced_cases dump=``: the indices of the test cases that the blocks of an ETDump are runs of, as
  ExecuTorch's Inspector shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import side
import torch


def bundle(program: str, data: str, bpte: str, xnnpack: bool = False) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import (
        serialize_from_bundled_program_to_flatbuffer,
    )
    from executorch.exir import to_edge_transform_and_lower

    exported, inputs = (
        torch.export.load(program),
        list(map(torch.from_numpy, side.read_inputs(data))),
    )
    args, kwargs = torch.utils._pytree.tree_unflatten(inputs, exported.call_spec.in_spec)
    expected = exported.module()(*args, **kwargs)
    partitioner = [XnnpackPartitioner()] if xnnpack else None
    made = to_edge_transform_and_lower(exported, partitioner=partitioner).to_executorch()
    case = MethodTestCase(inputs=inputs, expected_outputs=torch.utils._pytree.tree_leaves(expected))
    bundled = BundledProgram(made, [MethodTestSuite("forward", [case])])
    Path(bpte).write_bytes(serialize_from_bundled_program_to_flatbuffer(bundled))


def read_bundle(bpte: str) -> dict[str, list[Any]]:
    from executorch.devtools.bundled_program.serialize import (
        deserialize_from_flatbuffer_to_bundled_program,
    )

    def described(value: Any) -> Any:
        told = value.val
        if hasattr(told, "sizes"):
            return [told.scalar_type.name, list(told.sizes), list(told.dim_order), len(told.data)]
        return list(vars(told).values())

    file = deserialize_from_flatbuffer_to_bundled_program(Path(bpte).read_bytes())
    return {
        suite.method_name: [
            [[*map(described, case.inputs)], [*map(described, case.expected_outputs)]]
            for case in suite.test_cases
        ]
        for suite in file.method_test_suites
    }


def verify(bpte: str, method: str, index: int, rtol: float = 1e-5, atol: float = 1e-8) -> str:
    return _verified(bpte, method, [index], rtol, atol)[0]


def verify_in_order(bpte: str, method: str, count: int) -> list[str]:
    return _verified(bpte, method, range(count))


def _verified(
    bpte: str, method: str, indices: Iterable[int], rtol: float = 1e-5, atol: float = 1e-8
) -> list[str]:
    from executorch.extension.pybindings.portable_lib import (
        _load_bundled_program_from_buffer,
        _load_for_executorch_from_bundled_program,
    )

    bundled = _load_bundled_program_from_buffer(Path(bpte).read_bytes())
    module = _load_for_executorch_from_bundled_program(bundled)
    module.method_names()
    told = []
    for index in indices:
        try:
            bundled.verify_result_with_bundled_expected_output(method, index, rtol=rtol, atol=atol)
            told.append("")
        except RuntimeError as error:
            told.append(str(error))
    return told


def traced_cases(dump: str) -> list[int | None]:
    from executorch.devtools import Inspector

    return [block.bundled_input_index for block in Inspector(dump).event_blocks]


COMMANDS: dict[str, side.Command] = {
    "bundle": bundle,
    "read_bundle": read_bundle,
    "traced_cases": traced_cases,
    "verify": verify,
    "verify_in_order": verify_in_order,
}
