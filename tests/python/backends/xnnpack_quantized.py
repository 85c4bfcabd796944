"""Quantised programs for tests of the xnnpack backend, and real ExecuTorch's files for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed
import torch.nn.functional as F
from torch import nn
from xnnpack_files import Exporter
from xnnpack_models import left

import rushlight as rl
from delegates import flat
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.backends.xnnpack.payload import read_payload
from rushlight.schema import xnnpack as fb
from rushlight.serialize.pte import read_pte

Tensors = tuple[torch.Tensor, ...]
OPS: Any = torch.ops.quantized_decomposed


class Integers(nn.Module):
    """Quantises to int8 and dequantises.

    Args:
        scale, zero_point: the parameters of the integers.
    """

    def __init__(self, scale: float, zero_point: int = 0) -> None:
        super().__init__()
        self.form = (scale, zero_point, -128, 127, torch.int8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        integers = OPS.quantize_per_tensor(x, *self.form)
        return OPS.dequantize_per_tensor(integers, *self.form)  # type: ignore[no-any-return]


class Rows(nn.Module):
    """A linear layer with quantised weights, whose input rows are quantised at run time.

    Args:
        linear: the layer.
        bits: the bits of a weight.
        group: the number of weights that share a scale; 0 for all of an output.
    """

    def __init__(self, linear: nn.Linear, bits: int, group: int = 0) -> None:
        super().__init__()
        half = 1 << (bits - 1)
        self.range, self.group, self.bias = (-half, half - 1), group, linear.bias
        weight = linear.weight.detach()
        outputs = len(weight)
        blocks = weight.float().reshape(outputs, -1, group or weight.shape[1])
        scales = blocks.abs().amax(-1, keepdim=True) / (half - 1)
        self.weight = nn.Buffer((blocks / scales).round().to(torch.int8).reshape(weight.shape))
        self.scales = nn.Buffer(scales.reshape(outputs, -1) if group else scales.reshape(-1))
        self.zeros = nn.Buffer(torch.zeros_like(self.scales, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scales, zeros = OPS.choose_qparams_per_token_asymmetric(x, torch.int8)
        form = (scales, zeros, -128, 127, torch.int8)
        rows = OPS.dequantize_per_token(OPS.quantize_per_token(x, *form), *form, x.dtype)
        parameters: Any = (self.weight, self.scales, self.zeros)
        if self.group:
            weight = OPS.dequantize_per_channel_group(
                *(*parameters, *self.range, torch.int8, self.group, x.dtype)
            )
        else:
            weight = OPS.dequantize_per_channel(
                *parameters, 0, *self.range, torch.int8, out_dtype=x.dtype
            )
        return F.linear(rows, weight, self.bias)


def by_rows(model: nn.Module, bits: int, group: int = 0) -> nn.Module:
    """The model with `Rows` in place of its linear layers."""
    for name, layer in model.named_children():
        if isinstance(layer, nn.Linear):
            setattr(model, name, Rows(layer, bits, group))
        else:
            by_rows(layer, bits, group)
    return model


def lowered(program: torch.export.ExportedProgram) -> rl.EdgeProgramManager:
    return rl.to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])


def described(graph: fb.Graph) -> list[tuple[Any, ...]]:
    """A graph's nodes with their tensors: sizes, datatypes, constants and parameters."""
    tensors = {}
    for value in graph.xvalues:
        stored = value.xvalue_union
        params = stored.quant_params if isinstance(stored, fb.QuantizedTensorValue) else None
        tensor = stored.tensor_value if isinstance(stored, fb.QuantizedTensorValue) else stored
        scales = getattr(params, "scale_buffer_idx", 0)
        if scales:
            kept = {
                k: getattr(params, k)
                for k in ("channel_dim", "num_scales", "group_size")
                if hasattr(params, k)
            }
            params = (kept, graph.constant_data[scales].named_key)
        constant = graph.constant_data[tensor.constant_buffer_idx]
        tensors[tensor.id_out] = (
            *(tensor.datatype, tensor.dims, tensor.flags, tensor.flags and tensor.external_id),
            *(tensor.constant_buffer_idx and (constant.named_key, constant.size), params),
        )
    nodes = []
    for node in graph.xnodes:
        operation, fields = node.xnode_union, {}
        for field in fb.XNNPACK.tables[type(operation)]:
            held = getattr(operation, field.name)
            is_tensor = field.name.endswith("_id")
            fields[field.name] = tensors.get(held) if is_tensor else held
        nodes.append((type(operation).__name__, fields, node.output_min_max))
    return nodes


class Quantizer(Exporter):
    """Quantises modules, and runs the files of both exporters for them."""

    def quantized(
        self, model: nn.Module, args: Tensors, **options: Any
    ) -> torch.export.ExportedProgram:
        """A module quantised with pt2e and ExecuTorch's own quantizer.

        Args:
            model: the model.
            args: example inputs, also used for calibration.
            **options: `per_channel`, `dynamic`.
        """
        return self.quantized_program(torch.export.export(model.eval(), args), args, **options)

    def quantized_program(
        self, program: torch.export.ExportedProgram, args: Tensors, **options: Any
    ) -> torch.export.ExportedProgram:
        """A captured module, quantised like `quantized` does it."""
        plain, data = self._folder / "plain.pt2", self._folder / "data.npz"
        quantized = self._folder / "quantized.pt2"
        torch.export.save(program, plain)
        np.savez(data, **{f"in{i}": x.numpy() for i, x in enumerate(args)})
        self._executorch.call("quantize", program=plain, data=data, quantized=quantized, **options)
        return torch.export.load(quantized)

    def theirs(self, program: torch.export.ExportedProgram) -> bytes:
        """The file that real ExecuTorch makes from a quantised program with XNNPACK."""
        path, pte = self._folder / "theirs.pt2", self._folder / "theirs.pte"
        torch.export.save(program, path)
        self._executorch.call("export", program=path, pte=pte, xnnpack=True)
        return pte.read_bytes()

    def agree(
        self, program: torch.export.ExportedProgram, *calls: Sequence[torch.Tensor]
    ) -> list[str]:
        """Check that we take a whole program and that its results, in both runtimes, are those of
        the file of real ExecuTorch; returns its nodes.

        Args:
            program: the quantised program.
            *calls: the inputs of each call.
        """
        edge = lowered(program)
        assert not left(edge)
        ours, theirs = bytes(edge.to_executorch().buffer), self.theirs(program)
        for inputs in calls:
            pairs = zip(self.results(ours, *inputs), self.results(theirs, *inputs), strict=True)
            for one, other in pairs:
                assert torch.equal(one, other), (one - other).abs().max()
            check_here(theirs, inputs, self.results(theirs, *inputs))
        return [name for name, _, _ in nodes_in(ours)]


def check_here(pte: bytes, inputs: Sequence[torch.Tensor], expected: list[torch.Tensor]) -> None:
    """Compare our runtime's results with those of real ExecuTorch.

    Integers are exact, so they are equal, except where real numbers between them are rounded
    differently.
    """
    results = flat(rl.load(pte, threads=2)(*inputs))
    for one, other in zip(results, expected, strict=True):
        scale = float(other.abs().max())
        torch.testing.assert_close(one, other, rtol=1e-6, atol=2e-6 * scale)


def nodes_in(pte: bytes) -> list[tuple[Any, ...]]:
    """`described` for all delegates of a file."""
    file = read_pte(pte)
    nodes = []
    for delegate in file.program.execution_plan[0].delegates:
        nodes += described(read_payload(bytes(file.delegate_blobs[delegate.processed.index])))
    return nodes
