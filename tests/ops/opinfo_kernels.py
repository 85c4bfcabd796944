"""Calls of the operator database, taken apart to Core ATen, over our kernels.

A call runs under a mode that decomposes what the compiler decomposes. Every ATen operator that is
reached then runs twice: in eager, and through the harness on the very same arguments, made dense,
if it has a kernel. Operators without one are counted as gaps.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import is_non_overlapping_and_dense_or_false as is_dense
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from rushlight.edge.decompositions import decomposition_table
from rushlight.edge.passes.views_to_copies import copy_of
from rushlight.ir.dialect import VIEW_NAMES
from rushlight.ir.operators import out_variant, runtime_name

from . import opinfo
from .harness import (
    FLOATING,
    INTEGRAL,
    OpCases,
    Sample,
    call_out,
    check,
    compare,
    instruction_sets,
    listed,
    out_schema,
)

aten = torch.ops.aten
# The order of sums and the last bits of a function differ from eager's by more than one rounding
# where a value comes of many: float32 (relative, absolute), on values of up to 10.
TOLERANCE = (2e-5, 2e-5)
# Which of equal values comes first is not promised, so their indices may differ.
TIES = frozenset({"aten::topk.values"})
# Eager's own float64 results have seven to nine digits: cases_special.py and cases_bessel.py hold
# ours to exact ones.
INEXACT = frozenset(
    {
        *("aten::igamma.out", "aten::igammac.out", "aten::polygamma.out"),
        *(f"aten::special_bessel_{name}.out" for name in ("j0", "j1", "y0", "y1")),
        "aten::special_airy_ai.out",
    }
)
# What a program never runs: layouts and devices are settled at export.
LEFT_OUT = frozenset(
    """
    aten::detach aten::lift_fresh aten::alias aten::_conj aten::_neg_view aten::_to_copy
    aten::clone aten::copy aten::resize aten::set aten::contiguous aten::_local_scalar_dense
    aten::is_same_size aten::equal aten::_assert_async aten::_assert_scalar
    """.split()
)
ARBITRARY = frozenset({"aten::empty.out", "aten::empty_like.out", "aten::empty_strided.out"})
_GROUPS = {
    "floating": set(FLOATING),
    "integral": set(INTEGRAL),
    "real": {*FLOATING, *INTEGRAL},
    "bool": {torch.bool},
}


@cache
def rules() -> dict[OpOverload, Any]:
    """What the compiler decomposes, and how."""
    table: Any = decomposition_table()
    return table.materialize()  # type: ignore[no-any-return]


@dataclass
class Tally:
    """What ran: kernel calls by kernel and dtype, and calls of operators without one."""

    kernels: Counter[tuple[str, str]] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)


@cache
def kernel_of(target: OpOverload) -> tuple[OpOverload, str] | None:
    """The functional operator and the kernel that stand for `target` in a program."""
    functional: OpOverload | None = target
    if target._schema.is_mutable:
        functional = functional_of(target)
    elif target._schema.name in VIEW_NAMES:
        try:
            functional = copy_of(target)
        except AttributeError:  # the compiler knows no copy of this view
            return None
    elif target is aten._unsafe_view.default:
        functional = aten.view_copy.default
    out = out_variant(functional) if functional is not None else None
    if functional is None or out is None or runtime_name(out) not in listed():
        return None
    return functional, runtime_name(out)


def functional_of(target: OpOverload) -> OpOverload | None:
    """`aten.add.Tensor` of `aten.add_.Tensor`, with the same arguments; None if there is none."""
    name = target._schema.name.split("::")[1]
    if not name.endswith("_") or any(a.is_out for a in target._schema.arguments):
        return None
    packet = getattr(aten, name[:-1], None)
    overload = getattr(packet, target._overloadname, None)
    return overload if isinstance(overload, OpOverload) else None


def takes(op: str, tensors: list[torch.Tensor]) -> bool:
    """True if the row of ops.yaml allows the dtypes of these tensors."""
    row = listed()[op]["dtypes"]
    if row in ("any", "none"):
        return all(not t.dtype.is_complex for t in tensors)
    allowed: set[torch.dtype] = set().union(*(_GROUPS.get(g, set()) for g in row.split("+")))
    return all(t.dtype in allowed | {torch.int64, torch.int32, torch.bool} for t in tensors)


def with_tensors(target: OpOverload, args: Any) -> list[Any]:
    """The arguments with tensors of the numbers that stand where the schema says tensor."""
    tensors = [v for v in pytree.tree_leaves(args) if isinstance(v, torch.Tensor)]

    def made(schema: Any, value: Any) -> Any:
        is_number = isinstance(value, bool | int | float)
        if not is_number or not isinstance(schema.type, torch.TensorType):
            return value
        return torch.tensor(value, dtype=torch.result_type(tensors[0], value) if tensors else None)

    pairs = zip(target._schema.arguments, args, strict=False)
    return [made(schema, value) for schema, value in pairs]


def dense(tree: Any) -> Any:
    """The tree with copies of its tensors that lie dense in their own order of dimensions."""

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach().resolve_conj().resolve_neg()
        if is_dense(value):
            return value.clone()
        return value.clone(memory_format=torch.contiguous_format)

    return pytree.tree_map(one, tree)


class OverKernels(TorchDispatchMode):
    """Runs what is called in eager, and every operator that has a kernel in that as well.

    Raises:
        AssertionError: naming kernel and arguments, if they differ.
    """

    def __init__(self, tally: Tally, isas: list[str]) -> None:
        super().__init__()
        self.tally = tally
        self.isas = isas
        self.table = rules()

    def __torch_dispatch__(
        self, target: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        rule = self.table.get(target)
        if rule is not None:
            with self:
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if kernel_of(target) is None and target._can_decompose():
            with self:
                return target.decompose(*args, **kwargs)
        self.compare(target, args, kwargs)
        return target(*args, **kwargs)

    def compare(self, target: OpOverload, args: Any, kwargs: Any) -> None:
        """Runs the kernel of `target`, if there is one, against eager."""
        name = target._schema.name.removesuffix("_")
        if name in LEFT_OUT or torch.Tag.nondeterministic_seeded in target.tags:
            return
        kernel = kernel_of(target)
        if kernel is None:
            self.tally.gaps[str(target)] += 1
            return
        functional, op = kernel
        args, kwargs = dense(with_tensors(functional, args)), dense(kwargs)
        tensors = [v for v in pytree.tree_leaves((args, kwargs)) if isinstance(v, torch.Tensor)]
        with torch.no_grad():
            expected = expected_of(functional, args, kwargs)
        made = [v for v in pytree.tree_leaves(expected) if isinstance(v, torch.Tensor)]
        if not takes(op, tensors + made):
            dtypes = sorted({str(t.dtype).removeprefix("torch.") for t in tensors + made})
            self.tally.gaps[f"{target} {'+'.join(dtypes)}"] += 1
            return
        self.check(op, functional, bound(op, functional, args, kwargs), expected)
        self.tally.kernels[op, str(made[0].dtype) if made else "none"] += 1

    def check(self, op: str, functional: OpOverload, sample: Sample, expected: Any) -> None:
        """Holds the kernel to eager, in half precisions to either of eager's ways."""
        if op in TIES:
            self.check_ties(op, sample, list(expected))
            return
        doubles = any(e.dtype == torch.float64 for e in pytree.tree_leaves(expected))
        values = op not in ARBITRARY and not (op in INEXACT and doubles)
        cases = OpCases(op, (), lambda *_, **__: expected, TOLERANCE, values=values)
        try:
            check(cases, sample, self.isas)
        except AssertionError:
            if "_polynomial_" in op and not doubles:
                exact, error = in_double(functional, sample, expected)
                near = (TOLERANCE[0], max(TOLERANCE[1], 2 * error))
                exactly = replace(cases, reference=lambda *_, **__: exact, tolerance=near)
                return check(exactly, sample, self.isas)
            rounded_once = in_float(functional, sample, expected)
            if rounded_once is None:
                raise
            check(replace(cases, reference=lambda *_, **__: rounded_once), sample, self.isas)

    def check_ties(self, op: str, sample: Sample, expected: list[torch.Tensor]) -> None:
        """Holds values to eager's, and indices to the values that they name."""
        source, dim = sample.args[0], sample.args[2]
        for isa in self.isas:
            where = f"{op}{sample} on {isa}"
            options = {"isa": isa, "scratch": 1 << 20, "threads": 1}
            values, indices = call_out(op, sample, expected, options, where)
            compare(values, expected[0], None, where)
            named = source.gather(dim, indices) if source.dim() else source
            compare(named, expected[0], None, f"{where}: what the indices name")


