"""Arithmetic over symbolic sizes: the relations that capture found between inputs.

Only numbers, symbols, arithmetic, comparisons, `and or not`, `a if b else c`, and the functions
that torch writes into guards are understood; nothing is ever executed as Python.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

_MAX_LENGTH = 4000
_MAX_BITS = 4096  # of a power: without a limit, powers of powers take all memory


def _power(base: float, exponent: float) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int) and exponent > 1
    if whole and int(base).bit_length() * exponent > _MAX_BITS:
        raise OverflowError("the power is too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("a root of a negative number")
    return result


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: _power,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": max,
    "Max": max,
    "min": min,
    "Min": min,
    "abs": abs,
    "Abs": abs,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "CeilDiv": lambda a, b: -(-a // b),
    "Eq": lambda a, b: a == b,
    "Ne": lambda a, b: a != b,
    "IntTrueDiv": lambda a, b: a / b,
    "FloatTrueDiv": lambda a, b: a / b,
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "RoundToInt": round,
    "round": round,
    "torch.sym_float": float,
    "torch._sym_sqrt": math.sqrt,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    "math.sqrt": math.sqrt,
    "math.log2": math.log2,
    **{
        f"math.{f.__name__}": f
        for f in (math.cos, math.cosh, math.acos, math.sin, math.sinh, math.asin)
    },
    **{f"math.{f.__name__}": f for f in (math.tan, math.tanh, math.atan)},
}
_UNARY = {"abs", "Abs", "ToFloat", "TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt"}
_UNARY |= {name for name in _FUNCTIONS if name.startswith(("math.", "torch."))}
_VARIADIC = {"max", "Max", "min", "Min"}

Symbols = Mapping[str, int]
Evaluate = Callable[[Symbols], Any]


class Expression:
    """A compiled expression.

    Raises:
        ValueError: if `text` is not an expression of the kind described above.

    Attributes:
        text: the source text.
        symbols: the names of the symbols in it.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_LENGTH:
            raise ValueError("the expression is too long")
        try:
            body = ast.parse(text.strip(), mode="eval").body
            self.symbols: set[str] = set()
            self._evaluate = self._compile(body)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"not an expression: {text!r:.80}") from error
        self.text = text

    def __call__(self, symbols: Symbols) -> Any:
        """The value; None if it cannot be computed (a division by zero, a number too large)."""
        try:
            return self._evaluate(symbols)
        except (ArithmeticError, ValueError, TypeError, RecursionError):
            return None

    def solve(self, value: int, symbol: str, known: Symbols) -> int | None:
        """The value of `symbol` for which this expression, linear in it, is `value`.

        None if there is no such integer.
        """
        at0, at1 = self({**known, symbol: 0}), self({**known, symbol: 1})
        if at0 is None or at1 is None or at1 == at0:
            return None
        root = (value - at0) // (at1 - at0)
        return root if self({**known, symbol: root}) == value else None

    def _compile(self, node: ast.expr) -> Evaluate:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            constant = node.value
            return lambda _: constant
        if isinstance(node, ast.Name):
            name = node.id
            self.symbols.add(name)
            return lambda symbols: symbols[name]
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.BoolOp):
            parts = [self._compile(v) for v in node.values]
            every = all if isinstance(node.op, ast.And) else any
            return lambda symbols: every(part(symbols) for part in parts)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.IfExp):
            test, yes, no = map(self._compile, (node.test, node.body, node.orelse))
            return lambda symbols: yes(symbols) if test(symbols) else no(symbols)
        if isinstance(node, ast.Call) and not node.keywords:
            name = ast.unparse(node.func)
            function = _FUNCTIONS.get(name)
            if function is not None:
                args = [self._compile(a) for a in node.args]
                _check_count(name, len(args))
                return lambda symbols: function(*(a(symbols) for a in args))
        raise ValueError(f"not understood: {ast.unparse(node)!r:.80}")

    def _unary(self, node: ast.UnaryOp) -> Evaluate:
        operand = self._compile(node.operand)
        if isinstance(node.op, ast.USub):
            return lambda symbols: -operand(symbols)
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, ast.Not):
            return lambda symbols: not operand(symbols)
        raise ValueError(f"not understood: {ast.unparse(node)!r:.80}")

    def _binary(self, node: ast.BinOp) -> Evaluate:
        operator = _BINARY.get(type(node.op))
        if operator is None:
            raise ValueError(f"not understood: {ast.unparse(node)!r:.80}")
        left, right = self._compile(node.left), self._compile(node.right)
        return lambda symbols: operator(left(symbols), right(symbols))

    def _compare(self, node: ast.Compare) -> Evaluate:
        tests: list[Callable[[Any, Any], bool]] = []
        for op in node.ops:
            if type(op) not in _COMPARE:
                raise ValueError(f"not understood: {ast.unparse(node)!r:.80}")
            tests.append(_COMPARE[type(op)])
        operands = [self._compile(n) for n in (node.left, *node.comparators)]

        def evaluate(symbols: Symbols) -> bool:
            values = [operand(symbols) for operand in operands]
            return all(t(a, b) for t, a, b in zip(tests, values, values[1:], strict=False))

        return evaluate


def _check_count(name: str, n: int) -> None:
    if name == "round":
        fits = n in (1, 2)
    elif name in _VARIADIC:
        fits = n >= 2
    else:
        fits = n == (1 if name in _UNARY else 2)
    if not fits:
        raise ValueError(f"{name}() does not take {n} arguments")
