"""Runs the tests that ExecuTorch's wheel has of `executorch.devtools` with our names in its place.

    python devtools_suite.py FOLDER-OF-EXECUTORCH MODULE...

The tests are read where they are installed. `executorch` itself is not imported: a module of that
name forwards what has a counterpart of ours, and every other name skips the test that uses it,
which is told as "absent". Prints {test: ["passes" | "fails" | "absent", why]} as JSON.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import sys
import unittest
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

import rushlight as rl
from rushlight import inspect, tap
from rushlight.bundled.bundle import Bundle
from rushlight.inspect.trace import numeric_gap
from rushlight.inspect.trace.events import TimeScale, blocks_of
from rushlight.ir.custom_ops.tap import tap as tap_operator
from rushlight.schema import bundled_program, etdump
from rushlight.schema.etrecord import MARKER
from rushlight.serialize.bundle import read_bundle

ROOT = Path(sys.argv[1])
# Read from the wheel: tests, and the models and helpers of tests.
READ = ("executorch.exir.tests.models", "executorch.devtools.bundled_program.util.test_util")


class Absent(unittest.SkipTest):
    """A name that we have no counterpart of."""


class _Uses(type):
    """A class that refuses every use."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise Absent(cls.__name__)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Absent(f"{cls.__name__}.{name}")

    def __iter__(cls) -> Any:
        raise Absent(cls.__name__)


def absent(name: str) -> Any:
    return _Uses(name, (), {})


class Suite:
    """`MethodTestSuite`."""

    def __init__(self, method_name: str, test_cases: list[Case]) -> None:
        self.method_name, self.test_cases = method_name, test_cases


class Case:
    """`MethodTestCase`."""

    def __init__(self, inputs: Any, expected_outputs: Any = None) -> None:
        flatten = torch.utils._pytree.tree_flatten
        self.inputs = flatten(inputs)[0]
        self.expected_outputs = flatten(expected_outputs)[0]


def bundled(
    executorch_program: Any = None, method_test_suites: Any = (), pte_file_path: Any = None
) -> Bundle:
    """`BundledProgram`."""
    program = pte_file_path or executorch_program
    cases = {
        suite.method_name: [
            rl.TestCase(tuple(case.inputs), case.expected_outputs or None)
            for case in suite.test_cases
        ]
        for suite in method_test_suites
    }
    made = rl.bundle(program, cases)
    made.executorch_program = executorch_program
    return made


class Comparator:
    """A comparator of a distance of ours."""

    def __init__(self, name: str) -> None:
        self._distance = numeric_gap.distance_of(name)

    def element_compare(self, a: Any, b: Any) -> float:
        return self._distance(*(np.asarray(x, np.float64).reshape(-1) for x in (a, b)))


def tapped(
    program: Any,
    rules: Any = None,
    *,
    max_taps: int | None = None,
    error_on_empty: bool = True,
    **_: Any,
) -> Any:
    """`tap_intermediate_outputs_`, of a copy; of rules that match, the first counts."""
    if rules is None:
        rules = [(tap.select_all_call_function(), tap.STATS)]
    pairs = rules if isinstance(rules, list) else [rules]
    taps, earlier = [], []
    for selector, reducer in pairs:
        wanted = tap.select_all(selector, *map(tap.select_not, earlier))
        earlier.append(selector)
        if not any(wanted(node) for node in program.graph.nodes) and not error_on_empty:
            continue
        program, more = tap.tap_outputs(program, wanted, reducer, max_taps=max_taps)
        taps += more
    return program, taps


def compared(model: Any, example_inputs: Any, partitioner: Any = None, *, rules: Any = None) -> Any:
    """`tap_compare`."""
    pairs = rules if isinstance(rules, list) else [rules]
    if rules is None or len(pairs) != 1:
        raise Absent("tap_compare with several rules")
    [(selector, reducer)] = pairs
    return tap.tap_compare(model, example_inputs, partitioner, selector=selector, reducer=reducer)


def is_tap(node: Any) -> bool:
    return node.target is tap_operator


def edge(program: Any, *, compile_config: Any = None, generate_etrecord: bool = False, **_: Any):
    """`to_edge`; checks of the graph, which the configuration may switch off, are ours."""
    return rl.to_edge(program, generate_etrecord=generate_etrecord)


def lowered(
    program: Any, *, partitioner: Any = None, compile_config: Any = None, **more: Any
) -> Any:
    return rl.to_edge_transform_and_lower(program, partitioner=partitioner, **more)


