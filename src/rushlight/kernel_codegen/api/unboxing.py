# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""C++ that takes a kernel's arguments out of the values of an instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchgen.api.types import Binding, CType, NamedCType
from torchgen.model import (
    Argument,
    BaseTy,
    BaseType,
    ListType,
    NativeFunction,
    OptionalType,
    Type,
)

connector = "\n\t"
"""Stands between lines of a kernel's wrapper."""

_LISTS = {
    BaseTy.Tensor: "toTensorList",
    BaseTy.int: "toIntList",
    BaseTy.SymInt: "toIntList",
    BaseTy.float: "toDoubleList",
}

_BOOLS = """
#ifdef USE_ATEN_LIB
std::array<bool, {size}> {out};
auto {items} = {name}.toBoolList();
size_t _i = 0;
for (auto {item}: {items}) {{
    {out}[_i++] = {item};
}}
#else
auto {out} = {name}.toBoolList();
#endif
"""

_OPTIONAL_TENSORS = """
#ifdef USE_ATEN_LIB
auto {items} = {name}.toListOptionalTensor();
c10::List<::std::optional<at::Tensor>> {out};
for (auto {item}: {items}) {{
    {out}.push_back({item});
}}
#else
auto {out} = {name}.toListOptionalTensor();
#endif
"""


def name(f: NativeFunction) -> str:
    """The name of the function that unboxes an operator's arguments.

    Args:
        f: the operator.
    """
    return f.func.name.unambiguous_name()


@dataclass(frozen=True)
class Unboxing:
    """Writes the C++ that turns the values `stack[0]`, `stack[1]`… into a kernel's arguments.

    An argument `x` becomes `x_base`, `x_opt_out` or `x_list_out`.

    Attributes:
        argument_type_gen: gives an argument's C++ type, as
            :func:`rushlight.kernel_codegen.api.et_cpp.argumenttype_type` does.
    """

    argument_type_gen: Callable[..., NamedCType]

    def convert_arguments(self, args: Sequence[Binding]) -> tuple[list[Binding], list[str]]:
        """The arguments under the names of their C++ values, and the lines that make these.

        Args:
            args: the kernel's arguments.
        """
        lines = [f"EValue& {arg.name} = *stack[{index}];" for index, arg in enumerate(args)]
        unboxed = []
        for arg in args:
            argument = arg.argument
            if not isinstance(argument, Argument):
                raise TypeError(
                    f"{arg} does not stand for an argument of a schema; leave the context and "
                    "tensor options out"
                )
            made, _, code, declarations = self.argumenttype_evalue_convert(
                argument.type, argument.name, mutable=argument.is_write
            )
            lines += [*declarations, *code]
            unboxed.append(arg.with_name(made))
        return unboxed, lines

    def argumenttype_evalue_convert(
        self, t: Type, arg_name: str, *, mutable: bool = False
    ) -> tuple[str, CType, list[str], list[str]]:
        """How one value becomes an argument.

        Args:
            t: the argument's type in the schema.
            arg_name: its name.
            mutable: whether the kernel writes to it.

        Returns:
            The name of the C++ value, its type, the lines that make it, and the lines that must
            stand before these in the function's own scope.
        """
        made = self.argument_type_gen(t, mutable=mutable, binds=arg_name).type
        if isinstance(t, BaseType):
            out = f"{arg_name}_base"
            plain = made.cpp_type(strip_ref=True)
            return out, made, [f"{made.cpp_type()} {out} = {arg_name}.to<{plain}>();"], []
        if isinstance(t, OptionalType):
            out = f"{arg_name}_opt_out"
            inner = self.argument_type_gen(t.elem, mutable=False, binds=f"{arg_name}_opt_in").type
            plain = inner.cpp_type(strip_ref=True)
            return out, made, _lines(f"\n    auto {out} = {arg_name}.toOptional<{plain}>();\n"), []
        if isinstance(t, ListType):
            code, declarations = self._list(arg_name, t, made)
            return f"{arg_name}_list_out", made, code, declarations
        raise TypeError(f"{arg_name} has the type {t!r}, which is no type of a schema")

    def _list(self, arg_name: str, t: ListType, made: CType) -> tuple[list[str], list[str]]:
        out, items, item = (f"{arg_name}_{end}" for end in ("list_out", "list_in", "elem"))
        of = t.elem
        if isinstance(of, BaseType) and of.name in _LISTS:
            return _lines(f"\n    auto {out} = {arg_name}.{_LISTS[of.name]}();\n"), []
        names = {"name": arg_name, "out": out, "items": items, "item": item, "size": t.size}
        if of == BaseType(BaseTy.bool):
            return _lines(_BOOLS.format(**names)), []
        if of == OptionalType(BaseType(BaseTy.Tensor)):
            return _lines(_OPTIONAL_TENSORS.format(**names)), []
        # Any other list is copied. The copy lives as long as the call, so it is declared first.
        one, type_, code, declarations = self.argumenttype_evalue_convert(of, item)
        copy = f"{arg_name}_vec"
        declarations.append(f"std::vector<{type_.cpp_type(strip_ref=True)}> {copy};")
        text = (
            f"\n    for (EValue {item}: {items}) {{\n"
            f"        {connector.join(code)}\n"
            f"        {copy}.push_back({one});\n    }}\n"
            f"    {made.cpp_type(strip_ref=True)} {out}({copy});\n"
        )
        return _lines(text), declarations


def _lines(text: str) -> list[str]:
    return text.split("\n")
