"""Turns an error of torch.export into findings in the user's own terms.

Torch names symbols and its own files; a finding names the argument and its dimension, the user's
line, and the change that helps. Torch does not keep the lines of guards: they come from a second
capture, in which every dynamic size may become what the model requires.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch._dynamo.exc import Unsupported, UserError, UserErrorType
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import (
    ConstraintViolationError,
    GuardOnDataDependentSymNode,
)

from rushlight.capture.contract import input_places
from rushlight.capture.lines import frames_of, guard_lines, line_of, symbol_texts, with_frames
from rushlight.capture.packed import packed_in_error
from rushlight.capture.rewrites import by_line, by_reason, by_size
from rushlight.capture.shapes import Wanted, loosened, wanted_sizes
from rushlight.capture.tracing import tracing
from rushlight.ir.findings import Finding, distinct
from rushlight.ir.source import in_users_code, source_in
from rushlight.ir.symbols import in_words
from rushlight.ir.torch_release import guards_of, text_of
from rushlight.schema.source import Source


@dataclass(frozen=True)
class Attempt:
    """A model with the example inputs of its capture."""

    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any = None

    def sizes(self) -> list[Wanted]:
        """The sizes that were to vary."""
        return wanted_sizes(self.model, self.args, self.kwargs, self.dynamic_shapes)


def diagnose(error: Exception, attempt: Attempt) -> list[Finding]:
    """The findings for an error of torch.export; never empty."""
    frames = frames_of(error, attempt.model)
    return [with_frames(finding, frames) for finding in _found(error, attempt)]


def _found(error: Exception, attempt: Attempt) -> list[Finding]:
    message = _own_words(error)
    for rule in _RULES:
        findings = distinct(list(rule(error, message, attempt)))
        if findings:
            return findings
    return [graph_break(_first_line(message), line_of(error), message)]


def _own_words(error: Exception) -> str:
    text = str(error)
    text = text.split("\n\nThe error above occurred when calling torch.export")[0]
    return re.sub(r"\s*For more information about this error, see: \S+", "", text).strip()


def _first_line(message: str) -> str:
    return message.splitlines()[0].rstrip(".") if message else "it gives no reason"


# Each rule yields the findings that it recognises, and nothing if the error is not its own.


def _packed_sequence(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    finding = packed_in_error(error, (attempt.args, attempt.kwargs))
    if finding is not None:
        yield finding


def _too_deep(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    if isinstance(error, RecursionError):
        limit = sys.getrecursionlimit()
        yield Finding(
            "graph-break",
            f"the model's calls are nested more deeply than Python allows, {limit} at a time",
            f"Allow more with sys.setrecursionlimit({10 * limit}), or nest fewer modules",
            line_of(error),
            torch=message,
        )


def _model_fails(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    if isinstance(error, GuardOnDataDependentSymNode | UserError | ConstraintViolationError):
        return
    try:
        with torch.no_grad():
            attempt.model(*_copy(attempt.args), **_copy(dict(attempt.kwargs)))
    except Exception as eager:
        yield Finding(
            "model-fails",
            f"the model itself fails on the example inputs: {type(eager).__name__}: "
            f"{_first_line(text_of(eager))}",
            "Run model(*args, **kwargs) and mend that first",
            line_of(eager),
            torch=message,
        )


def _copy(tree: Any) -> Any:
    return pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, tree)


_SPECIALISED = re.compile(
    r"You marked (?P<name>.+?) as dynamic but your code specialized it to be a constant "
    r"\((?P<value>\d+)\)"
)
_NARROW = re.compile(
    r"Not all values of (?P<name>.+?) = (?P<source>L\[.+?) in the specified range (?P<range>.+?) "
    r"satisfy the generated guard (?P<guard>.+?)\.?$",
    re.M,
)
_EQUAL = re.compile(
    r"The values of (?P<a>[^=\n]+) = L.*? and (?P<b>[^=\n]+) = L.*? must always be equal"
)
_DERIVED = re.compile(r"must always be related to .*? by (?P<relation>.+?)\.?$", re.M)


def _constraints(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    if not message.startswith("Constraints violated"):
        return
    sizes = attempt.sizes()
    lines = _Lines(attempt)
    fixes = dict(re.findall(r"^  (\w+) = (.+)$", message.partition("Suggested fixes:")[2], re.M))
    for match in _SPECIALISED.finditer(message):
        for size in _named(sizes, match["name"]):
            yield _specialised(size, int(match["value"]), lines, message)
    seen: set[str] = set()
    for match in _NARROW.finditer(message):
        for size in _named(sizes, match["name"])[:1]:
            if size.text not in seen:
                seen.add(size.text)
                yield _narrow(size, match["guard"], fixes, lines, message)
    for match in _EQUAL.finditer(message):
        first, second = _named(sizes, match["a"])[:1], _named(sizes, match["b"])[:1]
        for a, b in zip(first, second, strict=True):
            yield Finding(
                "related-sizes",
                f"{a.text} and {b.text} must be equal, but dynamic_shapes gives them "
                f"different names, {a.name} and {b.name}",
                f"Use one Dim for both: {a.suggestion(b.name)[:-1]}, ...}} and the same for "
                f"{b.path}",
                lines.of(a, sympy.Eq),
                torch=message,
            )
    for match in _DERIVED.finditer(message):
        yield Finding(
            "related-sizes",
            f"sizes that dynamic_shapes declares apart are tied: {match['relation']}",
            f"Write that relation into dynamic_shapes: "
            f"{'; '.join(f'{k} = {v}' for k, v in fixes.items()) or match['relation']}",
            torch=message,
        )


def _named(sizes: list[Wanted], name: str) -> list[Wanted]:
    exact = [s for s in sizes if name in (s.name, s.guard)]
    return exact or [s for s in sizes if s.name and re.search(rf"\b{re.escape(s.name)}\b", name)]


def _specialised(size: Wanted, value: int, lines: _Lines, message: str) -> Finding:
    if value in (0, 1) and size.size == value:
        return Finding(
            "example-of-size-one",
            f"{size.text} is {value} in the example inputs, and torch.export takes a size of 0 or "
            f"1 as fixed",
            f"Give example inputs in which {size.text} is 2 or more",
            torch=message,
        )
    source = lines.of(size, sympy.Eq)
    rewrite = by_size(source.text)
    own = f"Use {_shape(size)} instead of {value} in that line, let the other operand's size vary "
    own += "with it"
    return Finding(
        "specialised-size",
        f"{size.text} should vary{_as(size)}, but the model fixes it to {value}",
        f"{rewrite.advice if rewrite else own}, or leave the size out of dynamic_shapes",
        source,
        torch=message,
    )


def _as(size: Wanted) -> str:
    return f' (Dim "{size.name}")' if size.name else ""


def _shape(size: Wanted) -> str:
    return size.path if size.dim is None else f"{size.path}.shape[{size.dim}]"


def _narrow(
    size: Wanted, guard: str, fixes: Mapping[str, str], lines: _Lines, message: str
) -> Finding:
    fix = fixes.get(size.name)
    condition = guard.replace(size.guard, size.text)
    high = getattr(size.spec, "max", None)
    hint = f"Dim.AUTO(max={high})" if isinstance(high, int) else "Dim.AUTO(max=...)"
    if fix and fix.startswith("Dim("):
        advice = f"Write {size.suggestion(fix.replace(chr(39), chr(34)))}"
    elif fix:
        root = "".join(f"{k} = {v}; " for k, v in fixes.items() if k in fix and k != size.name)
        advice = f"Write {root}{size.name} = {fix}, and use that in dynamic_shapes"
    else:
        advice = f"Write {size.suggestion(hint)}: the condition joins the program's contract"
    return Finding(
        "narrower-range",
        f"the model takes {size.text}{_as(size)} only where {condition}",
        advice,
        lines.of(size),
        torch=message,
    )


def _data_dependent(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    match = re.search(r"data-dependent expression (?P<expr>.+?) \(unhinted", message)
    if isinstance(error, GuardOnDataDependentSymNode) or match is not None:
        expression = match["expr"] if match else ""
        sized = re.search(r"Size-like symbols: (?!none)", message) is not None
        yield data_dependent(
            in_words(expression, symbol_texts(error)), line_of(error), sized, message
        )


def data_dependent(expression: str, source: Source, sized: bool, message: str) -> Finding:
    """The finding for a value that torch.export cannot know.

    Args:
        expression: the condition that torch could not decide: "the value of `x.item()` > 5"; one
            with torch's own symbols is not shown.
        source: the line of the model.
        sized: whether the condition is about a size that depends on data.
        message: torch's own message.
    """
    rewrite = by_line(source.text)
    shown = "" if re.search(r"\b(?:zuf|u|s)\d+\b", expression) else f" ({expression})"
    if not re.search(r"[<>=]|\b(?:Eq|Ne|And|Or|Not)\(", expression):
        return Finding(
            "tensor-to-python",
            "the value of a tensor becomes a Python number, and no value is known at export",
            rewrite.advice
            if rewrite is not None
            else "Keep it a tensor: leave out float(), int(), bool(), tolist() and range() on it; "
            "or say what is known of it, as in n = x.item(); torch._check(n <= 8)",
            source,
            torch=message,
        )
    if sized:
        return Finding(
            "data-dependent-size",
            f"Python decides by a size that depends on a tensor's values{shown}",
            "Say which case holds, torch._check(n > 0) for n = found.shape[0], or write the "
            "line so that it is right for both",
            source,
            torch=message,
        )
    return Finding(
        "data-dependent-branch",
        f"Python decides by a tensor's value, which is not known at export{shown}",
        rewrite.advice
        if rewrite is not None
        else "Compute both and select with torch.where(condition, a, b), or branch with "
        "torch.cond(condition, true_fn, false_fn, (x,)); if only one case can happen, say so with "
        "torch._check(condition)",
        source,
        torch=message,
    )


_LEAVES = re.compile(
    r"\.numpy\(\) is not supported|data pointer of Tensor|Cannot access data pointer|"
    r"data_ptr|can't convert.*tensor to numpy|not supported for tensor subclasses",
    re.I,
)


def _leaves(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    if _LEAVES.search(message):
        yield Finding(
            "leaves-pytorch",
            "the computation leaves PyTorch: a tensor that is being traced has no data to give to "
            "NumPy or to other code",
            "Write it with torch operators (torch.sin for np.sin), or do it before or after the "
            "model",
            line_of(error),
            torch=message,
        )


def _missing_fake(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    if "no fake impl" in message or ("fake tensor" in message.lower() and "impl" in message):
        name = re.search(r"CustomOpDef\(([\w:]+)\)|operator ([\w:.]+)", message)
        operator = (name[1] or name[2]) if name else "a custom operator"
        yield missing_fake(operator, line_of(error), message)


def missing_fake(operator: str, source: Source, message: str) -> Finding:
    """The finding for a custom operator that cannot be traced."""
    return Finding(
        "missing-fake",
        f"the custom operator {operator} does not say what its result looks like",
        f'Register it: @torch.library.register_fake("{operator}") on a function that returns '
        f"torch.empty of the result's shape and dtype",
        source,
        torch=message,
    )


def _output(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    match = re.search(r"Found <class '(?P<name>.+?)'> in output", message)
    unsupported = "Unsupported output type" in message
    if match or unsupported or "unsupported input type" in message.lower():
        unknown = None if match else _unknown_class(attempt)
        name = unknown.__name__ if unknown else "objects"
        name = match["name"].rpartition(".")[2] if match else name
        register = f"a dataclass: torch.export.register_dataclass({name})"
        if unknown is not None and not dataclasses.is_dataclass(unknown):
            register = f"the class: torch.utils._pytree.register_pytree_node({name}, ...)"
        yield Finding(
            "unsupported-output",
            f"the model {'returns' if match else 'takes'} {name}, which is not a container of "
            f"tensors that torch.export knows",
            f"Use tensors, numbers, and tuples, lists, dicts or named tuples of them, or register "
            f"{register}",
            torch=message,
        )


def _unknown_class(attempt: Attempt) -> type | None:
    """The class of the first input that is neither a tensor, a number, text, None, nor a container
    of these."""
    known = torch.Tensor | bool | int | float | complex | str | None
    leaves = pytree.tree_leaves((attempt.args, dict(attempt.kwargs)))
    return next((type(leaf) for leaf in leaves if not isinstance(leaf, known)), None)


def _wrong_shapes(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    invalid = isinstance(error, UserError) and error.error_type == UserErrorType.INVALID_INPUT
    ranged = isinstance(error, ConstraintViolationError) and " not in range " in message
    named = "dynamic_shapes" in message or "dynamic through named Dims" in message
    if invalid or ranged or named or "Must provide a tree_name" in message:
        problem = _first_line(message)
        if ranged:
            value, _, span = problem.partition(" not in range ")
            sizes = [s.text for s in attempt.sizes() if str(s.size) == value]
            problem = f"{sizes[0] if sizes else 'a size'} is {value} in the example, not in {span}"
        yield Finding(
            "wrong-dynamic-shapes",
            f"dynamic_shapes does not fit the example inputs: {problem}",
            'Give it the structure of the inputs, by parameter: dynamic_shapes={"x": {0: '
            'Dim("batch", max=8)}, "y": None}; an integer takes Dim.AUTO',
            torch=message,
        )


def _graph_break(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    if isinstance(error, Unsupported):
        yield graph_break(_first_line(message), line_of(error), message)


def _branch_break(error: Exception, message: str, attempt: Attempt) -> Iterator[Finding]:
    """The finding for an error in a function that torch.cond or a similar operator calls."""
    if type(error).__name__ not in ("UncapturedHigherOrderOpError", "TorchRuntimeError"):
        return
    told, _, place = message.partition("from user code:")
    got = re.search(r'got \w+\("(.+?)"\)\.?$', told, re.M)
    told = told.partition("Got graph break/error:")[2].strip() or told
    reason = re.sub(r"\s+", " ", got[1]) if got else _first_line(told)
    inner = source_in(place)
    yield graph_break(
        reason.rstrip(".:"), inner if in_users_code(inner.file) else line_of(error), message
    )


def graph_break(reason: str, source: Source, message: str) -> Finding:
    """The finding for Python that cannot be traced, for which torch gives this reason."""
    rewrite = by_reason(reason) or by_reason(source.text)
    cause = rewrite.cause if rewrite is not None else ""
    return Finding(
        "graph-break",
        f"this code cannot be traced: {f'{cause} ({reason})' if cause else reason}",
        rewrite.advice
        if rewrite is not None
        else "Write it with tensors and plain Python, or take it out of forward",
        source,
        torch=message,
    )


_RULES: tuple[Callable[[Exception, str, Attempt], Iterator[Finding]], ...] = (
    _too_deep,
    _packed_sequence,
    _constraints,
    _data_dependent,
    _wrong_shapes,
    _branch_break,
    _model_fails,
    _leaves,
    _missing_fake,
    _output,
    _graph_break,
)


class _Lines:
    """The lines of guards on sizes, from a second capture in which sizes may become fixed."""

    def __init__(self, attempt: Attempt) -> None:
        self._guards: list[tuple[set[str], sympy.Basic, Source]] = []
        try:
            with tracing(), guard_lines() as lines:
                program = torch.export.export(
                    attempt.model,
                    attempt.args,
                    dict(attempt.kwargs),
                    dynamic_shapes=loosened(attempt.dynamic_shapes),
                )
        except Exception:  # the lines stay unknown
            return
        self.read(program, lines)

    def read(self, program: Any, lines: Mapping[sympy.Basic, Source]) -> None:
        """Take the lines of a program's guards."""
        for node in program.graph.nodes:
            mode = getattr(node.meta.get("val"), "fake_mode", None)
            if mode is not None:
                sources = mode.shape_env.var_to_sources
                break
        else:
            return
        for guard, line in lines.items():
            symbols = [s for symbol in guard.free_symbols for s in sources.get(symbol, ())]
            self._guards.append(({source.name for source in symbols}, guard, line))

    def of(self, size: Wanted, kind: type[sympy.Basic] | None = None) -> Source:
        """The line of the first guard on `size`, of this kind if there is one."""
        about = [(g, line) for names, g, line in self._guards if size.guard in names]
        right = [line for g, line in about if kind is not None and isinstance(g, kind)]
        return next(
            (line for line in [*right, *(line for _, line in about)] if line.file), Source()
        )


def specialised_sizes(attempt: Attempt, program: ExportedProgram) -> list[Finding]:
    """Warnings for sizes that should vary but are fixed in a captured program.

    Args:
        attempt: the model and inputs of the capture.
        program: its result.
    """
    wanted = {size.guard: size for size in attempt.sizes()}
    if not wanted:
        return []
    guards = " ".join(guards_of(program))
    fixed = [size for source, size in wanted.items() if _is_fixed(program, source)]
    lines = _Lines(attempt) if fixed and guards else None
    return [
        Finding(
            "specialised-size" if size.size not in (0, 1) else "example-of-size-one",
            f"{size.text} should vary, but the program takes only {size.size}",
            f"Use {_shape(size)} instead of {size.size} in that line"
            if size.size not in (0, 1)
            else f"Give example inputs in which {size.text} is 2 or more",
            lines.of(size, sympy.Eq) if lines else Source(),
            blocks=False,
        )
        for size in fixed
    ]


def _is_fixed(program: Any, source: str) -> bool:
    return any(
        p.source == source and (isinstance(p.size, int) or p.size.node.expr.is_Integer)
        for p in input_places(program)
    )
