"""State with two names, and state whose elements share memory: equals eager, or is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import rushlight as rl


class Sum(nn.Module):
    """Adds its input to a buffer."""

    def __init__(self, total: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("total", total)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2


class Model(nn.Module):
    """Buffers, and a function of them and an input."""

    def __init__(self, forward: Callable[..., torch.Tensor], **buffers: torch.Tensor) -> None:
        super().__init__()
        self._forward = forward
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._forward(self, x)


X = torch.arange(12.0).reshape(3, 4)
BACKENDS = ["portable", "cpu", "xnnpack"]


def twice() -> nn.Module:
    """A module that is called by two names."""
    module = nn.Module()
    module.first = module.second = Sum(torch.zeros(3, 4))
    module.forward = lambda x: module.first(x) + module.second(x)  # type: ignore[method-assign]
    return module


def one_memory(read: bool) -> nn.Module:
    def forward(model: Model, x: torch.Tensor) -> torch.Tensor:
        model.written.add_(x)
        if not read:
            model.other.mul_(2)
        return model.other + model.written

    memory = torch.ones(3, 4)
    return Model(forward, other=memory, written=memory)


def of_a_parameter() -> nn.Module:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("mean", self.weight.data)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.mean.mul_(0.5).add_(x[0])
            return x * self.weight

    return Layer()


SHARED: dict[str, Callable[[], nn.Module]] = {
    "a module that is used twice": twice,
    "two buffers, one written": lambda: one_memory(read=True),
    "two buffers, both written": lambda: one_memory(read=False),
    "a parameter": of_a_parameter,
}


def runs_like_eager(make: Callable[[], nn.Module], backend: str) -> None:
    """Check that two calls of the program give the results of two calls of a new model, and that
    the export did not change the exported model."""
    model, fresh = make().eval(), make().eval()
    module = rl.load(rl.export(model, (X,), backend=backend).buffer)
    for x in (X, X + 1):
        with torch.no_grad():
            wanted = fresh(x)
        torch.testing.assert_close(module(x), wanted)
    before = make().state_dict()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SHARED)
def test_state_with_two_names_is_one(name: str, backend: str) -> None:
    runs_like_eager(SHARED[name], backend)


def add_to_written(model: Model, x: torch.Tensor) -> torch.Tensor:
    model.written.add_(x)
    return model.other.sum() + x


REFUSED: dict[str, Callable[[torch.Tensor], dict[str, torch.Tensor]]] = {
    "a slice": lambda memory: {"written": memory[:3], "other": memory},
    "the whole": lambda memory: {"written": memory[:3], "other": memory[2:]},
    "transposed": lambda memory: {"written": memory[:3], "other": memory[:3].t()},
}


@pytest.mark.parametrize("name", REFUSED)
def test_state_that_shares_a_part_of_its_memory_is_refused_by_name(name: str) -> None:
    model = Model(add_to_written, **REFUSED[name](torch.zeros(6, 4)))
    problem = r"writes 'written'.* in common with 'other'.*\.py:\d+ in add_to_written.*Register one"
    with pytest.raises(rl.ExportError, match=problem):
        rl.export(model, (X,))


def test_a_written_buffer_whose_elements_share_memory_is_refused() -> None:
    overlapping = torch.zeros(8).as_strided((3, 4), (2, 1))
    model = Model(add_to_written, written=overlapping, other=torch.zeros(1))
    with pytest.raises(rl.ExportError, match=r"writes 'written', whose elements share memory"):
        rl.export(model, (X,))


def read(model: Model, x: torch.Tensor) -> torch.Tensor:
    return x + model.other


def write(model: Model, x: torch.Tensor) -> torch.Tensor:
    model.written.copy_(x + model.written)
    return model.written * 2


LAYOUTS: dict[str, Callable[[], nn.Module]] = {
    "expanded": lambda: Model(read, other=torch.arange(4.0).expand(3, 4)),
    "a number, expanded": lambda: Model(read, other=torch.tensor(2.0).expand(3, 4)),
    "overlapping": lambda: Model(read, other=torch.arange(8.0).as_strided((3, 4), (2, 1))),
    "transposed": lambda: Model(write, written=torch.ones(4, 3).t()),
    "every second element": lambda: Model(write, written=torch.ones(6, 8)[::2, ::2]),
    "halves of one memory": lambda: Model(
        add_to_written, **dict(zip(["written", "other"], torch.ones(6, 4).chunk(2), strict=True))
    ),
    "empty": lambda: Model(
        lambda model, x: torch.cat([x, model.other.add_(1)]), other=torch.ones(0, 4)
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_buffers_of_any_layout(name: str, backend: str) -> None:
    runs_like_eager(LAYOUTS[name], backend)


class Calls(nn.Module):
    """Writes a parameter and a buffer in a block without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = nn.Parameter(torch.zeros(4))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            self.calls.add_(1)
            self.total.add_(x[0])
        return self.calls * 2, self.total + 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_functional", [False, True])
def test_what_a_block_without_gradients_writes_is_state(backend: str, is_functional: bool) -> None:
    model = Calls()
    captured = torch.export.export(model, (X,))
    program = rl.export(
        captured.run_decompositions() if is_functional else captured, backend=backend
    )
    assert not model.calls.any() and not model.total.any()
    run = rl.load(program.buffer)["forward"]
    for _ in range(3):
        for got, wanted in zip(run(X), model(X), strict=True):
            torch.testing.assert_close(torch.as_tensor(got), wanted.detach())


def in_a_list(model: Model, x: torch.Tensor) -> torch.Tensor:
    torch._foreach_mul_([x], 2)
    return x + 1


def in_a_block(model: Model, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        x.mul_(2)
    return x + 1


@pytest.mark.parametrize("forward", [in_a_list, in_a_block])
def test_a_written_input_is_seen(forward: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(rl.ExportError, match="the model writes its input 'x'"):
        rl.export(torch.export.export(Model(forward), (X,)))


def test_a_written_tensor_that_is_no_buffer_gets_fitting_advice() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total = torch.zeros(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x[0])
            return self.total + x

    with pytest.raises(rl.ExportError, match="Register the tensor as a buffer") as caught:
        rl.export(Plain(), (X,))
    assert "other operators" not in str(caught.value)
