"""A hardware partner's integration: quantiser, partitioner, preprocess with debug handles.

The network is interpolate, convolution, relu, linear, relu, softmax. The backend has two
instructions, a float convolution and a quantised linear with relu; the rest stays with the kernels.
It writes `partner.pte`, its record, and eager's result, and prints what was delegated.
"""

import struct
import sys
from pathlib import Path

import numpy as np
import torch
from executorch.devtools.backend_debug import get_delegation_info
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import DelegateMappingBuilder, tag_constant_data
from executorch.exir.dialects._ops import ops as exir_ops
from torchao.quantization.pt2e import HistogramObserver, MinMaxObserver
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, QuantizationSpec, Quantizer

aten, edge = torch.ops.aten, exir_ops.edge
LINEAR, RELU, CONVOLUTION = (
    (aten.linear.default, edge.aten.linear.default),
    (aten.relu.default, edge.aten.relu.default),
    (aten.conv2d.default, aten.convolution.default, edge.aten.convolution.default),
)
CONV, QUANTISED_LINEAR_RELU = 1, 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 3, 3)
        self.linear = torch.nn.Linear(12, 4)

    def forward(self, x):
        x = torch.nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        x = torch.relu(self.conv(x)).flatten(1)
        return torch.softmax(torch.relu(self.linear(x)), -1)


class PartnerQuantizer(Quantizer):
    """Quantises the pair of linear and relu as one: its inputs and what relu gives."""

    def annotate(self, model):
        data = QuantizationSpec(
            torch.int8, HistogramObserver, -128, 127, torch.per_tensor_affine, is_dynamic=False
        )
        weight = QuantizationSpec(
            torch.int8, MinMaxObserver, -127, 127, torch.per_tensor_symmetric, is_dynamic=False
        )
        for relu in model.graph.nodes:
            if relu.target not in RELU or relu.args[0].target not in LINEAR:
                continue
            linear = relu.args[0]
            linear.meta["quantization_annotation"] = QuantizationAnnotation(
                {linear.args[0]: data, linear.args[1]: weight}, _annotated=True
            )
            relu.meta["quantization_annotation"] = QuantizationAnnotation(
                output_qspec=data, _annotated=True
            )
        return model

    def validate(self, model):
        pass


def is_quantising(node, word):
    return node.op == "call_function" and f"quantized_decomposed.{word}_per" in str(node.target)


class PartnerPartitioner(Partitioner):
    """Tags each float convolution, and each linear with relu between quantised values."""

    def __init__(self):
        super().__init__()
        self.delegation_spec = DelegationSpec("PartnerBackend", [CompileSpec("version", b"1")])

    def ops_to_not_decompose(self, ep):
        return [aten.linear.default], None

    def partition(self, exported_program):
        tags = {}
        for node in exported_program.graph.nodes:
            for member in self.members(node):
                tag = f"partner_{node.name}"
                member.meta["delegation_tag"] = tag
                tags[tag] = self.delegation_spec
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)

    def members(self, node):
        if node.target in CONVOLUTION:
            return [node]
        if node.target not in LINEAR or not is_quantising(node.args[0], "dequantize"):
            return []
        read, weight = node.args[0], node.args[1]
        (relu,) = node.users
        quantise = next(user for user in relu.users if is_quantising(user, "quantize"))
        written = list(quantise.users)
        return [read.args[0], read, weight, node, relu, quantise, *written]


class PartnerBackend(BackendDetails):
    """Words of 32 bits: version, instruction, its numbers, then weights and bias in float32."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        (version,) = (int(spec.value) for spec in compile_specs if spec.key == "version")
        data = {**edge_program.state_dict, **edge_program.constants}
        targets = {spec.arg.name: spec.target for spec in edge_program.graph_signature.input_specs}

        def value(node):
            return data[targets[node.name]].detach()

        handles = DelegateMappingBuilder(generated_identifiers=False)
        for node in edge_program.graph.nodes:
            if node.target in CONVOLUTION:
                handles.insert_delegate_mapping_entry(node, identifier="conv")
                weight, bias = value(node.args[1]), value(node.args[2])
                head = struct.pack("<5i", version, CONV, *weight.shape[:3])
            elif node.target in LINEAR:
                read, stored = node.args[0], node.args[1]
                (relu,) = node.users
                handles.insert_delegate_mapping_entry([node, relu], identifier="linear_relu")
                weight, bias = value(stored.args[0]), value(node.args[2])
                written = next(user for user in relu.users if is_quantising(user, "quantize"))
                head = struct.pack("<4i", version, QUANTISED_LINEAR_RELU, *weight.shape)
                for one in (read, stored, written):
                    head += struct.pack("<fi", float(one.args[1]), int(one.args[2]))
        body = [array.to(torch.float32).contiguous().numpy().tobytes() for array in (weight, bias)]
        return PreprocessResult(head + b"".join(body), handles.get_delegate_mapping())


def main(folder):
    torch.manual_seed(1)
    x = (torch.randn(1, 2, 2, 2),)
    captured = torch.export.export(Net().eval(), x).module()
    prepared = prepare_pt2e(captured, PartnerQuantizer())
    for _ in range(4):
        prepared(torch.randn(1, 2, 2, 2))
    prepared(*x)
    quantised = convert_pt2e(prepared)
    program = torch.export.export(quantised, x)
    lowered = to_edge_transform_and_lower(
        program, partitioner=[PartnerPartitioner()], generate_etrecord=True
    )
    info = get_delegation_info(lowered.exported_program().graph_module)
    print(info.num_delegated_subgraphs, "subgraphs")
    print(info.get_operator_delegation_dataframe().to_string())
    finished = lowered.to_executorch()
    finished.save(f"{folder}/partner.pte")
    finished.get_etrecord().save(f"{folder}/partner.etrecord")
    np.save(f"{folder}/input.npy", x[0].numpy())
    np.save(f"{folder}/expected.npy", quantised(*x).detach().numpy())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
