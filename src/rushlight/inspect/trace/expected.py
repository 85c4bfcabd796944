"""The outputs that a bundled program expects of the test cases in a trace."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.errors import Code, LoadError
from rushlight.inspect.trace.events import EventBlock
from rushlight.runtime.arrays import value_of
from rushlight.schema import bundled_program as fb


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


def _method(block: EventBlock, bundle: fb.BundledProgram) -> str:
    """The method of a block, whose form may have run; ExecuTorch's traces do not tell it."""
    names = [suite.method_name for suite in bundle.method_test_suites]
    if not block.method:
        return names[0] if names else ""
    plan = (block.method, block.method.partition("@")[0])
    return next((name for name in plan if name in names), "")
