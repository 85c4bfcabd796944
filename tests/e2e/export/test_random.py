"""Random operators from model to run: the program draws what eager draws after the same seed."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import rushlight as rl
from rushlight.errors import RunError

DEFAULT_SEED = 67280421310721


class Model(torch.nn.Module):
    def __init__(self, call: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(x)


MODELS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rand": lambda x: torch.rand(3, 4) + x,
    "randn": lambda x: torch.randn(30, 40)[:3, :4] + x,
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint": lambda x: torch.randint(-5, 1000, (3, 4)) + x,
    "randint_like": lambda x: torch.randint_like(x, 10),
    "randperm": lambda x: x[:, torch.randperm(4)],
    "bernoulli": torch.bernoulli,
    "bernoulli of doubles": lambda x: torch.bernoulli(x.double()),
    "bernoulli_": lambda x: x.clone().bernoulli_(0.3),
    "bernoulli_ of a tensor": lambda x: x.clone().bernoulli_(x),
    "normal of tensors": lambda x: torch.normal(x, x + 1.0),
    "normal of a mean": lambda x: torch.normal(x, 2.0),
    "normal of a deviation": lambda x: torch.normal(0.5, x),
    "normal_": lambda x: x.repeat(3, 4).normal_(1.0, 2.0),
    "uniform_": lambda x: x.clone().uniform_(1.0, 2.0),
    "exponential_": lambda x: x.clone().exponential_(2.0),
    "log_normal_": lambda x: x.clone().log_normal_(),
    "cauchy_": lambda x: x.clone().cauchy_(),
    "geometric_": lambda x: x.clone().geometric_(0.4),
    "random_": lambda x: x.clone().random_(),
    "random_ to": lambda x: x.clone().random_(5),
    "poisson": lambda x: torch.poisson(x * 20.0),
    "multinomial": lambda x: torch.multinomial(x + 0.1, 2),
    "multinomial with replacement": lambda x: torch.multinomial(x + 0.1, 9, True),
    "dropout": lambda x: F.dropout(x, 0.4, True),
    "dropout2d": lambda x: F.dropout2d(x[None], 0.4, True),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.4, True),
    "gumbel_softmax": F.gumbel_softmax,
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.3),
    "two equal draws": lambda x: torch.rand(3, 4) - torch.rand(3, 4) + x,
}


@pytest.mark.parametrize("name", MODELS)
def test_draws_what_eager_draws(name: str) -> None:
    model = Model(MODELS[name])
    x = torch.rand(3, 4, generator=torch.Generator().manual_seed(1))
    program = rl.export(model, (x,))  # which verifies with the default seed
    module = rl.load(program.buffer)
    for seed in (0, 2**40 + 7, -3):
        module.manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for _ in range(2):  # a second call goes on where the first one ended
                torch.testing.assert_close(module(x), model(x), rtol=1e-6, atol=1e-6)


def test_a_loaded_module_starts_from_the_default_seed() -> None:
    model = Model(MODELS["rand"])
    x = torch.zeros(3, 4)
    module = rl.load(rl.export(model, (x,)).buffer)
    first = module(x)
    assert not torch.equal(module(x), first)
    assert torch.equal(module.clone()(x), first)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(DEFAULT_SEED)
        assert torch.equal(model(x), first)


def test_export_leaves_the_callers_generator_alone() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        expected = torch.rand(4)
        torch.manual_seed(5)
        rl.export(Model(MODELS["dropout"]), (torch.zeros(3, 4),))
        assert torch.equal(torch.rand(4), expected)


def test_a_seed_out_of_range_is_refused() -> None:
    module = rl.load(rl.export(Model(MODELS["rand"]), (torch.zeros(3, 4),)).buffer)
    with pytest.raises(RunError, match="seed is 18446744073709551616, but must be from"):
        module.manual_seed(2**64)
    with pytest.raises(RunError, match="seed is 'a', but must be from"):
        module.manual_seed("a")  # type: ignore[arg-type]


def test_dropout_of_a_module_in_training_draws_like_eager() -> None:
    layers = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2)
    )
    x = torch.zeros(5, 4)
    module = rl.load(rl.export(layers.train(), (x,)).buffer)
    module.manual_seed(3)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(3)
        torch.testing.assert_close(module(x), layers(x))


class TwoMethods(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.rand_like(x)


def test_methods_share_one_generator() -> None:
    x = torch.zeros(6)
    exported = torch.export.export(TwoMethods(), (x,))
    module = rl.load(rl.export({"a": exported, "b": exported}).buffer)
    module.manual_seed(9)
    got = torch.cat([module.a(x), module.b(x)])
    assert torch.equal(got, torch.rand(12, generator=torch.Generator().manual_seed(9)))


class Walk(torch.nn.Module):
    """State and draws of both kinds: uniform bits, and a normal variate that is kept for later."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("at", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.at.add_(torch.randn(3) + torch.rand(3) * x)
        return self.at.clone()


def test_snapshots_and_forks_have_the_generator() -> None:
    x = torch.ones(3)
    program = rl.export(Walk(), (x,)).buffer
    module = rl.load(program)
    module(x)
    before = module.state.snapshot()
    fork = module.fork()
    wanted = [module(x) for _ in range(300)]  # beyond the 624 words of the generator
    module.state.restore(before)
    other = rl.load(program)
    other(x)
    other.manual_seed(1)
    other.state.restore(pickle.loads(pickle.dumps(before)))
    for one in (module, fork, other):
        for value in wanted:
            assert torch.equal(one(x), value)
    module.state.reset()
    assert not torch.equal(module(x), rl.load(program)(x)), "reset() leaves the generator"
