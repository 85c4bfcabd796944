"""fold_dequantized: small quantised weights that no backend took are stored as real numbers."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed
from expecttest import assert_expected_inline
from graphs import captured, operators
from pass_text import text, traced
from torch import nn

import rushlight as rl
from rushlight.edge.passes.fold_dequantized import fold_dequantized

quantized = torch.ops.quantized_decomposed


class Quantized(nn.Module):
    """A layer whose weight is stored as int8 with a scale for each channel, its bias as int32."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        integers = torch.randint(-127, 127, (outputs, inputs), dtype=torch.int8)
        self.register_buffer("weight", integers)
        self.register_buffer("scale", torch.full((outputs,), 0.01))
        self.register_buffer("zero", torch.zeros(outputs, dtype=torch.int64))
        self.register_buffer("bias", torch.randint(-99, 99, (outputs,), dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        limits = -(2**31), 2**31 - 1, torch.int32
        bias = quantized.dequantize_per_tensor(self.bias, 0.001, 0, *limits)
        channels = 0, -127, 127, torch.int8
        weight = quantized.dequantize_per_channel(self.weight, self.scale, self.zero, *channels)
        return torch.addmm(bias, x, weight.t())


def lowered(model: nn.Module, x: torch.Tensor) -> rl.ExecutorchProgramManager:
    """The lowered program; it is checked to compute the model's results."""
    manager = rl.to_edge(captured(model, x)).to_executorch()
    torch.testing.assert_close(rl.load(manager.buffer)(x), model(x))
    return manager


def calls(manager: rl.ExecutorchProgramManager) -> list[str]:
    return [name for name, _ in manager.instruction_nodes["forward"].values()]


def test_small_weights_are_dequantised_with_what_is_computed_from_them() -> None:
    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        weight = quantized.dequantize_per_tensor(w, 0.5, 0, -127, 127, torch.int8)
        return torch.mm(x, torch.ops.aten.permute_copy.default(weight, [1, 0]))

    program = traced(model, torch.ones(2, 2), w=torch.tensor([[1, 2], [3, 4]], dtype=torch.int8))
    before = text(program)
    assert_expected_inline(
        text(fold_dequantized(program)),
        """\
c0: float32[2, 2] = [[0.5, 1.5], [1, 2]]
x: float32[2, 2]
%1: float32[2, 2] = mm(x, c0)
return [%1]
""",
    )
    assert text(program) == before


def test_a_weight_that_would_grow_stays_quantised_and_its_bias_does_not() -> None:
    manager = lowered(Quantized(64, 128), torch.randn(2, 64))
    assert [n for n in calls(manager) if "dequantize" in n] == ["dequantize_per_channel"]
    assert len(manager.buffer) < 64 * 128 + 8000


def test_backends_see_all_weights_quantised() -> None:
    program = rl.to_edge(captured(Quantized(32, 32), torch.randn(2, 32))).exported_program()
    assert sum("dequantize" in name for name in operators(program.graph)) == 2


def test_what_depends_on_an_input_or_on_state_stays() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(4, dtype=torch.int8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            how = 0.5, 0, -128, 127, torch.int8
            self.state.add_(1)
            integers = quantized.quantize_per_tensor(x, *how)
            return quantized.dequantize_per_tensor(integers + self.state, *how)

    program = rl.to_edge(captured(Model(), torch.ones(4))).exported_program()
    assert fold_dequantized(program) is program
