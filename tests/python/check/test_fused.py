"""Quantised programs are checked fused operator by fused operator, and may be as chaotic as eager.

The models square what rounding errors there are at every layer; a backend in Python stands for one
that computes something wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import rushlight as rl
from delegates import Interpretation, Interpreter, taking
from rushlight import check, runtime
from rushlight.check import method as check_method
from rushlight.check.fused import _departure, amplifies_roundings
from rushlight.runtime.forms import KEY

DATA = [(torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(i)),) for i in range(4)]


class Layers(torch.nn.Module):
    """Convolutions whose results `gain` spreads over many periods of a sine."""

    def __init__(self, n: int, gain: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.layers = torch.nn.ModuleList(torch.nn.Conv2d(8, 8, 3, padding=1) for _ in range(n))
        self.gain = gain

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        for layer in self.layers:
            y = y + torch.sin(self.gain * torch.relu(layer(y)))
        return y


class Masked(Layers):
    """Some of its results are infinite, whatever the roundings."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        mask = torch.arange(y.shape[-1]) > 4
        return y.masked_fill(mask, -torch.inf)


CHAOS = Layers(10, 400.0).eval()
CALM = Layers(3, 1.0).eval()
MASKED = Masked(3, 1.0).eval()
MASKED_CHAOS = Masked(10, 400.0).eval()