def expected_of(functional: OpOverload, args: Any, kwargs: Any) -> Any:
    """What the kernel should give: eager's results, but for what programs are planned without."""
    arguments = (
        dict(zip((a.name for a in functional._schema.arguments), args, strict=False)) | kwargs
    )
    if functional in (aten.sort.default, aten.sort.stable):
        # Eager may leave the order of equal elements open; the kernel's is the stable one.
        options = {name: arguments[name] for name in ("dim", "descending") if name in arguments}
        return torch.sort(arguments["self"], **options, stable=True)
    if functional is aten.unique_consecutive.default and arguments.get("dim") is not None:
        # By torch's rule for shapes a call with a dimension gives all results; eager's gives those
        # that are asked for if there is one dimension only.
        return functional(arguments["self"], True, True, arguments["dim"])
    expected = functional(*args, **kwargs)
    if functional is aten._embedding_bag_forward_only.default:
        return sized_by_rule(functional, args, kwargs, expected)
    return expected


def sized_by_rule(
    functional: OpOverload, args: Any, kwargs: Any, expected: Any
) -> list[torch.Tensor]:
    """Eager's results with as many rows as by torch's rule for shapes, by which programs are
    planned: eager may leave out the row for the last offset, or add it, and it is 0; or leave out
    the bags of indices, which it notes for float64."""
    with FakeTensorMode() as mode:
        fake = pytree.tree_map_only(torch.Tensor, mode.from_tensor, (args, kwargs))
        rule = functional(*fake[0], **fake[1])
    noted = functional(*pytree.tree_map(in_float64, args), **pytree.tree_map(in_float64, kwargs))
    sized = []
    for value, note, wanted in zip(expected, noted, rule, strict=True):
        rows = torch.zeros(list(wanted.shape), dtype=value.dtype)
        if len(rows) > 0 and len(value) == 0:
            value = note
        count = min(len(rows), len(value))
        rows[:count] = value[:count]
        assert not value[count:].any()
        sized.append(rows)
    return sized