def xnnpack_partitioner(**_: Any) -> Any:
    from rushlight.backends.xnnpack import XnnpackPartitioner

    return XnnpackPartitioner()


def demo_partitioner() -> Any:
    from rushlight.backends.demo import DemoPartitioner

    return DemoPartitioner()


def reference_outputs(bundle: Bundle) -> Any:
    record = inspect.ETRecord()
    record.update_reference_outputs(bundle)
    return record.reference_outputs


def representative_inputs(bundle: Bundle) -> Any:
    record = inspect.ETRecord()
    record.update_representative_inputs(bundle)
    return record.representative_inputs


# --- attributes that ours has under another name, or in another shape -----------------------------


def other_ways() -> None:
    """Let our classes have what the tests read of ExecuTorch's."""
    Bundle.serialize_to_schema = lambda self: read_bundle(self.to_bytes())
    inspect.EventBlock._gen_from_etdump = staticmethod(
        lambda dump, *_, **__: blocks_of(dump, None, TimeScale.NS, TimeScale.MS, None, None)
    )


NAMES: dict[str, Any] = {
    **{name: getattr(inspect, name) for name in inspect.__all__},
    **{name: getattr(tap, name) for name in tap.__all__},
    "EdgeProgramManager": rl.EdgeProgramManager,
    "to_edge": edge,
    "ExecutorchProgramManager": rl.ExecutorchProgramManager,
    "to_edge_transform_and_lower": lowered,
    "EdgeCompileConfig": lambda **_: None,
    "BundledProgram": bundled,
    "MethodTestCase": Case,
    "MethodTestSuite": Suite,
    "XnnpackPartitioner": xnnpack_partitioner,
    "AddMulPartitionerDemo": demo_partitioner,
    "serialize_from_bundled_program_to_flatbuffer": Bundle.to_bytes,
    "deserialize_from_flatbuffer_to_bundled_program": read_bundle,
    "_get_reference_outputs": reference_outputs,
    "_get_representative_inputs": representative_inputs,
    **{f"{name}Comparator": (lambda name=name: Comparator(name)) for name in ("MSE", "L1", "SNR")},
    "LoweredBackendModule": lambda **_: torch.nn.Module(),
    "tap_compare": compared,
    "tap_intermediate_outputs_": tapped,
    "is_tap_node": is_tap,
    "TapSpec": tap.Tap,
    "find_tap_nodes": lambda program: [n for n in program.graph.nodes if is_tap(n)],
    "parse_etrecord": lambda etrecord_path: inspect.parse_etrecord(etrecord_path),
    "ETRecordReservedFileNames": [MARKER, "exported_program", "debug_handle_map", "delegate_map"],
}


class Forwarded(ModuleType):
    """A module of ExecuTorch that forwards to ours."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.endswith(".schema_flatcc"):
            return getattr(etdump, "ETDump" if name == "ETDumpFlatCC" else name)
        if self.__name__.endswith(("bundled_program.schema", ".bundled_program_schema")):
            return getattr(bundled_program, name)
        return NAMES[name] if name in NAMES else absent(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.partition(".")[0] != "executorch" or name.endswith(".aten_lib"):
            return None
        file = ROOT.joinpath(*name.split(".")[1:]).with_suffix(".py")
        is_read = name in READ or name.endswith(("_test", "test_utils")) or ".test_" in name
        if is_read and file.exists():
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        return Forwarded(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []


class Results(unittest.TestResult):
    """What became of each test."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, list[str]] = {}

    def _tell(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        self.told[test.id().removeprefix("executorch.devtools.")] = [outcome, why]

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._tell(test, "passes")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._tell(test, "absent", reason)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._tell(test, "fails", f"{err[0].__name__}: {err[1]}".splitlines()[0][:300])

    addError = addFailure  # noqa: N815


def main(modules: Sequence[str]) -> dict[str, list[str]]:
    sys.meta_path.insert(0, Finder())
    other_ways()
    results = Results()
    for name in modules:
        try:
            module = importlib.import_module(f"executorch.devtools.{name}")
        except (Absent, AssertionError, ImportError) as error:
            results.told[name] = ["absent", f"the file cannot be read: {error}"]
            continue
        unittest.defaultTestLoader.loadTestsFromModule(module).run(results)
    return results.told


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    np.random.seed(0)
    torch.manual_seed(0)
    print(json.dumps(main(sys.argv[2:])))
