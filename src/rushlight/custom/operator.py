"""`custom_op`: an operator of torch.library from a schema and a reference in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from rushlight.custom.check import check_operator
from rushlight.errors import Code, ExportError
from rushlight.ir.operators import out_variant
from rushlight.runtime.registries import KernelFunction, register_kernel
from rushlight.schema.operators import OperatorSchema

Reference = Callable[..., Any]


class CustomOp:
    """An operator of your own. It is called as its reference is; models call it, too.

    Attributes:
        schema: its schema.
        definition: what torch.library made of it, for its other methods, such as
            `definition.register_autograd`.
    """

    def __init__(self, schema: OperatorSchema, definition: Any) -> None:
        self.schema = schema
        self.definition = definition
        self.__name__ = schema.base
        self.__doc__ = definition._init_fn.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator in torch.

        Args:
            args, kwargs: its arguments.
        """
        return self.definition(*args, **kwargs)

    @property
    def op(self) -> OpOverload:
        """The operator as torch.ops has it."""
        return self.definition._opoverload  # type: ignore[no-any-return]

    @property
    def out_op(self) -> OpOverload:
        """The out-variant, which programs call."""
        variant = out_variant(self.op)
        assert variant is not None  # `custom_op` has refused other schemas
        return variant

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Check on example arguments that the schema, the reference, the shapes that are derived
        from it (also with dynamic sizes) and the out-variant agree. A kernel is compared with the
        reference by `rushlight.export`.

        Args:
            args, kwargs: example arguments of the operator; they are not changed.

        Raises:
            ExportError: they do not; it names what departs.
        """
        check_operator(self.op, self.schema, args, kwargs)

    def __repr__(self) -> str:
        return f"CustomOp({str(self.schema)!r})"


def custom_op(
    schema: str, *, fake: Reference | None = None, kernel: KernelFunction | None = None
) -> Callable[[Reference], CustomOp]:
    """Define an operator of your own over a reference in Python.

    Programs call the operator's out-variant, which is derived from the schema. The kernel that
    computes it is yours: a library in C++ or C (`kernels=` of `rushlight.export` and
    `rushlight.load`), or a function of NumPy.

        @rushlight.custom_op("acme::snake(Tensor x, float a) -> Tensor")
        def snake(x, a):
            return x + torch.sin(a * x) ** 2 / a

    Args:
        schema: the operator's schema, as PyTorch writes them. An argument that the operator writes
            has an alias: "acme::push(Tensor(a!) state, Tensor x) -> ()".
        fake: makes results of the right shapes and dtypes from arguments without elements, as
            `torch.library.register_fake` takes it. None: the reference does, which fits whatever
            computes with operators of torch alone.
        kernel: a kernel in Python, as `rushlight.runtime.register_kernel` takes it. A registered
            kernel of the operator is replaced.

    Returns:
        A decorator of the reference, which gets the operator's arguments and returns its results.

    Raises:
        ExportError: the schema is none, or no kernel can compute it, or torch has the operator
            already.
    """
    read = _read(schema)

    def define(reference: Reference) -> CustomOp:
        name = f"{read.namespace}::{read.base}"
        text = str(read)[len(name) :]
        written = [argument.name for argument in read.written]
        try:
            if torch._C._jit_get_schemas_for_operator(name):
                raise RuntimeError(f"there is an operator {name} already")
            definition = torch.library.custom_op(name, reference, mutates_args=written, schema=text)
        except (RuntimeError, ValueError) as error:
            raise ExportError(
                f"torch cannot define {schema!r}: {error}", code=Code.INVALID_ARGUMENT
            ) from error
        definition.register_fake(fake or reference)
        if kernel is not None:
            register_kernel(schema, kernel, replace=True)
        return CustomOp(read, definition)

    return define


def _read(schema: str) -> OperatorSchema:
    try:
        read = OperatorSchema.read(schema)
        if read.overload:
            raise ValueError(
                f"{schema!r}: name the operator without an overload, as in "
                f"{read.namespace}::{read.base}(...)"
            )
        _ = read.out_variant().signature
    except ValueError as error:
        raise ExportError(str(error), code=Code.INVALID_ARGUMENT) from None
    return read
