"""The guide to delegation: its three flows."""

from __future__ import annotations

from pathlib import Path

from guides.documents import Document, find_document
from guides.repairs import lost_spaces
from guides.scenario import Scenario, python

_FIRST = "fromexecutorch.exir.backend.backend_apiimport to_backend"

# What each flow leaves is run, and compared with the model that was lowered.
_CHECK = """
from executorch.runtime import Runtime
method = Runtime.get().load_program(save_path).load_method("forward")
outputs = method.execute(list({inputs}))
expected = {expected}
expected = expected if isinstance(expected, tuple) else (expected,)
assert len(outputs) == len(expected)
for output, tensor in zip(outputs, expected):
    torch.testing.assert_close(torch.as_tensor(output), tensor)
print("equal to eager")
"""


# The guide's two forms of to_backend, as functions without a body, against ours.
_SIGNATURES = """
import inspect
from typing import List
from torch.export import ExportedProgram
from executorch.exir.backend import backend_api
from executorch.exir.backend.backend_api import LoweredBackendModule
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import Partitioner

def types(function):
    hints = inspect.get_annotations(function, eval_str=True)
    return [hints.pop("return"), *hints.values()]

def check(documented, first):
    ours = types(backend_api.to_backend.dispatch(first))
    ours = [str(kind).replace("collections.abc.Sequence", "list") for kind in ours]
    assert ours == [str(kind).replace("typing.List", "list") for kind in types(documented)], ours

"""


def _signatures(lowered: str, divided: str) -> str:
    parts = [_SIGNATURES]
    for block, first in ((lowered, "str"), (divided, "ExportedProgram")):
        parts.append(f"{lost_spaces(block)}    ...\n\ncheck(to_backend, {first})\n")
    return "".join(parts)


def document(folder: Path) -> Document:
    return find_document(folder, _FIRST)


def scenarios(folder: Path) -> list[Scenario]:
    guide = document(folder)
    flow_1 = guide.block(_FIRST)
    saved = guide.block("# Save the flatbuffer", "f.write(lowered_module")
    composed = guide.block("# This submodule runs in executor runtime")
    partitioned = guide.block("importexecutorch.exirasexir", having="AddMulPartitionerDemo")
    check_1 = _CHECK.format(inputs="example_input", expected="to_be_lowered(*example_input)")
    check_2 = _CHECK.format(
        inputs="model_inputs",
        expected="(lambda a: (a, a.sin(), a + a.sin() + 0.3))(model_inputs[0].sin())",
    )
    check_3 = _CHECK.format(inputs="model_inputs", expected="model(*model_inputs)")
    repaired = lost_spaces(flow_1)
    lowered = guide.block("# defined in backend_api.py")
    divided = guide.block("defto_backend(", having="partitioner: Partitioner")
    return [
        Scenario(
            "delegation: the forms of to_backend",
            [python("signatures.py", _signatures(lowered, divided))],
        ),
        Scenario(
            "delegation: flow 1, a whole module",
            [python("flow_1.py", repaired + lost_spaces(saved) + check_1)],
        ),
        Scenario(
            "delegation: flow 2, composed with other modules",
            [python("flow_2.py", repaired + lost_spaces(composed) + check_2)],
        ),
        Scenario(
            "delegation: flow 3, by a partitioner",
            [python("flow_3.py", lost_spaces(partitioned) + check_3)],
        ),
    ]
