# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""The types of a schema in C++, as kernels on the runtime's tensors take and return them.

A symbolic number is a plain one here. Dimension names and tensor options have no types.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchgen import local
from torchgen.api.types import (
    ArgName,
    BaseCType,
    Binding,
    ConstRefCType,
    CType,
    MutRefCType,
    NamedCType,
    SpecialArgName,
    TupleCType,
    VectorCType,
    voidT,
)
from torchgen.model import (
    Argument,
    Arguments,
    BaseTy,
    BaseType,
    ListType,
    NativeFunction,
    OptionalType,
    Return,
    SelfArgument,
    TensorOptionsArguments,
    Type,
)

from rushlight.kernel_codegen.api.types.types import (
    ArrayRefCType,
    BaseTypeToCppMapping,
    OptionalCType,
    scalarT,
    tensorListT,
    tensorT,
)

JIT_TO_CPP_DEFAULT = {
    "False": "false",
    "True": "true",
    "None": "std::nullopt",
    "[]": "{}",
    "contiguous_format": "torch::executor::MemoryFormat::Contiguous",
    "long": "torch::executor::ScalarType::Long",
}
"""Default values that C++ writes in another way."""


def _value_type(t: Type) -> CType | None:
    """The type of what is passed by value, arguments and results alike; None for what is not."""
    if isinstance(t, BaseType):
        if t.name in (BaseTy.Tensor, BaseTy.Scalar):
            return None
        name = BaseTy.int if t.name is BaseTy.SymInt else t.name
        if name not in BaseTypeToCppMapping:
            known = ", ".join(sorted(base.name for base in BaseTypeToCppMapping))
            raise NotImplementedError(
                f"a schema has the type {t}, which kernels of the runtime cannot take; use one of "
                f"{known}, SymInt"
            )
        return BaseCType(BaseTypeToCppMapping[name])
    if isinstance(t, OptionalType):
        inner = _value_type(t.elem)
        return None if inner is None else OptionalCType(inner)
    if isinstance(t, ListType):
        if t.elem != BaseType(BaseTy.bool):
            return None
        if t.size is None:
            raise AssertionError(f"a list of bool needs its size: bool[3] in place of {t}")
        return ArrayRefCType(BaseCType(BaseTypeToCppMapping[BaseTy.bool]))
    raise AssertionError(f"{t!r} is no type of a schema")


def valuetype_type(t: Type, *, binds: ArgName) -> NamedCType | None:
    """The type of what is passed by value, or None for what is not.

    Args:
        t: the type in the schema.
        binds: the name of the argument.
    """
    found = _value_type(t)
    return None if found is None else NamedCType(binds, found)


def _tensor(mutable: bool, optional: bool = False) -> CType:
    """A tensor that is an argument. One that is written is never absent."""
    tensor: CType = BaseCType(tensorT)
    if mutable and not local.use_const_ref_for_mutable_tensors():
        return MutRefCType(tensor)
    return ConstRefCType(OptionalCType(tensor) if optional else tensor)


def _argument_type(t: Type, mutable: bool) -> CType:
    value = _value_type(t)
    if value is not None:
        return value
    if isinstance(t, BaseType):
        return _tensor(mutable) if t.name is BaseTy.Tensor else ConstRefCType(BaseCType(scalarT))
    assert isinstance(t, OptionalType | ListType)
    inner = t.elem
    if isinstance(t, OptionalType):
        if inner == BaseType(BaseTy.Tensor):
            return _tensor(mutable, optional=True)
        if inner == BaseType(BaseTy.Scalar):
            return ConstRefCType(OptionalCType(BaseCType(scalarT)))
        return OptionalCType(_argument_type(inner, mutable))
    if inner == BaseType(BaseTy.Tensor):
        return BaseCType(tensorListT)
    if inner == OptionalType(BaseType(BaseTy.Tensor)):
        return ArrayRefCType(OptionalCType(BaseCType(tensorT)))
    return ArrayRefCType(_argument_type(inner, mutable))


def argumenttype_type(
    t: Type,
    *,
    mutable: bool,
    binds: ArgName,
    remove_non_owning_ref_types: bool = False,
) -> NamedCType:
    """The type of an argument.

    Args:
        t: the type in the schema.
        mutable: whether the kernel writes to it.
        binds: the name of the argument.
        remove_non_owning_ref_types: has no effect, as lists always belong to the caller.
    """
    return NamedCType(binds, _argument_type(t, mutable))


def argument_type(a: Argument, *, binds: ArgName) -> NamedCType:
    """The type of an argument of a schema.

    Args:
        a: the argument.
        binds: its name in C++.
    """
    return argumenttype_type(a.type, mutable=a.is_write, binds=binds)


