"""PyTorch's own operator database as a source of calls: every OpInfo's samples, from fixed seeds.

``entries()`` gives the database by name (``add``, ``std.unbiased``), ``samples(entry, dtype)`` the
calls of one of them, and ``as_module(sample)`` a module that makes one such call, for export. Needs
nothing but torch, so that a peer in an environment of its own walks the very same table.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple
from zlib import crc32

import torch
from torch.utils import _pytree as pytree

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
# Their values are random or arbitrary: only shape, dtype and structure can be compared.
ARBITRARY = frozenset(
    """
    nn.functional.multi_head_attention_forward
    bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric
    log_normal multinomial new_empty new_empty_strided nn.functional.alpha_dropout
    nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d
    nn.functional.feature_alpha_dropout.with_train nn.functional.fractional_max_pool2d
    nn.functional.fractional_max_pool3d nn.functional.rrelu normal normal.in_place
    normal.number_mean pca_lowrank rand_like randint randint_like randn randn_like resize_
    svd_lowrank uniform
    """.split()
)


# Eager leaves open which of equal values comes first. Sorts are held to the stable order; of the
# others only the values are compared, not their indices.
SORTS = frozenset({"argsort", "msort", "sort"})
TIES = frozenset({"kthvalue", "median", "mode", "nanmedian", "topk"})
# Relative and absolute tolerance: a program's kernels round several times, in another order.
TOLERANCES = {
    torch.float64: (1e-9, 1e-11),
    torch.float32: (2e-5, 1e-5),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (1e-1, 1e-1),
    torch.complex64: (2e-5, 1e-5),
}


class Outcome(NamedTuple):
    """How a call ended: "passes", "refused" or "broken", with the reason of the last two; the dtype
    is that of the sample."""

    kind: str
    reason: str = ""
    dtype: str = ""


class Call(NamedTuple):
    """One sample: the operator's Python function, its arguments, and the dtype it was made for."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dtype: torch.dtype

    def run(self) -> Any:
        """What eager gives, on copies of the arguments."""
        with torch.no_grad(), quiet():
            return self.function(*copied(self.args), **copied(self.kwargs))

    def expected(self, name: str) -> Any:
        """What a program that makes the call must give: eager's result, of sorts the stable one."""
        if name not in SORTS:
            return self.run()
        options = dict(zip(("dim", "descending"), self.args[1:], strict=False)) | self.kwargs
        if name == "msort":
            options["dim"] = 0
        values = torch.sort(self.args[0], **(options | {"stable": True}))
        results = {"msort": values.values, "argsort": values.indices}
        return results.get(name, values)


