"""A script written for ExecuTorch runs here: lowering, a delegate of its own, running, tracing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ALIAS = Path(__file__).resolve().parents[2] / "compat" / "python"

SCRIPT = """
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.devtools import Inspector, generate_etrecord
from executorch.devtools.backend_debug import get_delegation_info
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.backend_api import to_backend
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from executorch.extension.pybindings.portable_lib import (
    _load_for_executorch,
    _load_for_executorch_from_buffer,
)
from executorch.runtime import Runtime, Verification
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) + 1


class AddToSub(ExportPass):
    def call_operator(self, op, args, kwargs, meta):
        if op is exir_ops.edge.aten.add.Tensor:
            op = exir_ops.edge.aten.sub.Tensor
        return super().call_operator(op, args, kwargs, meta)


torch.manual_seed(1)
model, x = Net().eval(), (torch.randn(3, 4),)
exported = torch.export.export(model, x)

portable = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
program = portable.transform([AddToSub()]).to_executorch()
module = _load_for_executorch_from_buffer(program.buffer)
torch.testing.assert_close(module.forward(x)[0], model(*x) - 2)
assert module.method_names() == ["forward"] and not module.has_etdump()
assert module.method_meta("forward").input_tensor_meta(0).sizes() == (3, 4)

edge = to_edge_transform_and_lower(
    exported, partitioner=[XnnpackPartitioner()], generate_etrecord=True
)
assert get_delegation_info(edge.exported_program().graph_module).num_delegated_subgraphs == 1
lowered = edge.to_executorch()
with open("net.pte", "wb") as file:
    lowered.write_to_file(file)
traced = _load_for_executorch("net.pte", enable_etdump=True, debug_buffer_size=1 << 16)
torch.testing.assert_close(traced.run_method("forward", x)[0], model(*x))
traced.write_etdump_result_to_file("net.etdp", "net.bin")
lowered.get_etrecord().save("net.etrecord")
events = Inspector(etdump_path="net.etdp", etrecord="net.etrecord").to_dataframe()
assert len(events) > 0

quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
prepared = prepare_pt2e(exported.module(), quantizer)
prepared(*x)
quantized = torch.export.export(convert_pt2e(prepared), x)
lowered = to_edge_transform_and_lower(quantized, partitioner=[XnnpackPartitioner()]).to_executorch()
method = Runtime.get().load_program(
    lowered.buffer, verification=Verification.Minimal
).load_method("forward")
assert (method.execute(list(x))[0] - model(*x)).abs().max() < 0.1
print("done")
"""


def test_a_script_for_executorch(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ALIAS), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip().endswith("done")
