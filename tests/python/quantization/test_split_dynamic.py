"""`DuplicateDynamicQuantChainPass`: each user of dynamic scales gets calls of its own."""

from __future__ import annotations

import torch
from torch import nn

from rushlight.ir.quantized_values import chosen_of
from rushlight.quantization import (
    CpuQuantizer,
    DuplicateDynamicQuantChainPass,
    convert_pt2e,
    get_symmetric_quantization_config,
    prepare_pt2e,
)


class Two(nn.Module):
    """Two products of one input."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x) + self.b(x)  # type: ignore[no-any-return]


def test_each_user_has_its_own() -> None:
    x = (torch.randn(3, 8),)
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    prepared = prepare_pt2e(
        torch.export.export(Two().eval(), x).module(), CpuQuantizer().set_global(config)
    )
    prepared(*x)
    module = convert_pt2e(prepared)
    wanted = module(*x)
    shared = [node for node in module.graph.nodes if chosen_of(node) is not None]
    result = DuplicateDynamicQuantChainPass()(module)
    own = [node for node in module.graph.nodes if chosen_of(node) is not None]
    assert result.modified == (len(shared) < len(own))
    assert len(own) == 2 and all(len(node.users) == 1 for node in own)
    chosen = {chosen_of(node).calls[0] for node in own}  # type: ignore[union-attr]
    assert len(chosen) == 2
    torch.testing.assert_close(module(*x), wanted)
    assert not DuplicateDynamicQuantChainPass()(module).modified


def test_ranges_of_a_configuration() -> None:
    static = get_symmetric_quantization_config(act_qmin=-100, act_qmax=100, weight_qmin=-7)
    assert (static.input_activation.quant_min, static.output_activation.quant_max) == (-100, 100)
    assert (static.weight.quant_min, static.weight.quant_max) == (-7, 127)
    assert static.weight.qscheme is torch.per_tensor_symmetric
    dynamic = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    assert dynamic.input_activation.is_dynamic and dynamic.output_activation is None
    assert dynamic.weight.qscheme is torch.per_channel_symmetric
