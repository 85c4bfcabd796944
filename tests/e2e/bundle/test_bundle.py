"""Bundled programs of whole models: written, read and tested, by every backend and dtype, and by
real ExecuTorch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim
from typer.testing import CliRunner

import rushlight as rl
from rushlight.cli import app
from rushlight.edge import ExecutorchBackendConfig
from rushlight.inspect import Inspector
from rushlight.runtime import TraceOptions


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(64, 5)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        features = self.body(x)
        return {"features": features, "scores": self.head(features.flatten(1)).softmax(-1)}


def test_the_smallest_case(tmp_path: Path) -> None:
    model, x = nn.Linear(4, 2).eval(), torch.randn(3, 4)
    program = rl.export(model, (x,))
    rl.bundle(program, [(x,)]).save(tmp_path / "m.bpte", quiet=True)
    [result] = rl.load_bundle(tmp_path / "m.bpte").test()
    assert result.passed and result.compared and result.elements == 6
    np.testing.assert_allclose(
        rl.load(tmp_path / "m.bpte")(x.numpy()), model(x).detach(), atol=1e-6
    )


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_executorch_verifies_ours(backend: str, executorch: Any, tmp_path: Path) -> None:
    """`cpu` is ours alone, so that ExecuTorch reads its file but runs it not."""
    model, x = Network().eval(), torch.randn(2, 3, 8, 8)
    program = rl.export(model, (x,), backend=backend)
    bundle = rl.bundle(program, [(x,), rl.TestCase((x * 2,), name="twice", atol=1e-4)])
    bundle.save(tmp_path / "m.bpte", quiet=True)
    bad = rl.bundle(
        program, [rl.TestCase((x,), expected=(torch.zeros(2, 4, 4, 4), torch.zeros(2, 5)))]
    )
    bad.save(tmp_path / "bad.bpte", quiet=True)
    read = executorch.call("read_bundle", bpte=tmp_path / "m.bpte")
    inputs = ["FLOAT", [2, 3, 8, 8], [0, 1, 2, 3], 1536]
    outputs = [["FLOAT", [2, 4, 4, 4], [0, 1, 2, 3], 512], ["FLOAT", [2, 5], [0, 1], 40]]
    assert read == {"forward": [[[inputs], outputs]] * 2}
    assert [result.passed for result in bundle.test()] == [True, True]
    assert [result.passed for result in bad.test()] == [False]
    if backend == "cpu":
        return
    for index in (0, 1):
        error = executorch.call(
            "verify", bpte=tmp_path / "m.bpte", method="forward", index=index, rtol=1e-4, atol=1e-5
        )
        assert error == ""
    assert executorch.call("verify", bpte=tmp_path / "bad.bpte", method="forward", index=0)


@pytest.mark.parametrize("xnnpack", [False, True])
def test_we_verify_executorchs(xnnpack: bool, executorch: Any, tmp_path: Path) -> None:
    model, x = Network().eval(), torch.randn(2, 3, 8, 8)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "m.pt2")
    np.savez(tmp_path / "in.npz", in0=x.numpy())
    paths = {"program": tmp_path / "m.pt2", "data": tmp_path / "in.npz"}
    executorch.call("bundle", **paths, bpte=tmp_path / "m.bpte", xnnpack=xnnpack)
    bundle = rl.load_bundle(tmp_path / "m.bpte")
    [case] = bundle.cases["forward"]
    np.testing.assert_array_equal(case.inputs[0], x.numpy())
    wanted = [value.detach() for value in model(x).values()]
    for ours, eager in zip(case.expected.values(), wanted, strict=True):
        np.testing.assert_allclose(ours, eager, atol=1e-6)
    [result] = bundle.test(rtol=1e-4, atol=1e-5)
    assert result.passed and result.elements == 128 + 10, result
    told = CliRunner().invoke(
        app, ["test", str(tmp_path / "m.bpte"), "--rtol", "1e-4", "--atol", "1e-5"]
    )
    assert told.exit_code == 0 and "all passed" in told.stdout


class Dtypes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64"],
)
def test_every_dtype(dtype: str, tmp_path: Path) -> None:
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    program = rl.export(Dtypes(), (x,))
    bundle = rl.bundle(program, [(x,), rl.TestCase((x,), expected=x * 3)])
    bundle.save(tmp_path / "m.bpte", quiet=True)
    right, wrong = rl.load_bundle(tmp_path / "m.bpte").test()
    assert right.passed and right.absolute == 0, right
    assert not wrong.passed and wrong.absolute == 5 and wrong.place == (1, 2), wrong
    assert (wrong.got, wrong.expected, wrong.wrong) == (10, 15, 5)


def test_bool_and_complex() -> None:
    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.logical_not(), y + y

    x, y = torch.tensor([True, False]), torch.tensor([1 + 2j, 3 - 1j])
    program = rl.export(Mixed(), (x, y))
    cases = [(x, y), rl.TestCase((x, y), expected=(x, y * 2)), rl.TestCase((x, y), (~x, y * 2j))]
    assert [r.passed for r in rl.bundle(program, cases).test()] == [True, False, False]
    assert [r.passed for r in rl.bundle(program, cases).test(atol=9)] == [True, False, True]


def test_conjugates_that_eager_has_not_computed() -> None:
    class Conjugate(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.conj()

    x = torch.tensor([1 + 2j, 3 - 1j])
    program = rl.export(Conjugate(), (x,))
    assert [r.passed for r in rl.bundle(program, [(x,), (x.conj(),)]).test()] == [True, True]


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor, factor: float, add: bool, n: int) -> Any:
        return (x * factor + n if add else x), [x - 1]


def test_numbers_among_inputs_and_nested_outputs(tmp_path: Path) -> None:
    x = torch.randn(2, 3)
    program = rl.export(Scaled(), (x,), {"factor": 2.5, "add": True, "n": 3})
    case = rl.TestCase((x.numpy(),), kwargs={"factor": 2.5, "add": True, "n": 3}, name="numbers")
    rl.bundle(program, [case]).save(tmp_path / "m.bpte", quiet=True)
    bundle = rl.load_bundle(tmp_path / "m.bpte")
    [read] = bundle.cases["forward"]
    assert (read.name, read.origin, dict(read.kwargs)) == (
        "numbers", "eager", {"factor": 2.5, "add": True, "n": 3}
    )  # fmt: skip
    np.testing.assert_array_equal(read.expected[1][0], x - 1)
    assert bundle.test()[0].passed
    again = rl.bundle(bundle.program, bundle.cases)
    assert again.to_bytes() == (tmp_path / "m.bpte").read_bytes()


def test_dynamic_sizes_and_several_methods(tmp_path: Path) -> None:
    model = nn.Linear(4, 2).eval()
    batch = Dim("batch", min=1, max=8)
    x = torch.randn(3, 4)
    methods = {
        "forward": torch.export.export(model, (x,), dynamic_shapes=({0: batch},)),
        "double": torch.export.export(Dtypes(), (x,)),
    }
    program = rl.export(methods, constant_methods={"limit": 7})
    cases = {
        "forward": [(torch.randn(n, 4),) for n in (1, 3, 8)],
        "double": [rl.TestCase((x,), name="one")],
        "limit": [()],
    }
    rl.bundle(program, cases).save(tmp_path / "m.bpte", quiet=True)
    bundle = rl.load_bundle(tmp_path / "m.bpte")
    assert bundle.methods == ["double", "forward", "limit"]
    results = bundle.test()
    assert [(r.method, r.index, r.passed) for r in results] == [
        ("double", 0, True), *(("forward", i, True) for i in range(3)), ("limit", 0, True)
    ]  # fmt: skip
    assert [r.name for r in bundle.test(case="one")] == ["one"]
    assert [r.index for r in bundle.test(method="forward", case=2)] == [2]
    with pytest.raises(rl.RunError, match=r"no test case 5; there are double: 0 \('one'\)"):
        bundle.test(case=5)
    with pytest.raises(rl.RunError, match="no test cases of 'other'; there are some of double"):
        bundle.test(method="other")


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((2,), 5.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total + torch.rand(2)


def test_each_case_begins_as_after_a_load() -> None:
    program = rl.export(Counter(), (torch.ones(2),))
    bundle = rl.bundle(program, [(torch.ones(2),), (torch.zeros(2),), (torch.ones(2),)])
    assert all(result.passed and result.absolute == 0 for result in bundle.test())
    module = rl.load(bundle.to_bytes())
    module(torch.ones(2))
    assert all(module["forward"].verify(i).passed for i in (2, 0, 1))


def test_executorch_goes_on_from_the_state_of_the_case_before(
    executorch: Any, tmp_path: Path
) -> None:
    class Total(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.total * 1

    path = tmp_path / "m.bpte"
    bundle = rl.bundle(rl.export(Total(), (torch.ones(2),)), [(torch.ones(2),)] * 2)
    bundle.save(path, quiet=True)
    assert all(result.passed for result in bundle.test())
    # Each passes there after a load of its own.
    assert [executorch.call("verify", bpte=path, method="forward", index=i) for i in (0, 1)] == [
        *("", ""),
    ]
    first, second = executorch.call("verify_in_order", bpte=path, method="forward", count=2)
    assert first == "" and "failed" in second


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
def test_a_quantised_program_keeps_its_tolerance(backend: str) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    inputs = [(torch.randn(4, 16),) for _ in range(4)]
    program = rl.export(model, inputs[0], backend=backend, quantize="int8", calibrate=inputs)
    assert all(result.passed for result in rl.bundle(program, inputs).test())


def test_a_fat_program_is_tested_in_each_form(tmp_path: Path) -> None:
    model, x = Network().eval(), torch.randn(1, 3, 8, 8)
    program = rl.export(model, (x,), backend=["cpu", "xnnpack", "portable"])
    rl.bundle(program, [(x,)]).save(tmp_path / "m.bpte", quiet=True)
    bundle = rl.load_bundle(tmp_path / "m.bpte")
    for form in ("cpu", "xnnpack", "portable"):
        assert bundle.test(backend=form)[0].passed


def test_a_trace_of_test_cases(executorch: Any, tmp_path: Path) -> None:
    model, x = Network().eval(), torch.randn(1, 3, 8, 8)
    program = rl.export(model, (x,), backend="cpu")
    rl.bundle(program, [(x,), (x + 1,)]).save(tmp_path / "m.bpte", quiet=True)
    module = rl.load(tmp_path / "m.bpte", trace=TraceOptions(values="outputs"))
    for index in (0, 1):
        assert module["forward"].verify(index).passed
    module(x.numpy())
    module.trace.save(tmp_path / "m.etdp")
    inspector = Inspector(
        tmp_path / "m.etdp",
        debug_buffer_path=tmp_path / "m.etdp.values",
        program=tmp_path / "m.bpte",
    )
    load, first, second, plain = inspector.event_blocks
    indices = [block.bundled_input_index for block in (load, first, second, plain)]
    theirs = executorch.call("traced_cases", dump=tmp_path / "m.etdp")
    assert theirs == [-1, 0, 1, -1]  # which ours shows as None
    assert indices == [None, 0, 1, None] and plain.reference_output is None
    for block, inputs in ((first, x), (second, x + 1)):
        assert block.reference_output is not None
        for got, wanted, eager in zip(
            block.run_output, block.reference_output, model(inputs).values(), strict=True
        ):
            np.testing.assert_allclose(got, wanted, atol=1e-4)
            np.testing.assert_array_equal(wanted, eager.detach())
    assert any(event.op_types for event in first.events)


def test_a_program_whose_weights_are_in_a_data_file(tmp_path: Path) -> None:
    model, x = nn.Linear(4, 2).eval(), torch.randn(3, 4)
    config = ExecutorchBackendConfig(external_constants=lambda node: "weights")
    manager = rl.to_edge(torch.export.export(model, (x,))).to_executorch(config)
    manager.save(tmp_path / "m.pte")
    with pytest.raises(rl.ExportError, match="case 0: no outputs are expected, and the program"):
        rl.bundle(tmp_path / "m.pte", [(x,)])
    data = tmp_path / "weights.ptd"
    made = rl.bundle(tmp_path / "m.pte", [(x,)], data=data)
    made.save(tmp_path / "m.bpte", quiet=True)
    assert rl.load_bundle(tmp_path / "m.bpte").test(data=data)[0].passed
    np.testing.assert_allclose(made.cases["forward"][0].expected, model(x).detach(), atol=1e-6)


def test_threads_test_one_module_in_turn(tmp_path: Path) -> None:
    program = rl.export(Counter(), (torch.ones(2),))
    bundle = rl.bundle(program, [(torch.full((2,), float(i)),) for i in range(8)])
    method = rl.load(bundle.to_bytes())["forward"]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: method.verify(i % 8), range(64)))
    assert all(result.passed and result.absolute == 0 for result in results)
