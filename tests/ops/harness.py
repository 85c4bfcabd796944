"""One case table for all kernels, compared with eager PyTorch.

A file ``cases/<family>/cases_<name>.py`` holds a list ``OPS`` of :class:`OpCases`, one per
operator, and may hold a list ``ERRORS`` of :class:`ErrorCase`; ``test_kernels.py`` runs them all,
for every instruction set. A case is what the operator is called with; what it should give is
eager's business:

    def samples(make: Maker) -> Iterator[Sample]:
        yield Sample(make.tensor(2, 3), make.tensor(3), alpha=2)

    OPS = [OpCases("aten::add.out", samples)]

Arguments are given as for the functional operator (defaults may be left out); the harness finds
that operator in torch, fills in the defaults, makes the outs (of eager's dtype, shape and order of
dimensions, filled with garbage and guarded on both sides), calls the kernel and compares.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
import yaml

from rushlight.ir.spec import SCALAR_TYPES

OPS_FILE = Path(__file__).resolve().parents[2] / "ops" / "ops.yaml"
GUARD_BYTES = 64
GARBAGE = 0x5A
THREADS = 3  # with which every case runs as well

# Relative and absolute tolerance by dtype; integers and bools must be equal.
TOLERANCES = {
    torch.float64: (1e-10, 1e-12),
    torch.float32: (2e-6, 1e-6),
    torch.float16: (1.5e-3, 1e-3),
    torch.bfloat16: (1.2e-2, 1e-2),
    torch.complex64: (2e-6, 1e-6),
}

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
REAL = FLOATING + INTEGRAL


@cache
def native() -> Any:
    """The extension module with ``run_kernel`` (RUSHLIGHT_KERNELS_MODULE names another one)."""
    return importlib.import_module(os.environ.get("RUSHLIGHT_KERNELS_MODULE", "rushlight._core"))


def instruction_sets() -> list[str]:
    """What kernels have loops for: others, as avx512vnni, add products of bytes to one of these."""
    names = native().kernel_isas()
    return [name for name in names if not any(name.startswith(n) for n in names if n != name)]


class Sample:
    """Arguments of one call of the functional operator.

    ``out_dim_order`` asks for outs in that order of dimensions instead of eager's.
    """

    def __init__(
        self, *args: Any, out_dim_order: Sequence[int] | None = None, **kwargs: Any
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.out_dim_order = out_dim_order

    def __repr__(self) -> str:
        parts = [describe(a) for a in self.args]
        parts += [f"{k}={describe(v)}" for k, v in self.kwargs.items()]
        if self.out_dim_order is not None:
            parts.append(f"out_dim_order={list(self.out_dim_order)}")
        return f"({', '.join(parts)})"


@dataclass(frozen=True)
class OpCases:
    """All cases of one operator.

    ``reference`` replaces the functional operator that the harness finds by itself. It is called
    with the sample's arguments and returns a tensor, or a tuple or list of them. ``tolerance``
    replaces the entry of TOLERANCES for float32 and complex64 (relative, absolute; both 0 stand for
    all dtypes), and ``values`` is False where
    only shape and dtype can be compared (``empty``).
    """

    op: str
    samples: Callable[[Maker], Iterable[Sample]]
    reference: Callable[..., Any] | None = None
    tolerance: tuple[float, float] | None = None
    values: bool = True


@dataclass(frozen=True)
class ErrorCase:
    """A call that must fail: all arguments of the kernel, outs included, and a pattern that the
    message must match."""

    op: str
    args: Callable[[Maker], list[Any]]
    message: str


class Maker:
    """Makes tensors from a fixed seed."""

    def __init__(self, seed: str) -> None:
        self.generator = torch.Generator().manual_seed(crc32(seed.encode()))

    def tensor(
        self,
        *shape: int,
        dtype: torch.dtype = torch.float32,
        low: float = -5.0,
        high: float = 5.0,
        order: Sequence[int] | None = None,
        special: bool = False,
    ) -> torch.Tensor:
        """A random tensor of values from low to high.

        ``order`` is its order of dimensions, outermost first; ``special`` puts NaN, infinities,
        zeros and subnormals among the values.
        """
        if dtype == torch.complex64:
            parts = [self.tensor(*shape, low=low, high=high, special=special) for _ in range(2)]
            pair = torch.complex(parts[0], parts[1])
            return pair if order is None else in_order(pair, order)
        values = torch.rand(shape, generator=self.generator, dtype=torch.float64)
        values = values * (high - low) + low
        if special:
            odd = torch.tensor(
                [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 1e-40, 3e38]
            )
            flat = values.flatten()
            count = min(len(odd), flat.numel())
            flat[:count] = odd[:count].double()
            values = flat.reshape(shape)
        if dtype == torch.bool:
            result = values > (low + high) / 2
        elif dtype.is_floating_point:
            result = values.to(dtype)
        else:
            result = values.round().to(torch.int64).to(dtype)
        return result if order is None else in_order(result, order)

    def integers(
        self, *shape: int, low: int, high: int, dtype: torch.dtype = torch.int64
    ) -> torch.Tensor:
        """Random integers from low to high - 1."""
        return torch.randint(low, high, shape, generator=self.generator).to(dtype)


def in_order(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """The same values, lying in memory in that order of dimensions (outermost first)."""
    inverse = [list(order).index(d) for d in range(len(order))]
    return tensor.permute(list(order)).contiguous().permute(inverse)


def dim_order(tensor: torch.Tensor) -> list[int]:
    """Dimensions from the greatest stride to the smallest."""
    return sorted(range(tensor.dim()), key=lambda d: (-tensor.stride(d), d))


def describe(value: Any) -> str:
    """A short text of an argument, for messages."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        order = dim_order(value)
        suffix = "" if order == sorted(order) else f" order {order}"
        return f"{name}{list(value.shape)}{suffix}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(describe(v) for v in value) + "]"
    return repr(value)


