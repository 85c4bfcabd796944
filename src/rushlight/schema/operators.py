"""Schemas of operators as PyTorch writes them, without torch.

`acme::snake(Tensor x, float a) -> Tensor` is a function; what a program calls is its out-variant,
`acme::snake.out(Tensor x, float a, *, Tensor(a!) out) -> Tensor(a!)`, which writes its results into
arguments behind the others. `out_variant` derives the one from the other.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace

SCHEMAS = "rushlight/schemas"
"""The key of a program's named data: a line with the schema of each operator of the user's own."""

_NAME = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_]\w*)(?:\.(\w+))?")
_WHOLE = re.compile(rf"\s*({_NAME.pattern})\s*\((.*)\)\s*->\s*(.*?)\s*", re.S)
_TYPE = re.compile(r"(\w+)(?:\((\w)(!?)\))?(\?)?(\[\d*\])?(\?)?")
_ARGUMENT = re.compile(rf"({_TYPE.pattern})\s+([A-Za-z_]\w*)\s*(?:=\s*(.*))?", re.S)
_SINGLE = {"Tensor": "t", "Scalar": "s", "str": "S"}
_SINGLE |= dict.fromkeys(("int", "SymInt", "ScalarType", "Layout", "MemoryFormat"), "i")
_SINGLE |= dict.fromkeys(("float", "SymFloat"), "d") | dict.fromkeys(("bool", "SymBool"), "b")
_CPP = {"t": "const Tensor&", "w": "Tensor&", "i": "int64_t", "d": "double", "b": "bool"}
_CPP |= {"s": "Scalar", "S": "std::string_view", "T": "Span<const Tensor>", "W": "Span<Tensor>"}
_CPP |= {"O": "Span<const Tensor* const>", "I": "Span<const int64_t>"}
_CPP |= {"D": "Span<const double>", "B": "Span<const bool>"}
_LISTS = {"t": "T", "i": "I", "d": "D", "b": "B"}


@dataclass(frozen=True)
class Argument:
    """One argument, or one result, of an operator.

    Attributes:
        type: as in the schema, "Tensor(a!)".
        name: "" for a result.
        default: the default's text; None if there is none.
        keyword_only: whether it is given by its name alone.
    """

    type: str
    name: str = ""
    default: str | None = None
    keyword_only: bool = False

    @property
    def is_written(self) -> bool:
        """Whether the operator writes it."""
        return "!" in self.type

    @property
    def letter(self) -> str:
        """The letter of cpp/kernel/kernel.h, with `?` before it if None is allowed; "" for a type
        that no kernel takes."""
        match = _TYPE.fullmatch(self.type)
        assert match is not None
        base, _, writes, optional_items, listed, optional = match.groups()
        letter = _SINGLE.get(base, "")
        if listed is None:
            optional = optional or optional_items
        else:
            letter = _LISTS.get(letter, "") if base not in ("ScalarType", "Layout") else ""
            if optional_items:
                letter = "O" if letter == "T" and not writes else ""
        if writes:
            letter = {"t": "w", "T": "W"}.get(letter, "")
        return f"{'?' if optional else ''}{letter}" if letter else ""

    def __str__(self) -> str:
        default = "" if self.default is None else f"={self.default}"
        return f"{self.type} {self.name}{default}".strip()


@dataclass(frozen=True)
class OperatorSchema:
    """The schema of an operator.

    Attributes:
        namespace, base, overload: "acme", "snake" and "out" of acme::snake.out.
        arguments, returns: what it takes and returns.
    """

    namespace: str
    base: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]

    @staticmethod
    def read(text: str) -> OperatorSchema:
        """Read a schema.

        Raises:
            ValueError: it is not one; the message says what is wrong.
        """
        match = _WHOLE.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{text!r} is not the schema of an operator: write it as in "
                f'"acme::snake(Tensor x, float a) -> Tensor"'
            )
        _, namespace, base, overload, inside, returns = match.groups()
        arguments = []
        keyword_only = False
        for part in _parts(inside):
            if part == "*":
                keyword_only = True
                continue
            one = _ARGUMENT.fullmatch(part)
            if one is None:
                raise ValueError(
                    f"{text!r}: {part!r} is not an argument: write a type and a name, as in "
                    f'"float a=1.0"'
                )
            arguments.append(Argument(one[1], one[8], one[9], keyword_only))
        names = [argument.name for argument in arguments]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{text!r}: two arguments are named {twice!r}")
        return OperatorSchema(
            namespace, base, overload or "", tuple(arguments), tuple(_results(text, returns))
        )

    @property
    def name(self) -> str:
        """The name in a program: "acme::snake.out"."""
        return f"{self.namespace}::{self.base}" + (f".{self.overload}" if self.overload else "")

    @property
    def written(self) -> tuple[Argument, ...]:
        """The arguments that it writes."""
        return tuple(a for a in self.arguments if a.is_written)

    @property
    def outs(self) -> tuple[Argument, ...]:
        """Of an out-variant: the arguments that are results."""
        return tuple(a for a in self.arguments if a.is_written and a.keyword_only)

    @property
    def signature(self) -> str:
        """The letters of its kernel (cpp/kernel/kernel.h).

        Raises:
            ValueError: no kernel takes an argument of its type, or it writes nothing.
        """
        for argument in self.arguments:
            if not argument.letter:
                raise ValueError(
                    f"{self.name}: argument {argument.name!r} is {argument.type}, which no kernel "
                    f"takes; allowed are Tensor, int, float, bool, Scalar, str, their optional "
                    f"forms, and lists of Tensor, int, float and bool"
                )
        if not self.written:
            raise ValueError(f"{self} writes nothing: a kernel needs a result")
        return "".join(argument.letter for argument in self.arguments) + "="

    @property
    def declaration(self) -> str:
        """The first line of its kernel in C++ (custom_kernel.h)."""
        function = self.base + (f"_{self.overload}" if self.overload else "")
        types = [_CPP[a.letter.removeprefix("?")] for a in self.arguments]
        for i, argument in enumerate(self.arguments):
            if argument.letter == "?t":
                types[i] = "const Tensor*"
            elif argument.letter.startswith("?"):
                types[i] = f"std::optional<{types[i]}>"
        listed = "".join(
            f", {kind} {a.name}" for kind, a in zip(types, self.arguments, strict=True)
        )
        return f"RUSHLIGHT_KERNEL({self.namespace}, {function})(Context& ctx{listed})"

    def out_variant(self) -> OperatorSchema:
        """The schema of the out-variant; itself for an operator that returns only what it writes.

        Raises:
            ValueError: it returns something else than tensors.
        """
        if self.written and all(result.is_written for result in self.returns):
            return self
        types = [result.type for result in self.returns]
        if types != ["Tensor[]"] and (not types or set(types) != {"Tensor"}):
            raise ValueError(
                f"{self}: its results must be tensors, or one list of tensors: a kernel writes "
                f"its results into memory that the program has for them"
            )
        names = {argument.name for argument in self.arguments}
        stem = "out" if names.isdisjoint({"out", "out0"}) else "result"
        taken = {a.type.partition("(")[2][:1] for a in self.arguments}
        free = (letter for letter in string.ascii_lowercase if letter not in taken)
        marked = [f"Tensor({next(free)}!){kind.removeprefix('Tensor')}" for kind in types]
        outs = [
            Argument(kind, stem if len(marked) == 1 else f"{stem}{i}", None, True)
            for i, kind in enumerate(marked)
        ]
        overload = f"{self.overload}_out" if self.overload else "out"
        is_list = types == ["Tensor[]"]
        returned = () if is_list else tuple(Argument(kind) for kind in marked)
        return replace(
            self, overload=overload, arguments=(*self.arguments, *outs), returns=returned
        )

    def __str__(self) -> str:
        parts = [str(a) for a in self.arguments if not a.keyword_only]
        named = [str(a) for a in self.arguments if a.keyword_only]
        inside = ", ".join([*parts, *(["*", *named] if named else [])])
        results = ", ".join(str(r) for r in self.returns)
        returned = results if len(self.returns) == 1 else f"({results})"
        return f"{self.name}({inside}) -> {returned}"


def _results(text: str, returns: str) -> Iterator[Argument]:
    inside = returns[1:-1] if returns.startswith("(") and returns.endswith(")") else returns
    for part in _parts(inside):
        one = _TYPE.fullmatch(part) or _ARGUMENT.fullmatch(part)
        if one is None:
            raise ValueError(f"{text!r}: {part!r} is not the type of a result")
        yield Argument(_TYPE.match(part)[0])  # type: ignore[index]


def _parts(text: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets and no text."""
    depth, quote, part = 0, "", ""
    characters = iter(text)
    for c in characters:
        if quote:
            if c == "\\":
                c += next(characters, "")
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            yield part.strip()
            part = ""
            continue
        part += c
    if part.strip():
        yield part.strip()