class Dynamic(torch.nn.Module):
    """The same with linear layers."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(8))
        self.gain = gain

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + torch.sin_(self.gain * layer(x))
        return x


class Wrong(Interpreter):
    """Changes the results of calls whose payload has an operator.

    Args:
        operator: as the payload names it.
        amount: that is added.
        only: of which payloads.
    """

    def __init__(
        self, operator: str, amount: int, only: Callable[[dict[str, Any]], bool] = lambda p: True
    ) -> None:
        self.operator, self.amount, self.only = operator, amount, only

    def run(self, handle: Interpretation, inputs: Sequence[Any], at: Callable[[str], None]) -> Any:
        results = super().run(handle, inputs, at)
        names = [call["target"] for call in handle.program["calls"]]
        if not any(self.operator in name for name in names) or not self.only(handle.program):
            return results
        return [(r.float() + self.amount).clamp(-128, 127).to(r.dtype) for r in results]


@contextmanager
def registered(backend: Any) -> Iterator[None]:
    runtime.register_backend("Interpreted", backend)
    try:
        yield
    finally:
        runtime.unregister_backend("Interpreted")


@pytest.fixture(scope="module")
def chaos() -> torch.export.ExportedProgram:
    return rl.quantize(CHAOS, recipe="int16x8", calibrate=DATA)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_a_model_that_amplifies_roundings_is_exported(
    backend: str, chaos: torch.export.ExportedProgram
) -> None:
    program = rl.export(chaos, backend=backend)
    assert any("depend on how single values are" in text for text in program.quantization)
    got, wanted = rl.load(program.buffer)(*DATA[0]), chaos.module()(*DATA[0])
    assert (torch.as_tensor(got) - wanted).norm() > 0.05 * wanted.norm(), "the model is too calm"


def test_a_fat_program_has_no_known_answer_that_roundings_change(
    chaos: torch.export.ExportedProgram,
) -> None:
    calm = rl.quantize(CALM, recipe="int8", calibrate=DATA)
    for program, has_answer in ((calm, True), (chaos, False)):
        made = rl.export(program, backend=["cpu"], verify=False)
        index = json.loads(made.manager._named_data()[KEY])
        assert ("answer" in index["methods"]["forward"]) == has_answer
        chosen = [choice.form for choice in rl.load(made.buffer).forms if choice.chosen]
        assert chosen == ["cpu"]


@pytest.mark.parametrize(("model", "depends"), [(MASKED, False), (MASKED_CHAOS, True)])
def test_infinite_results_are_no_departure(model: torch.nn.Module, depends: bool) -> None:
    quantised = rl.quantize(model, recipe="int16x8", calibrate=DATA)
    assert amplifies_roundings(quantised, DATA[0], {}, allowed=0.05) == depends
    program = rl.export(quantised, backend="cpu")
    assert any("depend on how single" in text for text in program.quantization) == depends


@pytest.mark.parametrize(
    ("got", "wanted", "departure"),
    [
        (3.0, 2.0, 0.5),
        (torch.inf, torch.inf, 0.0),
        ([1.0, torch.inf], [1.0, torch.inf], 0.0),
        ([1.0, torch.nan], [1.0, torch.nan], 0.0),
        ([3.0, torch.inf], [2.0, torch.inf], 0.5),
        ([2.0, torch.inf], [2.0, -torch.inf], torch.inf),
        ([2.0, 1.0], [2.0, torch.inf], torch.inf),
        ([2.0, torch.nan], [2.0, 1.0], torch.inf),
    ],
)
def test_how_far_infinite_values_depart(
    got: float | list[float], wanted: float | list[float], departure: float
) -> None:
    assert _departure([torch.tensor(got)], [torch.tensor(wanted)]) == departure


def test_a_model_that_is_quantised_by_its_values_is_exported() -> None:
    x = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
    rl.export(Dynamic(400.0).eval(), (x,), quantize="int8-dynamic", backend="cpu")


def test_pieces_are_made_only_if_the_whole_departs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_method, "fault_in_quantised", None)
    rl.export(CALM, DATA[0], quantize="int8", calibrate=DATA)


EVERYTHING = ("quantized_decomposed", "aten")


@pytest.mark.parametrize("model", [CALM, CHAOS, MASKED], ids=["calm", "chaotic", "masked"])
def test_an_operator_that_is_computed_wrongly_is_named(model: torch.nn.Module) -> None:
    """Every conversion to integers is off by 40, in a backend that takes one call at a time."""
    taken = taking("quantized_decomposed.quantize_per_tensor")
    program = rl.quantize(model, recipe="int8", calibrate=DATA)
    with registered(Interpreter):
        rl.export(program, backend=taken)
    with registered(Wrong("quantize_per_tensor", 40)), pytest.raises(rl.ExportError) as caught:
        rl.export(program, backend=taken)
    text = str(caught.value)
    assert "departs on eager's own inputs" in text and "allowed is one unit" in text


def test_the_line_of_the_operator_is_named() -> None:
    """The sines are wrong; before them, nothing is."""
    program = rl.quantize(CHAOS, recipe="int8", calibrate=DATA)
    wrong = Wrong("aten::sin", 1)
    with registered(wrong), pytest.raises(rl.ExportError, match="does not compute what") as caught:
        rl.export(program, backend=taking("aten.sin"))
    assert "torch.sin(self.gain * torch.relu(layer(y)))" in str(caught.value)


@pytest.mark.parametrize("model", [CALM, MASKED], ids=["calm", "masked"])
def test_a_fault_that_no_single_operator_shows_is_found(model: torch.nn.Module) -> None:
    """The backend is right about the pieces and wrong about the whole model, which is calm."""

    def is_whole(program: dict[str, Any]) -> bool:
        return len(program["inputs"]) == 1 and len(program["outputs"]) == 1

    class Shifted(Wrong):
        def run(self, handle: Any, inputs: Any, at: Any) -> Any:
            results = Interpreter.run(self, handle, inputs, at)
            return [r + 1 for r in results] if self.only(handle.program) else results

    program = rl.quantize(model, recipe="int8", calibrate=DATA)
    with registered(Shifted("", 0, is_whole)), pytest.raises(rl.ExportError) as caught:
        rl.export(program, backend=taking(*EVERYTHING))
    text = str(caught.value)
    assert "Each of its" in text and "the whole departs by" in text


def test_what_is_counted_is_linear_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pieces are lowered as one program, so that the work is linear in the model's size."""
    lowered = []

    def lower(program: torch.export.ExportedProgram) -> Any:
        lowered.append(len(program.graph.nodes))
        return check_method._portable(program)

    program = rl.quantize(CHAOS, recipe="int16x8", calibrate=DATA)
    made = rl.export(program, verify=False)
    check.check_method(made.manager, "forward", program, DATA[0], {}, lower=lower)
    assert len(lowered) == 1 and lowered[0] < 2 * len(program.graph.nodes)