def in_float64(value: Any) -> Any:
    """A tensor of real numbers in float64; anything else as it is."""
    is_real = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_real else value


def in_double(functional: OpOverload, sample: Sample, expected: Any) -> tuple[Any, float]:
    """The result computed in float64, and how far eager's is from it: where the terms of a
    recurrence cancel, eager's own is no measure."""
    with torch.no_grad():
        exact = functional(*map(in_float64, sample.args))
    distance = (expected.double() - exact).abs()
    return exact.to(expected.dtype), float(distance[distance.isfinite()].max())


def in_float(functional: OpOverload, sample: Sample, expected: Any) -> Any:
    """The result computed in float32 and rounded once, where eager rounds in between; or None."""
    halves = (torch.float16, torch.bfloat16)
    results = pytree.tree_leaves(expected)
    if not all(isinstance(v, torch.Tensor) and v.dtype in halves for v in results):
        return None

    def wider(value: Any) -> Any:
        is_half = isinstance(value, torch.Tensor) and value.dtype in halves
        return value.float() if is_half else value

    # The sample has the arguments in the order of the schema, and keywords only as keywords.
    arguments = functional._schema.arguments
    widened = pytree.tree_map(wider, list(sample.args))
    count = sum(not a.kwarg_only for a in arguments)
    keywords = dict(zip((a.name for a in arguments[count:]), widened[count:], strict=False))
    with torch.no_grad():
        exact = functional(*widened[:count], **keywords)
    return pytree.tree_map(lambda v: v.to(results[0].dtype), exact)


def bound(op: str, functional: OpOverload, args: Any, kwargs: Any) -> Sample:
    """The arguments as a sample of the kernel: without those that only place tensors."""
    names = [a.name for a in functional._schema.arguments]
    arguments = dict(zip(names, args, strict=False)) | kwargs
    taken = [a for a in out_schema(op).arguments if not a.is_out]
    return Sample(*(arguments.get(a.name, a.default_value) for a in taken))


def run(name: str, call: opinfo.Call, tally: Tally) -> None:
    """One call of the database over the kernels; AssertionError or RuntimeError if one differs."""
    with torch.no_grad(), opinfo.quiet(), OverKernels(tally, instruction_sets()):
        call.function(*call.args, **call.kwargs)