class CallModule(torch.nn.Module):
    """A call as a module: its tensors are inputs, all else is constant."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.function = call.function
        leaves, self.spec = pytree.tree_flatten((call.args, call.kwargs))
        self.constants = [None if isinstance(v, torch.Tensor) else v for v in leaves]
        self.is_input = [isinstance(v, torch.Tensor) for v in leaves]

    def forward(self, *tensors: torch.Tensor) -> Any:
        remaining = iter(tensors)
        pairs = zip(self.constants, self.is_input, strict=True)
        leaves = [next(remaining) if is_input else v for v, is_input in pairs]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def as_module(call: Call) -> tuple[CallModule, tuple[torch.Tensor, ...]]:
    """The call as a module, and the inputs to call it with."""
    leaves = pytree.tree_leaves((call.args, call.kwargs))
    return CallModule(call).eval(), tuple(v for v in leaves if isinstance(v, torch.Tensor))


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of operators that torch calls beta or deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def copied(tree: Any) -> Any:
    """The same with copies of its tensors."""
    return pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, tree)


@cache
def entries() -> dict[str, Any]:
    """Every OpInfo that has a dtype of ours on the CPU, by its full name."""
    with quiet():
        from torch.testing._internal import common_utils
        from torch.testing._internal.common_methods_invocations import op_db
    # It walks the whole stack for each sample, to find a unittest.TestCase.
    common_utils.extract_test_fn = lambda: None
    samples: dict[str, Any] = {}
    for info in op_db:
        name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
        assert name not in samples, f"{name} is in the database twice"
        if any(d in info.supported_dtypes("cpu") for d in DTYPES):
            samples[name] = info
    return samples


def dtypes_of(name: str) -> list[torch.dtype]:
    """The dtypes of DTYPES that the operator takes."""
    supported = entries()[name].supported_dtypes("cpu")
    return [d for d in DTYPES if d in supported]


def samples(name: str, dtype: torch.dtype) -> Iterator[Call]:
    """The calls of one operator in one dtype, the same in every process."""
    info = entries()[name]
    seed = crc32(f"{name} {dtype}".encode())
    random.seed(seed)
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
            yield Call(info.op, (sample.input, *sample.args), dict(sample.kwargs), dtype)


def calls_to_export(name: str, *, whole: bool) -> Iterator[Call]:
    """The calls that go through a whole export: three in float32 and one in integers or bools.

    `whole` is False for the first one of each.
    """
    dtypes = dtypes_of(name)
    first = [d for d in dtypes if d == torch.float32] or dtypes[:1]
    other = [d for d in dtypes if not d.is_floating_point and d not in first][:1]
    for dtype in first + other:
        yield from spread(list(samples(name, dtype)), 3 if whole and dtype in first else 1)


def results_of(program: torch.export.ExportedProgram) -> tuple[Any, int]:
    """What eager gives for a program's example inputs, and how many results can be compared: none
    if they differ from call to call, as those of an LSTM with dropout do."""
    args, kwargs = program.example_inputs
    with torch.no_grad(), quiet():
        module = program.module()
        first, again = (module(*copied(args), **copied(kwargs)) for _ in range(2))
    leaves = [[torch.as_tensor(v) for v in pytree.tree_leaves(r)] for r in (first, again)]
    pairs = zip(*leaves, strict=True)
    same = all(torch.allclose(a, b, equal_nan=True) for a, b in pairs if a.numel())
    return first, (1 << 30) if same else 0


def compared(name: str) -> int:
    """How many of an operator's results have values that can be compared."""
    if name in ARBITRARY:
        return 0
    return 1 if name in TIES else 1 << 30


def assert_equal(index: int, got: Any, expected: Any, compared: int) -> None:
    """Raises AssertionError unless two results agree, in dtype and shape alone from `compared`."""
    if not isinstance(expected, torch.Tensor):
        same = got == expected or (got != got and expected != expected) or index >= compared
        assert type(got) is type(expected) and same, f"{got!r}, eager gives {expected!r}"
        return
    assert isinstance(got, torch.Tensor), f"{type(got).__name__}, eager gives a tensor"
    expected = expected.detach().resolve_conj().resolve_neg()
    if index >= compared and got.shape == expected.shape and got.dtype == expected.dtype:
        return
    relative, absolute = TOLERANCES.get(expected.dtype, (0.0, 0.0))
    floating = expected.dtype in TOLERANCES and expected.numel() > 0
    scale = float(expected.abs().max()) if floating else 1.0
    torch.testing.assert_close(
        got,
        expected,
        rtol=relative,
        atol=absolute * (max(scale, 1.0) if scale < float("inf") else 1.0),
        equal_nan=True,
        check_stride=False,
    )


def as_tuples(tree: Any) -> Any:
    """Named tuples, torch's own among them, as tuples: a program knows their names alone."""
    if isinstance(tree, tuple):
        return tuple(as_tuples(v) for v in tree)
    if isinstance(tree, list):
        return [as_tuples(v) for v in tree]
    return tree


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """At most `count` of the items, from first to last at even distances."""
    if len(items) <= count:
        return list(items)
    distance = (len(items) - 1) / max(count - 1, 1)
    return [items[round(i * distance)] for i in range(count)]
