"""Advice for code that cannot be traced, by torch's reason and by the line of code."""

from __future__ import annotations

import re
from typing import NamedTuple

_LOOP = (
    "Write the loop with torch.while_loop(cond_fn, body_fn, (x,)), or over a dimension with "
    "torch._higher_order_ops.map or scan"
)
_SELECT = (
    "Compute both and select with torch.where(condition, a, b), or branch with "
    "torch.cond(condition, true_fn, false_fn, (x,))"
)
_COMPARE = (
    "Compare with tensors, (a == b).all() or torch.isclose(a, b).all(), and select with "
    "torch.where or torch.cond"
)
_TEXT = "Leave the text out, or return the tensor and write it after the call"
_ELSEWHERE = "Do it before or after the model: return what it needs"
_FUNCTION = "Use the function of torch, such as torch.max, torch.min, torch.sum or torch.sort"
RETURN_IT = (
    "Return the new value from it and write it after the call, as in self.state.copy_(torch.cond("
    "...)); what only the function needs it can clone first"
)
_KEYS = "Use keys that are Python's own; for values of tensors use torch.where or an index"


class Rewrite(NamedTuple):
    """The advice for reasons or lines that match a pattern.

    Attributes:
        pattern: a regular expression that the reason or the line must match.
        cause: a sentence for the user; "" keeps torch's reason.
        advice: the change to make.
    """

    pattern: str
    cause: str
    advice: str


_REASONS = (
    Rewrite(
        r"aten\.(equal|allclose|is_nonzero)",
        "whether tensors are equal becomes a Python bool, and no value is known at export",
        _COMPARE,
    ),
    Rewrite(r"[Dd]ata-dependent (branching|jump)", "Python decides by a tensor's value", _SELECT),
    Rewrite(r"__format__|format string", "a tensor's value is written into a text", _TEXT),
    Rewrite(
        r"same (metadata|dtype|shape)|merging two branches|pytree structure",
        "",
        "Let both branches of torch.cond, and the body of a loop what it was given, return tensors "
        "of the same number, dtypes and shapes: convert with .to(), pad with F.pad",
    ),
    Rewrite(
        r"input mutation", "a function of control flow writes what it is given in place", RETURN_IT
    ),
    Rewrite(r"alias", "", "Return a copy of what the branch was given, x.clone()"),
    Rewrite(
        r"\bprint\b|logg(er|ing)|warnings?\.warn|[Rr]eorderable|\bwarn\b",
        "it prints or logs a tensor's value",
        _TEXT,
    ),
    Rewrite(
        r"autograd\.Function|autograd\.grad|\bbackward\b|requires_grad|\bvjp\b|\bjvp\b",
        "it asks for gradients, which a program has not",
        "Call what the function's forward computes, or write the derivative with operators",
    ),
    Rewrite(
        r"jit\.|torch\.jit|torchscript|FakeTensor'>$|Expected bool, got",
        "",
        "Call the function itself, without torch.jit.trace, torch.jit.script or another compiler",
    ),
    Rewrite(
        r"nested_tensor|_nested_|sparse", "", "Use a padded tensor, and a mask of what it holds"
    ),
    Rewrite(
        r"[Oo]bserved exception|raised exception|except(ion)? handl|\btry\b",
        "an exception is raised and caught while it is traced",
        "A program raises none: test the condition with torch.where or torch.cond instead of try",
    ),
    Rewrite(r"numpy|\bnp\.", "the computation leaves PyTorch", "Use torch's function of that name"),
    Rewrite(r"\bdict\b|\bset\b|hash", "", _KEYS),
    Rewrite(r"built-?in|required positional argument", "", _FUNCTION),
    Rewrite(r"thread|subprocess|socket|\bopen\b|\bfile\b|pickle", "", _ELSEWHERE),
    Rewrite(r"context manager", "", "Leave the context manager out of forward, or enter it before"),
    Rewrite(r"generator|yield", "", "Make a list of what the generator gives"),
)
# Lines that turn a tensor's value into a Python value, or branch on it.
_LINES = (
    Rewrite(
        r"^assert\b",
        "",
        "Leave the assert out, or say torch._check(n <= 64) of a size or an item(), and "
        'torch._assert_async(condition, "...") of a tensor',
    ),
    Rewrite(r"^while\b", "", _LOOP),
    Rewrite(r"torch\.(equal|allclose)\(|\.(equal|allclose)\(", "", _COMPARE),
    Rewrite(
        r"one_hot\((?!.*(num_classes|,))",
        "",
        "Give the number of classes: torch.nn.functional.one_hot(x, num_classes=10)",
    ),
    Rewrite(r"\bsorted\(|(?<![\w.])(max|min|sum|any|all)\(", "", _FUNCTION),
    Rewrite(r"(?<![\w.])(set|dict|frozenset)\(|\{.*\bfor\b.*\}", "", _KEYS),
    Rewrite(
        r"\]\s*\[.*(argmax|argmin|item|tolist)",
        "",
        "Stack the choices and pick with a tensor: torch.stack(items)[i]",
    ),
    Rewrite(r"^for\b|\brange\(|enumerate\(", "", _LOOP),
    Rewrite(r"\bprint\(|logg(er|ing)|(?<!\w)f[\"']|\.format\(|(?<![\w.])str\(", "", _TEXT),
    Rewrite(r"^(try|except)\b", "", "Test the condition with torch.where or torch.cond instead"),
)
# Lines that fix a size.
_SIZES = (
    Rewrite(
        r"\bfor\b|\brange\(|enumerate\(|\.unbind\(|\.tolist\(",
        "",
        "A Python loop is unrolled for the example's size. " + _LOOP,
    ),
    Rewrite(
        r"\b(linspace|logspace)\(",
        "",
        "The number of steps is fixed at export: write torch.arange(n) * step + start",
    ),
)


def by_reason(reason: str) -> Rewrite | None:
    """The advice for the reason that torch gives."""
    return _first(_REASONS, reason)


def by_line(line: str) -> Rewrite | None:
    """The advice for a line that turns a tensor's value into a Python value or branches on it."""
    return _first(_LINES, line)


def by_size(line: str) -> Rewrite | None:
    """The advice for a line that fixes a size that should vary."""
    return _first(_SIZES, line)


def _first(rewrites: tuple[Rewrite, ...], text: str) -> Rewrite | None:
    return next((r for r in rewrites if re.search(r.pattern, text)), None)
