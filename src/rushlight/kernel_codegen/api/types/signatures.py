# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""The C++ signature of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from torchgen.api import cpp as aten_cpp
from torchgen.api.types import Binding, CType
from torchgen.model import FunctionSchema, NativeFunction

from rushlight.kernel_codegen.api import et_cpp
from rushlight.kernel_codegen.api.types.types import contextArg


@dataclass(frozen=True)
class ExecutorchCppSignature:
    """The signature of a function on the runtime's types, which may take the context first.

    Attributes:
        func: the operator's schema.
        cpp_no_default_args: arguments whose default values are left out.
        prefix: begins the function's name.
    """

    func: FunctionSchema
    cpp_no_default_args: set[str]
    prefix: str = ""

    @staticmethod
    def from_native_function(f: NativeFunction, *, prefix: str = "") -> ExecutorchCppSignature:
        """The signature of an operator.

        Args:
            f: the operator.
            prefix: begins the function's name.
        """
        return ExecutorchCppSignature(f.func, f.cpp_no_default_args, prefix)

    def name(self) -> str:
        """The function's name: `foo_outf` for an operator that writes to its last arguments."""
        return self.prefix + aten_cpp.name(self.func, faithful_name_for_out_overloads=True)

    def arguments(self, *, include_context: bool = True) -> list[Binding]:
        """The arguments in order, those that are written last.

        Args:
            include_context: whether the first is the context.
        """
        own = et_cpp.arguments(
            self.func.arguments,
            faithful=True,
            method=False,
            cpp_no_default_args=self.cpp_no_default_args,
        )
        return [contextArg, *own] if include_context else own

    def returns_type(self) -> CType:
        """What the function returns."""
        return et_cpp.returns_type(self.func.returns)

    def decl(self, name: str | None = None, *, include_context: bool = True) -> str:
        """The declaration, with default values.

        Args:
            name: the function's name, if it is not :meth:`name`.
            include_context: whether the first argument is the context.
        """
        written = [a.decl() for a in self.arguments(include_context=include_context)]
        return self._line(name, written)

    def defn(self, name: str | None = None) -> str:
        """The head of the definition, without default values.

        Args:
            name: the function's name, if it is not :meth:`name`.
        """
        return self._line(name, [a.defn() for a in self.arguments()])

    def _line(self, name: str | None, arguments: list[str]) -> str:
        called = self.name() if name is None else name
        return f"{self.returns_type().cpp_type()} {called}({', '.join(arguments)})"