def returntype_type(t: Type, *, mutable: bool) -> CType:
    """The type of a result.

    Args:
        t: the type in the schema.
        mutable: whether the result is an argument that is written, and so a reference.
    """
    value = _value_type(t)
    if value is not None:
        return value
    if t == BaseType(BaseTy.Tensor):
        if not mutable:
            return BaseCType(tensorT)
        return _tensor(mutable=True)
    if t == BaseType(BaseTy.Scalar):
        return BaseCType(scalarT)
    if isinstance(t, ListType):
        if mutable or t.size is not None:
            raise AssertionError(
                f"a kernel cannot return {t}: return nothing for a list of tensors that is "
                "written, and a list without a size else"
            )
        return VectorCType(returntype_type(t.elem, mutable=False))
    raise AssertionError(f"a kernel cannot return {t}")


def return_type(r: Return) -> CType:
    """The type of one result of a schema.

    Args:
        r: the result.
    """
    return returntype_type(r.type, mutable=r.is_write)


def returns_type(rs: Sequence[Return]) -> CType:
    """The type of all results of a schema: void, the one, or a tuple.

    Args:
        rs: the results.
    """
    types = [return_type(r) for r in rs]
    if not types:
        return BaseCType(voidT)
    return types[0] if len(types) == 1 else TupleCType(types)


def return_names(f: NativeFunction, *, fallback_name: str = "result") -> Sequence[str]:
    """The names of an operator's results.

    Args:
        f: the operator.
        fallback_name: of results that the schema does not name, numbered if there are several.
    """
    schema = f.func
    if schema.name.name.inplace:
        if len(schema.returns) > 1:
            raise AssertionError(f"{schema.name} works in place and has several results")
        return ["self" for _ in schema.returns]
    if schema.is_out_fn():
        return [a.name for a, _ in zip(schema.arguments.out, schema.returns, strict=False)]
    taken = {a.name for a in schema.schema_order_arguments()}
    names = []
    for index, result in enumerate(schema.returns):
        if result.name:
            names.append(f"{result.name}_return" if result.name in taken else result.name)
        else:
            names.append(f"{fallback_name}{index}" if len(schema.returns) > 1 else fallback_name)
    return names


def _text(literal: str) -> str:
    """A string of a schema, in single quotes, as one of C++."""
    written, escaped = "", False
    for character in literal[1:-1]:
        if escaped:
            written += "'" if character == "'" else "\\" + character
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            written += '\\"' if character == '"' else character
    return f'"{written}"'


def default_expr(d: str, t: Type) -> str:
    """A default value in C++.

    Args:
        d: the value in the schema.
        t: the argument's type.
    """
    if d == "None" and t == OptionalType(BaseType(BaseTy.Tensor)):
        return "{}"
    if isinstance(t, OptionalType):
        return "std::nullopt" if d == "None" else default_expr(d, t.elem)
    if t == BaseType(BaseTy.str) and len(d) >= 2 and d[0] == d[-1] == "'":
        return _text(d)
    if isinstance(t, ListType):
        if d.startswith("[") and d.endswith("]"):
            return "{" + d[1:-1] + "}"
        if t.size is None:
            raise ValueError(f"the default value of a {t} is {d}; write a list, such as [0, 1]")
    return JIT_TO_CPP_DEFAULT.get(d, d)


def argument(
    a: Argument | TensorOptionsArguments | SelfArgument,
    *,
    cpp_no_default_args: set[str],
    method: bool,
    faithful: bool,
    has_tensor_options: bool,
) -> list[Binding]:
    """An argument of a schema in C++: one, or none for `self` of a method.

    Args:
        a: the argument.
        cpp_no_default_args: arguments whose default values are left out.
        method: whether it is a method's.
        faithful: whether arguments stand as in the schema, those that are written last.
        has_tensor_options: whether the schema has options, which may say the memory format again.
    """
    if isinstance(a, SelfArgument):
        if method:
            return []
        a = a.argument
    if isinstance(a, TensorOptionsArguments):
        raise NotImplementedError(
            "a schema has dtype, layout, device and pin_memory, which kernels of the runtime do "
            "not take: use the out variant, whose tensor has them"
        )
    binds: ArgName = a.name
    if a.name == "memory_format" and has_tensor_options:
        binds = SpecialArgName.possibly_redundant_memory_format
    default = None
    if a.default is not None and a.name not in cpp_no_default_args:
        default = default_expr(a.default, a.type)
    return [Binding(a.name, argument_type(a, binds=binds), a, default)]


def arguments(
    arguments: Arguments, *, faithful: bool, method: bool, cpp_no_default_args: set[str]
) -> list[Binding]:
    """All arguments of a schema in C++.

    Args:
        arguments: of the schema.
        faithful: whether those that are written come last, and none has a default value.
        method: whether they are a method's, which has `self` by itself.
        cpp_no_default_args: arguments whose default values are left out.
    """
    groups = (arguments.non_out, arguments.out)
    found = []
    for group in groups if faithful else reversed(groups):
        for one in group:
            found += argument(
                one,
                cpp_no_default_args=cpp_no_default_args,
                method=method,
                faithful=faithful,
                has_tensor_options=arguments.tensor_options is not None,
            )
    return [binding.no_default() for binding in found] if faithful else found
