"""Backends by name, fat programs, coverage with costs and reasons, strict, lines of failures."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tiny_backend
import torch
from tiny_backend import TinyPartitioner, TinyRuntime

import rushlight as rl
from rushlight.backends.demo import DemoPartitioner
from rushlight.inspect import get_delegation_info, print_delegated_graph, report_of
from rushlight.partition import registry
from rushlight.runtime import register_backend
from rushlight.runtime.backends import GROUP, unregister_backend
from rushlight.runtime.registries import backend_registry
from rushlight.serialize.pte import read_pte, write_pte

if TYPE_CHECKING:
    from packages import Package


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.second = torch.nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.sigmoid(self.first(x))
        return torch.tanh(self.second(hidden))


ARGS = (torch.randn(4, 16),)
LINE = "hidden = torch.sigmoid(self.first(x))"


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(0)
    return Model().eval()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))


@pytest.fixture
def runtime() -> Iterator[TinyRuntime]:
    backend = TinyRuntime()
    register_backend("TinyBackend", backend)
    yield backend
    unregister_backend("TinyBackend")


def test_a_program_with_delegates_equals_eager(model: Model, runtime: TinyRuntime) -> None:
    program = rl.export(model, ARGS, backend=TinyPartitioner())
    module = rl.load(program.buffer)
    with torch.no_grad():
        torch.testing.assert_close(module(*ARGS), model(*ARGS))
    assert module.forms == ()
    kinds = [e.kind for e in _traced(program)]
    assert kinds.count("delegate") == 3 and kinds.count("kernel") == 1


def _traced(program: rl.Program) -> list[Any]:
    module = rl.load(program.buffer, trace=True)
    module(*ARGS)
    return [e for e in module.trace.events() if e.kind in ("delegate", "kernel")]


def test_a_failure_inside_a_delegate_leads_to_the_python_line(
    model: Model, runtime: TinyRuntime
) -> None:
    module = rl.load(rl.export(model, ARGS, backend=TinyPartitioner()).buffer)
    runtime.breaks = True
    with pytest.raises(rl.RunError) as caught:
        module(*ARGS)
    text = str(caught.value)
    assert "TinyBackend" in text and "ArithmeticError: linear broke" in text
    assert "torch/nn/modules/linear.py" in text or LINE in text  # the innermost line is torch's
    runtime.breaks = False
    with torch.no_grad():
        torch.testing.assert_close(module(*ARGS), model(*ARGS))


class TestFat:
    def test_the_first_form_that_is_here_is_used(self, model: Model, runtime: TinyRuntime) -> None:
        program = rl.export(model, ARGS, backend=[TinyPartitioner(), "portable"])
        assert program.methods == ["forward", "forward@TinyBackend"]
        module = rl.load(program.buffer)
        assert module.methods == ("forward",)
        assert [(f.form, f.chosen) for f in module.forms] == [
            ("TinyBackend", True),
            ("portable", False),
        ]
        with torch.no_grad():
            torch.testing.assert_close(module(*ARGS), model(*ARGS))
            torch.testing.assert_close(module.clone()(*ARGS), model(*ARGS))
        assert rl.load(program.buffer, backend="portable").forms[0].form == "portable"

    def test_a_missing_backend_still_runs(self, model: Model) -> None:
        with pytest.warns(UserWarning, match="not compared with eager: backend TinyBackend"):
            program = rl.export(model, ARGS, backend=[TinyPartitioner()])
        module = rl.load(program.buffer)
        assert [(f.form, f.chosen) for f in module.forms] == [
            ("TinyBackend", False),
            ("portable", True),
        ]
        assert module.forms[0].why == "backend TinyBackend is not here"
        with torch.no_grad():
            torch.testing.assert_close(module(*ARGS), model(*ARGS))
        with pytest.raises(rl.LoadError, match="backend TinyBackend is not here"):
            rl.load(program.buffer, backend="TinyBackend")
        with pytest.raises(rl.LoadError, match="no form 'tpu'; it has TinyBackend, portable"):
            rl.load(program.buffer, backend="tpu")

    def test_a_form_with_other_inputs_is_left_out(self, model: Model) -> None:
        file = read_pte(rl.export(model, ARGS, backend=["cpu", "portable"], verify=False).buffer)
        [plan] = [p for p in file.program.execution_plan if p.name == "forward@cpu"]
        tensor: Any = plan.values[plan.inputs[0]].val
        tensor.sizes, tensor.dim_order = tensor.sizes[1:], [0]
        with pytest.warns(RuntimeWarning, match="'forward@cpu' does not have the values of its"):
            module = rl.load(write_pte(file))
        assert [(f.form, f.chosen) for f in module.forms] == [("cpu", False), ("portable", True)]
        with torch.no_grad():
            torch.testing.assert_close(module(*ARGS), model(*ARGS))

    def test_an_installed_backend_is_used_to_verify(self, model: Model, package: Package) -> None:
        """The package of the runtime half is there, and nothing has asked for it before."""
        package.offer("TinyBackend", "import tiny_backend\nfound = tiny_backend.TinyRuntime")
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            rl.export(model, ARGS, backend=TinyPartitioner())

    def test_a_package_that_fails_is_named(self, model: Model, package: Package) -> None:
        name = package.offer("TinyBackend", "1 / 0")
        why = f"backend TinyBackend .offered by {name}, which fails: ZeroDivisionError.* "
        with pytest.warns(UserWarning, match=f"not compared with eager: {why}does not run here"):
            program = rl.export(model, ARGS, backend=[TinyPartitioner()])
        assert re.match(f"{why}is not here", rl.load(program.buffer).forms[0].why)

    def test_other_shapes_are_tried_without_loading_the_backend(
        self, model: Model, runtime: TinyRuntime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loaded = []
        init = runtime.init
        monkeypatch.setattr(runtime, "init", lambda c: loaded.append(c.method) or init(c))
        rl.export(model, ARGS, backend=[TinyPartitioner()])
        static = len(loaded)
        shapes = ({0: torch.export.Dim("n", max=8)},)
        rl.export(model, ARGS, backend=[TinyPartitioner()], dynamic_shapes=shapes)
        assert len(loaded) == 2 * static + static * 2, "one load for each of three shapes"

    def test_a_wrong_answer_is_found_and_left_out(self, model: Model, runtime: TinyRuntime) -> None:
        program = rl.export(model, ARGS, backend=[TinyPartitioner()], verify=False)
        runtime.adds = 1.0
        with pytest.warns(RuntimeWarning, match="'TinyBackend' is left out: forward answers wrong"):
            module = rl.load(program.buffer)
        assert [f.chosen for f in module.forms] == [False, True]
        with torch.no_grad():
            torch.testing.assert_close(module(*ARGS), model(*ARGS))
        with pytest.raises(rl.LoadError, match="answers wrong: output 0 is off by"):
            rl.load(program.buffer, backend="TinyBackend")

    def test_a_form_that_fails_is_left_out(self, model: Model, runtime: TinyRuntime) -> None:
        program = rl.export(model, ARGS, backend=[TinyPartitioner()], verify=False)
        runtime.breaks = True
        with pytest.warns(RuntimeWarning, match="linear broke"):
            module = rl.load(program.buffer)
        assert [f.chosen for f in module.forms] == [False, True]

    def test_objects_of_the_process_are_asked_at_every_load(
        self, model: Model, runtime: TinyRuntime
    ) -> None:
        program = rl.export(model, ARGS, backend=[TinyPartitioner()])
        assert rl.load(program.buffer).forms[0].chosen
        runtime.adds = 1.0  # from now on it answers wrong
        with pytest.warns(RuntimeWarning, match="forward answers wrong"):
            assert not rl.load(program.buffer).forms[0].chosen

    def test_a_right_answer_is_remembered_of_what_was_installed(
        self, model: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """... until its files, its version, or what it says of itself change, or another is
        registered."""
        package = tmp_path / "tiny_package"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "numbers.py").write_text("ADDS = 0.0\n")
        (package / "runtime.py").write_text(
            "from tiny_backend import TinyRuntime\n"
            "from tiny_package import numbers\n"
            "class Runtime(TinyRuntime):\n"
            "    engine = '1'\n"
            "    runs = 0\n"
            "    def version(self): return self.engine\n"
            "    def run(self, *args):\n"
            "        type(self).runs += 1\n"
            "        return super().run(*args)\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        point = metadata.EntryPoint("TinyBackend", "tiny_package.runtime:Runtime", GROUP)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name=None: [point])
        import tiny_package.runtime as installed

        data = rl.export(model, ARGS, backend=[TinyPartitioner()]).buffer

        def answers() -> int:
            """How many delegates a load of a new process runs."""
            if "TinyBackend" in backend_registry.registered_backend_names:
                unregister_backend("TinyBackend")
            installed.Runtime.runs = 0
            assert rl.load(data).forms[0].chosen
            return int(installed.Runtime.runs)

        assert answers() == 3 and answers() == 0
        installed.Runtime.engine = "2"
        assert answers() == 3 and answers() == 0
        (package / "numbers.py").write_text("ADDS = 1.0\n")
        assert answers() == 3 and answers() == 0
        unregister_backend("TinyBackend")
        other = TinyRuntime()
        other.adds = 1.0
        register_backend("TinyBackend", other)
        with pytest.warns(RuntimeWarning, match="forward answers wrong"):
            rl.load(data)
        assert answers() == 0
        unregister_backend("TinyBackend")

    def test_a_wrong_answer_at_export_is_compared_with_eager(
        self, model: Model, runtime: TinyRuntime
    ) -> None:
        runtime.adds = 1.0
        with pytest.raises(rl.ExportError) as caught:
            rl.export(model, ARGS, backend=[TinyPartitioner()])
        text = str(caught.value)
        assert "does not compute what eager does: output 0" in text and LINE in text
        assert "Install what is missing" not in text and "max of sizes" not in text

    def test_advice_about_a_wrong_answer(self, model: Model, runtime: TinyRuntime) -> None:
        data = rl.export(model, ARGS, backend=[TinyPartitioner()]).buffer
        runtime.adds = 1.0
        with pytest.raises(rl.LoadError, match=r"Update the backend, or leave backend= out$"):
            rl.load(data, backend="TinyBackend")
        unregister_backend("TinyBackend")
        with pytest.raises(rl.LoadError, match=r"Install what is missing, or leave backend= out$"):
            rl.load(data, backend="TinyBackend")
        register_backend("TinyBackend", runtime)

    def test_constants_are_stored_once(self, model: Model, runtime: TinyRuntime) -> None:
        portable = rl.export(model, ARGS).report()
        fat = rl.export(model, ARGS, backend=[TinyPartitioner()]).report()
        assert fat.by_kind["constants"] == portable.by_kind["constants"]
        assert [f.name for f in fat.forms] == ["TinyBackend", "portable"]
        assert fat.forms[0].payload_bytes > 0 and fat.forms[1].payload_bytes == 0
        assert fat.executorch == [], "the portable form is what ExecuTorch runs"

    def test_a_form_that_takes_nothing_is_not_stored(self, runtime: TinyRuntime) -> None:
        with pytest.warns(UserWarning, match="its backend takes no part of the model"):
            program = rl.export(torch.nn.Tanh(), ARGS, backend=[TinyPartitioner()])
        assert program.methods == ["forward"]
        assert "rushlight/forms" not in {d.key for d in program.report().named_data}
        assert rl.load(program.buffer).forms == ()

    def test_state_belongs_to_the_form(self, runtime: TinyRuntime) -> None:
        class Counter(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("total", torch.zeros(4, 16))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.total.add_(torch.sigmoid(x))
                return self.total * 2.0

        program = rl.export(Counter(), ARGS, backend=[TinyPartitioner()])
        module, wanted = rl.load(program.buffer), Counter()
        assert module.forms[0].chosen
        for _ in range(3):
            torch.testing.assert_close(module(*ARGS), wanted(*ARGS))
        assert list(module.state) == ["total"]
        module.state.reset()
        torch.testing.assert_close(module(*ARGS), Counter()(*ARGS))

    def test_methods_may_have_any_name(self, model: Model, runtime: TinyRuntime) -> None:
        """What a form is called looks like a name that the user may give a method."""
        exported = torch.export.export(
            model, ARGS, dynamic_shapes=({0: torch.export.Dim("n", max=8)},)
        )
        methods = {"run": exported, "run@home": exported, "@": exported}
        module = rl.load(rl.export(methods, backend=[TinyPartitioner()]).buffer)
        assert sorted(module.methods) == sorted(methods)
        for name in methods:
            x = torch.randn(3, 16)
            with torch.no_grad():
                torch.testing.assert_close(module[name](x), model(x))
            with pytest.raises(rl.RunError, match="8"):  # the contract is there
                module[name](torch.randn(9, 16))

    def test_a_method_with_the_name_of_a_form_is_refused(self, model: Model) -> None:
        exported = torch.export.export(model, ARGS)
        methods = {"forward": exported, "forward@TinyBackend": exported}
        with pytest.raises(rl.ExportError, match="would be called 'forward@TinyBackend', which is"):
            rl.export(methods, backend=[TinyPartitioner()])

    def test_a_damaged_index_leaves_a_plain_program(
        self, model: Model, runtime: TinyRuntime
    ) -> None:
        program = rl.export(model, ARGS, backend=[TinyPartitioner()])
        for text in (b"", b"[]", b'{"methods": {"forward": 3}}', b'{"id": 1}', b"\xff"):
            program.manager.add_named_data("rushlight/forms", text)
            module = rl.load(program.buffer, methods=["forward"])
            with torch.no_grad():
                torch.testing.assert_close(module(*ARGS), model(*ARGS))


class TestCoverage:
    def test_report_says_what_stayed_and_why(self, model: Model, runtime: TinyRuntime) -> None:
        report = rl.export(model, ARGS, backend=TinyPartitioner()).report()
        (method,) = report.methods
        by_backend = {c.backend for c in method.coverage}
        assert by_backend == {"TinyBackend", ""}
        (stayed,) = [c for c in method.coverage if not c.backend]
        assert stayed.op == "aten.tanh.default"
        assert stayed.reasons == {"TinyBackend": "it has no instruction for aten.tanh.default"}
        assert stayed.source is not None and "torch.tanh(self.second(hidden))" in stayed.source.text
        text = re.sub(r"\s+", " ", str(report))
        assert "portable kernels" in text and "TinyBackend" in text and "stayed" in text

    def test_a_program_that_nobody_partitioned_has_none(self, model: Model) -> None:
        assert rl.export(model, ARGS).report().methods[0].coverage == []

    def test_strict_refuses_expensive_fallbacks(self, model: Model, runtime: TinyRuntime) -> None:
        with pytest.raises(rl.ExportError) as caught:
            rl.export(model, ARGS, backend=TinyPartitioner(), strict=True)
        text = str(caught.value)
        assert "stays on the portable kernels, strict allows 1.0%" in text
        assert "aten.tanh.default: TinyBackend: it has no instruction" in text
        assert "torch.tanh(self.second(hidden))" in text
        rl.export(model, ARGS, backend=TinyPartitioner(), strict=0.5)
        with pytest.raises(rl.ExportError, match=r"strict allows 0\.0%"):
            rl.export(model, ARGS, backend=TinyPartitioner(), strict=0.0)
        rl.export(torch.nn.Sigmoid(), ARGS, backend=TinyPartitioner(), strict=0.0)

    @pytest.mark.parametrize("strict", [-0.1, 1.5, float("nan"), "1%", None])
    def test_strict_is_a_share(self, model: Model, strict: Any) -> None:
        with pytest.raises(rl.ExportError, match="give True, False, or a share from 0 to 1"):
            rl.export(model, ARGS, backend=TinyPartitioner(), strict=strict)

    def test_delegation_info(self, model: Model, capsys: pytest.CaptureFixture[str]) -> None:
        edge = rl.to_edge_transform_and_lower(
            torch.export.export(model, ARGS), partitioner=[TinyPartitioner()]
        )
        module = edge.exported_program().graph_module
        info = get_delegation_info(module)
        assert info.num_delegated_subgraphs == 3 and info.num_delegated_nodes == 3
        assert info.num_non_delegated_nodes == 4  # tanh and three getitems
        assert "Total delegated subgraphs: 3\n" in info.get_summary()
        frame = info.get_operator_delegation_dataframe()
        assert list(frame.iloc[-1]) == ["Total", 3, 4]
        row = frame[frame.op_type == "aten_linear_default"].iloc[0]
        assert list(row)[1:] == [2, 0]
        print_delegated_graph(module)
        printed = capsys.readouterr().out
        assert printed.count("backend_id: TinyBackend") == 3
        assert "lowered graph():" in printed and "aten.sigmoid.default" in printed


class TestNames:
    def test_an_unknown_name_lists_what_is_installed(self, model: Model) -> None:
        with pytest.raises(rl.ExportError, match="unknown backend 'tpu'; installed are portable"):
            rl.export(model, ARGS, backend="tpu")

    def test_a_backend_is_found_by_its_entry_point(
        self, model: Model, runtime: TinyRuntime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        point = metadata.EntryPoint("tiny", "tiny_backend:TinyPartitioner", registry.GROUP)
        assert point.load() is tiny_backend.TinyPartitioner
        monkeypatch.setattr(registry, "entry_points", lambda group: [point])
        program = rl.export(model, ARGS, backend=["tiny"])
        assert program.methods == ["forward", "forward@tiny"]
        assert rl.load(program.buffer).forms[0].form == "tiny"

    def test_what_is_missing_is_said(self, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        point = metadata.EntryPoint("tiny", "no_such_package:Partitioner", registry.GROUP)
        monkeypatch.setattr(registry, "entry_points", lambda group: [point])
        with pytest.raises(rl.ExportError, match=r"no_such_package.*Install what is missing$"):
            rl.export(model, ARGS, backend="tiny")

    def test_the_extra_of_a_missing_package_is_named(
        self, model: Model, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        value = "rushlight.backends.openvino.no_such_module:Partitioner"
        point = metadata.EntryPoint("other", value, registry.GROUP)
        point = point._for(metadata.distribution("rushlight"))
        monkeypatch.setattr(registry, "entry_points", lambda group: [point])
        with pytest.raises(rl.ExportError, match=r"pip install 'rushlight\[openvino\]'$"):
            rl.export(model, ARGS, backend="other")

    def test_one_form_has_one_name(self, model: Model) -> None:
        with pytest.raises(rl.ExportError, match="TinyBackend is there twice"):
            rl.export(model, ARGS, backend=[TinyPartitioner(), TinyPartitioner()])

    def test_what_is_no_backend_is_refused(self, model: Model) -> None:
        with pytest.raises(rl.ExportError, match="give the name of a backend, a Partitioner"):
            rl.export(model, ARGS, backend=3)  # type: ignore[arg-type]


def test_the_page_holds_forms_and_coverage(model: Model, runtime: TinyRuntime) -> None:
    report = report_of(rl.export(model, ARGS, backend=[TinyPartitioner()]).buffer)
    data = json.loads(json.dumps(report.to_json()))
    assert data["forms"][0]["backends"] == ["TinyBackend"]
    assert any(c["backend"] == "TinyBackend" for m in data["methods"] for c in m["coverage"])


def test_data_beside_the_file_reaches_the_backend(
    tmp_path: Path,
) -> None:
    from rushlight.partition import BackendDetails, DelegationSpec, NamedDataStore, PreprocessResult

    class BesideBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            store = NamedDataStore()
            store.add_named_data("beside/scale", torch.tensor([3.0]), external_tag="weights")
            store.add_named_data("beside/inside", b"in the program", alignment=64)
            return PreprocessResult(b"x", None, store.get_named_data_store_output())

    class Runtime:
        def init(self, context: Any) -> Any:
            assert bytes(context.named_data("beside/inside")) == b"in the program"
            assert context.named_data("beside/nothing") is None
            return np.frombuffer(context.named_data("beside/scale"), np.float32)

        def execute(self, context: Any, handle: Any, args: tuple[Any, ...]) -> None:
            args[1][...] = args[0] * handle

    class All(TinyPartitioner):
        delegation_spec = DelegationSpec("BesideBackend")

        def partition(self, exported_program: Any) -> Any:
            result = super().partition(exported_program)
            result.partition_tags = dict.fromkeys(result.partition_tags, self.delegation_spec)
            return result

    edge = rl.to_edge_transform_and_lower(
        torch.export.export(torch.nn.Sigmoid(), (torch.ones(2),)), partitioner=[All()]
    )
    edge.to_executorch().save(tmp_path / "model.pte")
    register_backend("BesideBackend", Runtime())
    try:
        module = rl.load(tmp_path / "model.pte", data=tmp_path / "weights.ptd")
        assert module(np.ones(2, np.float32)).tolist() == [3.0, 3.0]
    finally:
        unregister_backend("BesideBackend")


def test_weights_that_a_backend_reads_as_they_are_are_stored_once() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.Tanh()).eval()
    args = (torch.randn(3, 256),)
    portable = rl.export(model, args).buffer
    program = rl.export(model, args, backend=[DemoPartitioner()])
    weights = 4 * (256 * 64 + 64)
    assert weights < len(portable) < len(program.buffer) < len(portable) + 8000
    keys = [d for d in program.report().named_data if d.key.startswith("demo/")]
    assert sum(d.bytes for d in keys) == weights
    module = rl.load(program.buffer)
    assert [f.chosen for f in module.forms] == [True, False]
    with torch.no_grad():
        torch.testing.assert_close(module(*args), model(*args))
