"""Which dtypes each kernel takes, found by trying: the samples of the case table, converted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rushlight.ir.kernels import Kernel

from .harness import (
    Guarded,
    Maker,
    OpCases,
    Sample,
    as_list,
    bind,
    clone_all,
    expected_of,
    functional,
    is_written,
    native,
    native_argument,
    out_schema,
)

# All that a test can hand to a kernel; the eight-bit floats are bytes to whatever takes "any".
DTYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.uint16, torch.uint32, torch.uint64, torch.complex64, torch.complex128),
)
# What is asked here does not depend on sizes, so not every sample need be tried.
MAX_ELEMENTS = 4096  # of a sample
MAX_SAMPLES = 12  # of an operator, taken evenly


def name_of(dtype: torch.dtype) -> str:
    """ "float32"."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Call:
    """One sample with all its arguments by name, and the dtypes that eager's results have."""

    sample: Sample
    arguments: dict[str, Any]
    results: list[torch.Tensor]


class Probe:
    """Tries one operator."""

    def __init__(self, cases: OpCases, kernel: Kernel) -> None:
        self.cases = cases
        self.schema = out_schema(cases.op)
        self.outs = [a.name for a in self.schema.arguments if a.is_out]
        names = [a.name for a in self.schema.arguments if not a.is_out]
        calls = list(self._calls(names))
        self.calls = calls[:: max(1, len(calls) // MAX_SAMPLES)]
        self.inputs = [n for n in names if any(tensors(c.arguments[n]) for c in self.calls)]
        # Arguments of which the table says nothing of their own: they go together.
        self.alike = [n for n in self.inputs if n not in kernel.arguments]

    def _calls(self, names: Sequence[str]) -> Iterator[Call]:
        for sample in self.cases.samples(Maker(self.cases.op)):
            values = bind(self.schema, sample)
            if sum(t.numel() for v in values for t in tensors(v)) <= MAX_ELEMENTS:
                arguments = dict(zip(names, values, strict=True))
                yield Call(sample, arguments, expected_of(self.cases, sample))

    def refusals(self, argument: str, dtype: torch.dtype) -> list[str] | None:
        """None if some sample runs with that dtype, else what the kernel said to all."""
        messages = []
        for call in self.calls:
            if argument in self.outs:
                attempts = [self._run(call, (), dtype, [dtype] * len(call.results))]
            elif not any(t.numel() for t in tensors(call.arguments[argument])):
                continue  # None, or nothing whose type a kernel must look at
            else:
                together = self.alike if argument in self.alike else [argument]
                attempts = list(self._attempts(call, together, dtype))
                if together != [argument]:
                    attempts += self._attempts(call, [argument], dtype)
            if None in attempts:
                return None
            messages += [str(message) for message in attempts]
        return messages

    def _attempts(
        self, call: Call, arguments: Sequence[str], dtype: torch.dtype
    ) -> Iterator[str | None]:
        """With outs of the dtypes that eager gives, or else of the ones that it might give."""
        results = self._eager(call, arguments, dtype)
        if results is not None:
            yield self._run(call, arguments, dtype, results)
            return
        before = [t.dtype for t in call.results]
        first = next(t.dtype for a in arguments for t in tensors(call.arguments[a]))
        yield self._run(call, arguments, dtype, before)
        yield self._run(call, arguments, dtype, [dtype if d == first else d for d in before])

    def _eager(
        self, call: Call, arguments: Sequence[str], dtype: torch.dtype
    ) -> list[torch.dtype] | None:
        names = list(call.arguments)
        args = [
            converted(v, dtype) if names[i] in arguments else v
            for i, v in enumerate(call.sample.args)
        ]
        kwargs = {
            k: converted(v, dtype) if k in arguments else v for k, v in call.sample.kwargs.items()
        }
        if "_polynomial_" in self.cases.op and str(dtype).startswith("torch.uint"):
            return None  # eager climbs to degree 2**64 - 1, which was -1, one step after the other
        reference = self.cases.reference or functional(self.cases.op)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = [t.dtype for t in as_list(reference(*clone_all(args), **kwargs))]
        except (RuntimeError, LookupError, TypeError, ValueError, AssertionError, ArithmeticError):
            return None  # eager has no kernel for it, or refuses it; the table may be wider
        return results if set(results) <= set(DTYPES) else None

    def _run(
        self,
        call: Call,
        arguments: Sequence[str],
        dtype: torch.dtype,
        out_dtypes: Sequence[torch.dtype],
    ) -> str | None:
        """None if the kernel ran, else its message."""
        values = [
            native_argument(converted(v, dtype) if n in arguments else copied(v))
            for n, v in call.arguments.items()
        ]
        outs: list[Any] = [
            Guarded(torch.empty_like(r, dtype=d), call.sample.out_dim_order).argument()
            for r, d in zip(call.results, out_dtypes, strict=True)
        ]
        if any(is_written(a) and not a.is_out for a in self.schema.arguments):
            outs = outs[: len(self.outs)]  # what is written in place follows them
        elif "List" in str(self.schema.arguments[-1].type):
            outs = [outs]
        try:
            native().run_kernel(self.cases.op, values + outs)
        except RuntimeError as error:
            return str(error)
        return None


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of an argument."""
    items = value if isinstance(value, (list, tuple)) else [value]
    return [v for v in items if isinstance(v, torch.Tensor)]


def converted(value: Any, dtype: torch.dtype) -> Any:
    """The argument with its tensors of that dtype, in their own order of dimensions."""
    if isinstance(value, (list, tuple)):
        return [converted(v, dtype) for v in value]
    if not isinstance(value, torch.Tensor):
        return value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex values lose their imaginary part
        return value.clone() if value.dtype == dtype else value.to(dtype)


def copied(value: Any) -> Any:
    """The argument with tensors of its own, for kernels that write."""
    return clone_all([value])[0]
