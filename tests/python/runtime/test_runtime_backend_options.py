"""Options that `rl.load` gives to backends."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from backend_doubles import Recorder, registered
from runtime_programs import delegated, program

import rushlight as rl
from rushlight import runtime

ONES = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Tset": {"a": 1}}, "the program has no delegate for a backend 'Tset'; it has: Test"),
        ({("forward", "Tset"): {}}, "the method 'forward' has no delegate for a backend 'Tset'"),
        ({("f", "Test"): {"a": 1}}, "no method 'f'; it has forward"),
        ({("a", "b", "c"): {}}, "neither a backend's id nor a pair"),
        ({3: {}}, "neither a backend's id nor a pair"),
        ({"Test": [1]}, "are a list, not a dict"),
        ({"Test": {"a": 1.5}}, "Test: 'a': 1.5 is a float; keys are str, values bool, int or str"),
        ({"Test": {1: 1}}, "keys are str"),
        ({"Test": {"a": 2**63}}, "does not fit 64 bits"),
        ({"Test": {"k" * 64: 1}}, "a key of 64 bytes; 1 to 63 are allowed"),
        ({"Test": {"": 1}}, "a key of 0 bytes"),
        ({"Test": {"a": "t" * 256}}, "'a' for Test has a text of 256 bytes; at most 255"),
    ],
)
def test_options_that_are_refused(options: Any, message: str) -> None:
    data = program(delegated("Test", 2), blobs=[b""])
    with registered("Test", Recorder()):
        with pytest.raises(rl.LoadError, match=re.escape(message)):
            rl.load(data, backend_options=options)
        with pytest.raises(rl.LoadError, match=re.escape(message)):
            runtime.Runtime.get().load_program(data, backend_options=options)


def test_options_reach_clones_and_later_methods() -> None:
    backend = Recorder()
    with registered("Test", backend):
        data = program(delegated("Test", 2), blobs=[b""])
        module = rl.load(data, backend_options={"Test": {"threads": -3, "device": "cpu"}})
        clone = module.clone()
        module.close()
        assert clone(ONES).tolist() == [2, 2]
        loaded = runtime.Runtime.get().load_program(data, backend_options={"Test": {"x": True}})
        loaded.load_method("forward")
    options = [context.options for context in backend.contexts]
    assert options == [{"threads": -3, "device": "cpu"}] * 2 + [{"x": True}]
