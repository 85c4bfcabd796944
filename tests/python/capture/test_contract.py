"""The shape contract: inputs by name with their ranges, and the structure of the results."""

from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch
import torch.utils._pytree as pytree
from graphs import captured

from rushlight.capture import capture, contract_of
from rushlight.errors import ExportError

Pair = namedtuple("Pair", ["left", "right"])


def test_names_kinds_and_structure() -> None:
    class Model(torch.nn.Module):
        def forward(self, ids, batch, *, scale=1.0):  # type: ignore[no-untyped-def]
            return {"a": ids * scale, "b": [batch["x"], Pair(batch["y"][0], None)]}

    args = (torch.ones(2, dtype=torch.int64), {"x": torch.ones(3), "y": (torch.ones(1),)})
    contract = contract_of(capture(Model(), args, {"scale": 2.0}))
    assert [i["name"] for i in contract["inputs"]] == [
        "ids",
        "batch['x']",
        "batch['y'][0]",
        "scale",
    ]
    assert contract["inputs"][0] == {
        "name": "ids",
        "kind": "tensor",
        "dtype": "int64",
        "shape": [2],
    }
    assert contract["inputs"][3] == {"name": "scale", "kind": "float", "value": 2.0}
    assert contract["parameters"] == ["ids", "batch", "scale"]
    out = contract["out_spec"]
    assert out["t"] == "dict" and out["k"] == ["a", "b"]
    pair = out["c"][1]["c"][1]
    assert (pair["t"], pair["name"], pair["k"]) == ("namedtuple", "Pair", ["left", "right"])
    assert contract["outputs"][-1] == {"kind": "none"}


def test_ranges_symbols_and_derived_sizes() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, y])

    batch = torch.export.Dim("batch", min=2, max=9)
    shapes = {"x": {0: batch}, "y": {0: 2 * batch}}
    program = capture(Model(), (torch.randn(3, 4), torch.randn(6, 4)), dynamic_shapes=shapes)
    contract = contract_of(program)
    x, y = contract["inputs"]
    symbol = x["shape"][0]["sym"]
    assert x["shape"] == [{"min": 2, "max": 9, "sym": symbol}, 4]
    assert y["shape"] == [{"min": 4, "max": 18, "expr": f"2*{symbol}"}, 4]
    assert contract["outputs"][0]["shape"][0]["max"] == 27


def test_a_dimension_without_a_maximum_is_refused_with_advice() -> None:
    program = capture(
        torch.nn.ReLU(), (torch.randn(3, 4),), dynamic_shapes={"input": {0: torch.export.Dim("n")}}
    )
    with pytest.raises(ExportError, match=r'size 0 of input has no maximum.*Dim\("size", max=64\)'):
        contract_of(program)


def test_an_unknown_container_keeps_its_field_names() -> None:
    @dataclass
    class Output:
        logits: torch.Tensor
        hidden: torch.Tensor

    pytree.register_dataclass(Output)
    contract = contract_of(captured(lambda x: Output(x + 1, x + 2), torch.randn(2)))
    out = contract["out_spec"]
    assert (out["t"], out["name"], out["k"]) == ("object", "Output", ["logits", "hidden"])
