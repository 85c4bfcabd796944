"""Arithmetic over symbolic sizes: the relations that capture found between inputs.

Only integers, symbols, `+ - * // %`, small powers, comparisons, `and or not`, and a handful of
functions are understood; nothing is ever executed as Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

_MAX_LENGTH = 1000
_MAX_EXPONENT = 8
_MAX_POWERS = 4  # in one expression: powers of powers grow without bound

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
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
}

Symbols = Mapping[str, int]
Evaluate = Callable[[Symbols], int]


class Expression:
    """A compiled expression.

    Raises:
        ValueError: if `text` is not an expression of the kind described above.

    Attributes:
        text: as written.
        symbols: the names in it.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_LENGTH:
            raise ValueError("the expression is too long")
        try:
            body = ast.parse(text.strip(), mode="eval").body
            self.symbols: set[str] = set()
            self._powers = 0
            self._evaluate = self._compile(body)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"not an expression: {text!r:.80}") from error
        self.text = text

    def __call__(self, symbols: Symbols) -> int | None:
        """The value; None where there is none (a division by zero)."""
        try:
            return self._evaluate(symbols)
        except ZeroDivisionError:
            return None

    def solve(self, value: int, symbol: str, known: Symbols) -> int | None:
        """The value of `symbol` for which this expression, linear in it, is `value`.

        None if there is no integer that does it.
        """
        at0, at1 = self({**known, symbol: 0}), self({**known, symbol: 1})
        if at0 is None or at1 is None or at1 == at0:
            return None
        found = (value - at0) // (at1 - at0)
        return found if self({**known, symbol: found}) == value else None

    def _compile(self, node: ast.expr) -> Evaluate:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            constant = int(node.value)
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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            function = _FUNCTIONS.get(node.func.id)
            if function is not None:
                args = [self._compile(a) for a in node.args]
                _check_count(node.func.id, len(args))
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
        left = self._compile(node.left)
        if isinstance(node.op, ast.Pow):
            exponent = node.right.value if isinstance(node.right, ast.Constant) else None
            if not isinstance(exponent, int) or exponent not in range(_MAX_EXPONENT):
                raise ValueError(f"only small powers are understood: {ast.unparse(node)!r:.80}")
            self._powers += 1
            if self._powers > _MAX_POWERS:
                raise ValueError("too many powers in one expression")
            return lambda symbols: int(left(symbols) ** exponent)
        operator = _BINARY.get(type(node.op))
        if operator is None:
            raise ValueError(f"not understood: {ast.unparse(node)!r:.80}")
        right = self._compile(node.right)
        return lambda symbols: operator(left(symbols), right(symbols))

    def _compare(self, node: ast.Compare) -> Evaluate:
        tests: list[Callable[[int, int], bool]] = []
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
    variadic: Any = name in ("max", "Max", "min", "Min")
    needed = 1 if name in ("abs", "Abs") else 2
    if not (n >= 2 if variadic else n == needed):
        raise ValueError(f"{name}() does not take {n} arguments")
