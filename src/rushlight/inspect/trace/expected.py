"""The outputs that a bundled program or a record expects of the test cases in a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.errors import Code, LoadError
from rushlight.inspect.trace.events import EventBlock
from rushlight.runtime.arrays import value_of
from rushlight.schema import bundled_program as fb
from rushlight.serialize.etrecord import Source


def add_expected(blocks: Iterable[EventBlock], bundle: fb.BundledProgram) -> None:
    """Set the `reference_output` of blocks that are runs of test cases.

    Args:
        blocks: of the trace.
        bundle: whose test cases were traced.

    Raises:
        LoadError: a block is of a test case that the bundled program does not have.
    """
    for block in blocks:
        if block.bundled_input_index is None:
            continue
        suites = [s for s in bundle.method_test_suites if s.method_name == _method(block, bundle)]
        cases = [case for suite in suites for case in suite.test_cases]
        if block.bundled_input_index >= len(cases):
            raise LoadError(
                f"the trace has a run of test case {block.bundled_input_index} of "
                f"{block.method or 'a method'}, which has {len(cases)} in the bundled program: "
                f"give the one that was traced",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        expected = cases[block.bundled_input_index].expected_outputs
        block.reference_output = [value_of(value) for value in expected]


def add_reference_outputs(blocks: Iterable[EventBlock], record: Source) -> None:
    """Likewise from an ETRecord, which needs torch if there are such blocks.

    Args:
        blocks: of the trace.
        record: the path of the record, or an open binary file.

    Raises:
        LoadError: the record is damaged, or has no such test case.
    """
    cases = [block for block in blocks if block.bundled_input_index is not None]
    if not cases:
        return
    from rushlight.record.etrecord import read_reference_outputs

    outputs = read_reference_outputs(record)
    for block in cases:
        mine = outputs.get(block.method.partition("@")[0] or "forward", [])
        index = block.bundled_input_index or 0
        if not outputs:
            return
        if index >= len(mine):
            raise LoadError(
                f"the trace has a run of test case {index} of {block.method or 'forward'}, and the "
                f"ETRecord has reference outputs of {len(mine)}: give the record of the bundled "
                f"program that was traced",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        block.reference_output = [_as_shown(value) for value in mine[index]]


def _as_shown(value: Any) -> Any:
    """A tensor as NumPy's array, of float32 if it is one of bfloat16."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().resolve_conj()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def _method(block: EventBlock, bundle: fb.BundledProgram) -> str:
    """The method of a block, whose form may have run; ExecuTorch's traces do not tell it."""
    names = [suite.method_name for suite in bundle.method_test_suites]
    if not block.method:
        return names[0] if names else ""
    plan = (block.method, block.method.partition("@")[0])
    return next((name for name in plan if name in names), "")
