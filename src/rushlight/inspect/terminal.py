"""A program report in the terminal, as Rich tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rushlight.inspect.coverage import coverage_tables
from rushlight.inspect.model import Arena, Method, ProgramContents
from rushlight.inspect.text import (
    MAX_ROWS,
    more,
    pairs_of,
    short_source,
    size_text,
    table_of,
)

_BAR = 24  # characters of a bar


def overview(report: ProgramContents) -> Iterator[RenderableType]:
    """The summary after an export: methods and their memory, their backends, bytes by kind."""
    yield _title(report)
    yield _methods(report)
    yield _by_kind(report)
    if report.debug_left_out:
        yield _left_out(report)
    if report.forms:
        yield _forms(report)
    for method in report.methods:
        if method.coverage:
            yield coverage_tables(method)
    for text in report.quantization:
        yield Text(f"\n {text}")
    if report.needs:
        lines = [Text.assemble("\n To run, a runtime ", ("needs", "yellow"))]
        yield Group(*lines, *(Text(f"   • {need}") for need in _cut(report.needs)))
    yield _executorch(report)


def details(report: ProgramContents) -> Iterator[RenderableType]:
    """All tables: the overview, signatures, memory plans, operators, constants and the rest."""
    yield from overview(report)
    for method in report.methods:
        yield Text()
        yield from _method(method)
    if report.operators:
        yield Text()
        yield _operators(report)
    if report.constants:
        yield Text()
        yield _constants(report)
    if report.named_data:
        yield Text()
        yield _named_data(report)


def _title(report: ProgramContents) -> Text:
    name = report.name or "program"
    return Text.assemble((name, "bold"), f"  {size_text(report.bytes)} ({report.bytes:,} bytes)")


def _methods(report: ProgramContents) -> RenderableType:
    table = table_of(
        "", "method", "instructions", "planned memory", "lower bound", "constants", "runs on",
        right=(1, 2, 3, 4), drop=(3, 4, 1),
    )  # fmt: skip
    for method in report.methods:
        bound = sum(arena.lower_bound for arena in method.arenas)
        table.add_row(
            Text(method.name),
            f"{len(method.instructions):,}",
            size_text(method.arena_bytes),
            f"{size_text(bound)}{_above(method.arena_bytes, bound)}",
            size_text(method.constant_bytes),
            Text(_places(method)),
        )
    return table


def _forms(report: ProgramContents) -> RenderableType:
    table = table_of(
        "forms, in order of preference", "form", "backends", "constants used", "payloads",
        right=(2, 3), drop=(2, 3),
    )  # fmt: skip
    for form in report.forms:
        table.add_row(
            Text(form.name),
            Text(", ".join(form.backends) or "portable kernels"),
            size_text(form.constant_bytes),
            size_text(form.payload_bytes),
        )
    return table


def _above(size: int, bound: int) -> str:
    return f" (+{(size / bound - 1) * 100:.1f}%)" if bound and size > bound else ""


def _places(method: Method) -> str:
    """The calls of kernels and of each backend: "portable 12, XnnpackBackend 2"."""
    kernels = sum(instruction.kind == "kernel" for instruction in method.instructions)
    counts = {"portable": kernels} if kernels else {}
    for instruction in method.instructions:
        if instruction.kind == "delegate":
            counts[instruction.op] = counts.get(instruction.op, 0) + 1
    return ", ".join(f"{place} {count}" for place, count in counts.items()) or "constant"


def _by_kind(report: ProgramContents) -> RenderableType:
    table = pairs_of(4, right=(1, 2))
    for kind, size in sorted(report.by_kind.items(), key=lambda item: -item[1]):
        share = size / max(report.bytes, 1)
        bar = Text("━" * max(round(share * _BAR), 1 if size else 0), style="cyan")
        table.add_row(kind, size_text(size), f"{share:.1%}", bar)
    return table


def _left_out(report: ProgramContents) -> Text:
    """A note on the parts of the debug map that were left out to keep the file small."""
    left = ", ".join(report.debug_left_out)
    return Text.assemble(
        ("\n The map to Python lines is cut", "yellow"),
        f' to stay small: the file has no {left}; debug="full" at export stores all',
    )


def _executorch(report: ProgramContents) -> RenderableType:
    if not report.executorch:
        needs = " and ".join(report.executorch_needs)
        beside = f", but only with {needs}" if needs else ""
        return Text.assemble("\n ExecuTorch 1.4.1: ", ("runs", "green"), beside)
    lines = [Text.assemble("\n ExecuTorch 1.4.1: ", ("does not run", "yellow"), ", because")]
    return Group(*lines, *(Text(f"   • {reason}") for reason in _cut(report.executorch)))


def _cut(lines: Sequence[str]) -> Iterable[str]:
    yield from lines[:MAX_ROWS]
    if len(lines) > MAX_ROWS:
        yield f"and {len(lines) - MAX_ROWS} more"


def _method(method: Method) -> Iterator[RenderableType]:
    yield Text(method.signature, style="bold")
    if method.weak:
        yield Text("  the file has no contract: made from its tensors", style="dim")
    for relation in method.relations:
        yield Text(f"  requires {relation}", style="dim")
    for arena in method.arenas:
        if arena.blocks:
            yield _arena(arena, method)
    if method.delegates:
        yield _delegates(method)


def _arena(arena: Arena, method: Method) -> RenderableType:
    """The arena and the blocks that are live at its peak."""
    title = (
        f"memory {arena.memory_id}: {size_text(arena.bytes)}, "
        f"lower bound {size_text(arena.lower_bound)}{_above(arena.bytes, arena.lower_bound)}; "
        f"live at the peak, instruction {arena.peak_at}:"
    )
    table = table_of(
        title, "tensor", "type", "role", "bytes", "offset", "needed at", "Python",
        right=(3, 4), drop=(6, 2, 4, 5),
    )  # fmt: skip
    live = [block for block in arena.blocks if block.first <= arena.peak_at <= block.last]
    live.sort(key=lambda block: -block.bytes)
    for block in live[:MAX_ROWS]:
        source = method.instructions[block.writer].source if block.writer >= 0 else None
        table.add_row(
            Text(block.name),
            Text(block.text),
            block.role,
            f"{block.bytes:,}",
            f"{block.offset:,}",
            f"{block.first} to {block.last}",
            Text(short_source(source), style="dim", overflow="ellipsis", no_wrap=True),
        )
    if arena.overlap:
        names = " and ".join(method.values[value].name for value in arena.overlap)
        table.caption = Text(f"unsound: {names} share bytes while both live", "bold red")
        return table
    return more(table, min(len(live), MAX_ROWS), len(live))


def _delegates(method: Method) -> RenderableType:
    columns = ("backend", "payload", "scratch", "called at", "compile specs")
    table = table_of("delegates", *columns, right=(1, 2), drop=(4, 2))
    for delegate in method.delegates[:MAX_ROWS]:
        table.add_row(
            Text(delegate.backend),
            size_text(delegate.bytes) + (" shared" if delegate.shared else ""),
            size_text(delegate.scratch) if delegate.scratch else "",
            ", ".join(map(str, delegate.calls[:MAX_ROWS])),
            Text(", ".join(f"{key} ({size} bytes)" for key, size in delegate.specs)),
        )
    return more(table, min(len(method.delegates), MAX_ROWS), len(method.delegates))


def _operators(report: ProgramContents) -> RenderableType:
    table = table_of("operators", "operator", "calls", "ExecuTorch 1.4.1", right=(1,))
    for operator in report.operators:
        has = Text("has it", style="dim") if operator.executorch else Text("lacks it", "yellow")
        table.add_row(Text(operator.name), f"{operator.calls:,}", has)
    return table


def _constants(report: ProgramContents) -> RenderableType:
    table = table_of(
        "constants", "name", "type", "bytes", "kind", "used by", right=(2,), drop=(4, 3)
    )
    for constant in report.constants[:MAX_ROWS]:
        uses = "1 tensor" if len(constant.uses) == 1 else f"{len(constant.uses)} tensors"
        shape = ", ".join(map(str, constant.shape))
        table.add_row(
            Text(constant.name),
            Text(f"{constant.dtype}[{shape}]"),
            f"{constant.bytes:,}",
            constant.kind,
            uses,
        )
    return more(table, min(len(report.constants), MAX_ROWS), len(report.constants))


def _named_data(report: ProgramContents) -> RenderableType:
    table = table_of("named data", "key", "bytes", right=(1,))
    for entry in report.named_data[:MAX_ROWS]:
        table.add_row(Text(entry.key), f"{entry.bytes:,}{' shared' if entry.shared else ''}")
    return more(table, min(len(report.named_data), MAX_ROWS), len(report.named_data))