# --- from an out operator to what eager calls ---------------------------------------------------


@cache
def listed() -> dict[str, dict[str, Any]]:
    """The rows of ops/ops.yaml by operator."""
    return {row["op"]: row for row in yaml.safe_load(OPS_FILE.read_text(encoding="utf-8"))}


@cache
def out_schema(op: str) -> Any:
    """The schema of a runtime name such as ``aten::add.out``, torch's or that of ops.yaml."""
    own = listed()[op].get("schema")
    if own is not None:
        return torch._C.parse_schema("rushlight::op" + own)
    name, _, overload = op.partition(".")
    return torch._C._get_schema(name, overload)


def is_written(argument: Any) -> bool:
    """True for the outs of an operator, and for self of an in-place one."""
    return argument.alias_info is not None and argument.alias_info.is_write


@cache
def functional(op: str) -> Callable[..., Any]:
    """The overload without outs that has otherwise the same arguments."""
    schema = out_schema(op)
    wanted = [str(a.type) for a in schema.arguments if not (is_written(a) and a.is_out)]
    namespace, _, name = op.partition(".")[0].partition("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    match = None
    for overload_name in packet.overloads():
        overload = getattr(packet, overload_name)
        arguments = overload._schema.arguments
        types = [str(a.type) for a in arguments]
        if any(a.is_out for a in arguments) or types[: len(wanted)] != wanted:
            continue
        # Beside the same arguments there may be others with defaults, such as a dtype.
        if all(a.has_default_value() for a in arguments[len(wanted) :]):
            match = overload if match is None or len(types) == len(wanted) else match
    if match is not None:
        return match  # type: ignore[no-any-return]
    raise AssertionError(f"no functional overload for {op}: the table needs a reference")


def bind(schema: Any, sample: Sample) -> list[Any]:
    """The sample's arguments in schema order with defaults, outs left out."""
    bound: list[Any] = []
    arguments = list(sample.args)
    kwargs = dict(sample.kwargs)
    for argument in schema.arguments:
        if argument.is_out:
            continue
        if arguments:
            bound.append(arguments.pop(0))
        elif argument.name in kwargs:
            bound.append(kwargs.pop(argument.name))
        else:
            assert argument.has_default_value(), f"{schema}: {argument.name} is missing"
            bound.append(argument.default_value)
    kwargs.pop("dtype", None)  # of the functional operator only; outs carry it here
    assert not arguments and not kwargs, f"{schema}: arguments too many: {arguments} {kwargs}"
    return bound


# --- outs and the call --------------------------------------------------------------------------


class Guarded:
    """An out tensor with garbage in it and guard bytes around it."""

    def __init__(self, like: torch.Tensor, order: Sequence[int] | None) -> None:
        order = list(order) if order is not None else dim_order(like)
        nbytes = like.numel() * like.element_size()
        self.raw = torch.full((nbytes + 2 * GUARD_BYTES,), GARBAGE, dtype=torch.uint8)
        flat = self.raw[GUARD_BYTES : GUARD_BYTES + nbytes].view(like.dtype)
        inverse = [order.index(d) for d in range(like.dim())]
        self.tensor = flat.reshape([like.shape[d] for d in order]).permute(inverse)
        self.order = order

    def argument(self) -> tuple[torch.Tensor, list[int]]:
        """What run_kernel takes."""
        return self.tensor, self.order

    def intact(self) -> bool:
        """True if nothing wrote outside of the tensor."""
        guards = torch.cat([self.raw[:GUARD_BYTES], self.raw[-GUARD_BYTES:]])
        return bool((guards == GARBAGE).all())


def native_argument(value: Any) -> Any:
    """An argument as run_kernel takes it."""
    if isinstance(value, torch.dtype):
        return int(SCALAR_TYPES[value])
    if isinstance(value, (torch.layout, torch.memory_format, torch.device)):
        return None
    if isinstance(value, tuple):
        return list(value)
    return value


def as_list(result: Any) -> list[torch.Tensor]:
    """The tensors of an operator's result."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def expected_of(cases: OpCases, sample: Sample) -> list[torch.Tensor]:
    """What eager gives."""
    reference = cases.reference if cases.reference is not None else functional(cases.op)
    with torch.no_grad():
        return as_list(reference(*clone_all(sample.args), **sample.kwargs))


def clone_all(args: Iterable[Any]) -> list[Any]:
    """Copies of the tensors among the arguments, strides kept."""
    return [torch.empty_like(a).copy_(a) if isinstance(a, torch.Tensor) else a for a in args]


def check(cases: OpCases, sample: Sample, isas: Sequence[str], scratch: int = 1 << 20) -> None:
    """Runs one sample on each instruction set, and on the last once more with several threads,
    which must not change a bit; raises AssertionError with what differs."""
    expected = expected_of(cases, sample)
    schema = out_schema(cases.op)
    got: list[torch.Tensor] = []
    for isa, threads in [*((isa, 1) for isa in isas), (isas[-1], THREADS)]:
        where = f"{cases.op}{sample} on {isa}, threads={threads}"
        options = {"isa": isa, "scratch": scratch, "threads": threads}
        before = got
        if any(a.is_out for a in schema.arguments):
            got = call_out(cases.op, sample, expected, options, where)
        else:
            args = clone_all(sample.args)
            bound = [native_argument(v) for v in bind(schema, Sample(*args, **sample.kwargs))]
            native().run_kernel(cases.op, bound, **options)
            got = [args[0]]
        if cases.values and threads == 1:
            for index, (e, g) in enumerate(zip(expected, got, strict=True)):
                compare(g, e, cases.tolerance, f"{where}: out {index}")
        elif cases.values:
            for index, (b, g) in enumerate(zip(before, got, strict=True)):
                assert same_bits(b, g), f"{where}: out {index}: {g}, not {b} as with one thread"


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True if every byte is the same, those of NaNs included."""
    return torch.equal(a.flatten().view(torch.uint8), b.flatten().view(torch.uint8))


def call_out(
    op: str, sample: Sample, expected: list[torch.Tensor], options: dict[str, Any], where: str
) -> list[torch.Tensor]:
    """Calls an operator with outs, and checks all but their values.

    Inputs that the operator writes as well follow its outs, as they do in ``expected``.
    """
    schema = out_schema(op)
    is_list = "List" in str(schema.arguments[-1].type)
    count = len(expected) if is_list else sum(a.is_out for a in schema.arguments)
    outs = [Guarded(e, sample.out_dim_order) for e in expected[:count]]
    arguments: list[Any] = [o.argument() for o in outs]
    if is_list:
        arguments = [arguments]
    copies = clone_all(bind(schema, sample))
    bound = [native_argument(v) for v in copies]
    _, shapes = native().run_kernel(op, bound + arguments, **options)
    assert all(o.intact() for o in outs), f"{where}: wrote outside of its output"
    for out, shape in zip(outs, shapes[-1] if is_list else shapes[-len(outs) :], strict=True):
        wanted = list(out.tensor.shape)
        assert wanted == list(shape), f"{where}: shape {shape}, not {wanted}"
    inputs = [a for a in schema.arguments if not a.is_out]
    written = [v for a, v in zip(inputs, copies, strict=True) if is_written(a)]
    for argument, b, a in zip(inputs, bind(schema, sample), copies, strict=True):
        if isinstance(b, torch.Tensor) and not is_written(argument):
            same = torch.equal(torch.nan_to_num(b), torch.nan_to_num(a))
            assert same, f"{where}: {argument.name} was written"
    return [*(o.tensor for o in outs), *written]


def compare(
    got: torch.Tensor,
    expected: torch.Tensor,
    tolerance: tuple[float, float] | None,
    where: str,
) -> None:
    """Raises unless the values agree within the tolerance of the dtype; NaN equals NaN."""
    relative, absolute = TOLERANCES.get(expected.dtype, (0.0, 0.0))
    exact = tolerance == (0.0, 0.0)
    if tolerance is not None and (exact or expected.dtype in (torch.float32, torch.complex64)):
        relative, absolute = tolerance
    try:
        torch.testing.assert_close(
            got, expected, rtol=relative, atol=absolute, equal_nan=True, check_stride=False
        )
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from None


def case_modules() -> Iterator[Any]:
    """The modules cases_*.py in and below the folder of cases, by their names."""
    folder = Path(__file__).parent
    for path in sorted((folder / "cases").rglob("cases_*.py"), key=lambda path: path.name):
        parts = path.relative_to(folder).with_suffix("").parts
        yield importlib.import_module(".".join([__package__, *parts]))


def all_ops() -> list[OpCases]:
    """Every operator of every case file."""
    return [cases for module in case_modules() for cases in module.OPS]


def all_errors() -> list[ErrorCase]:
    """Every failing call of every case file."""
    return [case for module in case_modules() for case in getattr(module, "ERRORS", [])]
