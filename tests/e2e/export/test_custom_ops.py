"""Operators of the user's own: decomposed, or kept for a kernel library of theirs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.edge import EdgeCompileConfig, register_operator
from rushlight.ir import kernels
from rushlight.pipeline import to_edge

LIBRARY = torch.library.Library("test_rushlight", "DEF")
LIBRARY.define("double(Tensor x, float by=2.0) -> Tensor")
LIBRARY.define("double.out(Tensor x, float by=2.0, *, Tensor(a!) out) -> Tensor(a!)")
LIBRARY.define("lonely(Tensor x) -> Tensor")
LIBRARY.define("count(Tensor x) -> (Tensor, int)")
LIBRARY.define("half(Tensor x) -> (Tensor, Tensor)")
LIBRARY.define("half.out(Tensor x, *, Tensor(a!) low, Tensor(b!) high) -> (Tensor(a!), Tensor(b!))")


@torch.library.impl(LIBRARY, "double", "CompositeExplicitAutograd")
def double(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x * by


@torch.library.impl(LIBRARY, "lonely", "CompositeExplicitAutograd")
def lonely(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.library.impl(LIBRARY, "count", "CompositeExplicitAutograd")
def count(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    return x.clone(), x.dim()


@torch.library.impl(LIBRARY, "half", "CompositeExplicitAutograd")
def half(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.to(torch.float16), (x - 1).to(torch.int32)


ops = torch.ops.test_rushlight


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.double(x, 3.0) + 1


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(kernels, "_REGISTERED", {})


X = torch.randn(4)


def test_a_rule_of_the_user_decomposes_it() -> None:
    config = EdgeCompileConfig(decompositions={ops.double.default: lambda x, by=2.0: x * by})
    program = rl.export(Model(), (X,), compile_config=config)
    torch.testing.assert_close(rl.load(program.buffer)(X), Model()(X))


def test_a_rule_of_the_user_replaces_ours() -> None:
    class Leaky(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.leaky_relu(x, 0.5)

    rule = {
        torch.ops.aten.leaky_relu.default: lambda x, slope=0.01: torch.where(x > 0, x, x * slope)
    }
    config = EdgeCompileConfig(decompositions=rule)
    program = rl.export(Leaky(), (X,), compile_config=config)
    names = {operator.name for operator in program.report().operators}
    assert "aten::where.self_out" in names and "aten::leaky_relu.out" not in names
    torch.testing.assert_close(rl.load(program.buffer)(X), Leaky()(X))
    kept = EdgeCompileConfig(decompositions=rule, preserve_ops=list(rule))
    whole = rl.export(Leaky(), (X,), compile_config=kept).report()
    assert [operator.name for operator in whole.operators] == ["aten::leaky_relu.out"]


def test_rules_are_for_operators() -> None:
    with pytest.raises(rl.ExportError, match="name the overload"):
        EdgeCompileConfig(decompositions={ops.double: double})  # type: ignore[dict-item]


def test_without_a_rule_or_a_kernel_it_is_refused() -> None:
    with pytest.raises(rl.ExportError) as caught:
        rl.export(Model(), (X,))
    text = str(caught.value)
    assert "no kernel for\n  test_rushlight::double.out" in text
    assert "ops.double(x, 3.0)" in text and "register_operator" in text


@pytest.mark.usefixtures("registry")
def test_registered_it_is_kept_and_the_report_says_what_to_link() -> None:
    register_operator("test_rushlight::double.out", library="my_kernels", dtypes="floating")
    with pytest.raises(rl.ExportError, match=r"no kernel for test_rushlight::double.out.*verify=F"):
        rl.export(Model(), (X,))
    program = rl.export(Model(), (X,), verify=False)
    report = program.report()
    assert report.needs == ["a kernel for test_rushlight::double.out: link library 'my_kernels'"]
    assert "link library 'my_kernels'" in str(report)
    assert any("test_rushlight::double.out" in reason for reason in report.executorch)
    with pytest.raises(rl.LoadError, match=r"1 operator missing.*\n.*test_rushlight::double.out"):
        rl.load(program.buffer)


@pytest.mark.usefixtures("registry")
def test_its_dtype_rule_is_checked() -> None:
    register_operator(
        "test_rushlight::double.out", library="mine", dtypes="integral", arguments={"out": "any"}
    )
    with pytest.raises(rl.ExportError, match=r"argument 'x' is float32, the kernel takes integral"):
        rl.export(Model(), (X,), verify=False)


@pytest.mark.usefixtures("registry")
def test_several_results_have_the_dtypes_of_the_meta_kernel() -> None:
    class Two(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return ops.half(x)  # type: ignore[no-any-return]

    register_operator("test_rushlight::half.out", library="mine")
    program = rl.export(Two(), (X,), verify=False)
    (method,) = program.report().methods
    assert [slot.text for slot in method.outputs] == ["float16[4]", "int32[4]"]


@pytest.mark.usefixtures("registry")
def test_an_operator_without_out_variant_gets_one() -> None:
    class Lonely(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ops.lonely(x)  # type: ignore[no-any-return]

    with pytest.raises(rl.ExportError, match=r"no kernel for\n  test_rushlight::lonely.out"):
        rl.export(Lonely(), (X,))
    register_operator("test_rushlight::lonely.out", library="mine")
    program = rl.export(Lonely(), (X,), verify=False)
    assert [o.name for o in program.report().operators] == ["test_rushlight::lonely.out"]


def test_an_operator_that_returns_a_number_says_what_to_define() -> None:
    class Counted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ops.count(x)[0]  # type: ignore[no-any-return]

    with pytest.raises(rl.ExportError, match=r"count a decomposition .*define test_rushlight::cou"):
        rl.export(Counted(), (X,))
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[ops.count.default])
    edge = to_edge(torch.export.export(Counted(), (X,)), compile_config=config)
    assert "count" in edge.exported_program().graph_module.code


@pytest.mark.parametrize(
    ("name", "dtypes", "message"),
    [
        ("aten::add.out", None, "is in the portable library"),
        ("add", None, 'must be "namespace::op.out"'),
        ("mylib::add.out", "floating+quad", "unknown dtype 'quad'; there are any"),
    ],
)
@pytest.mark.usefixtures("registry")
def test_wrong_registrations(name: str, dtypes: str | None, message: str) -> None:
    with pytest.raises(rl.Error, match=message):
        register_operator(name, library="mine", dtypes=dtypes)


def test_programs_from_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("pt2")
    for name, factor in (("a", 2.0), ("b", 3.0)):

        class Scaled(torch.nn.Module):
            def forward(self, x: torch.Tensor, factor: float = factor) -> torch.Tensor:
                return x * factor

        torch.export.save(torch.export.export(Scaled(), (X,)), folder / f"{name}.pt2")
    one = rl.load(rl.export(folder / "a.pt2").buffer)
    assert one(np.ones(4, np.float32)).tolist() == [2.0] * 4
    with open(folder / "b.pt2", "rb") as file:
        assert rl.load(rl.export(file).buffer)(np.ones(4, np.float32)).tolist() == [3.0] * 4
    both = rl.export({"twice": str(folder / "a.pt2"), "thrice": folder / "b.pt2"})
    assert both.methods == ["thrice", "twice"]
    assert rl.load(both.buffer).thrice(np.ones(4, np.float32)).tolist() == [3.0] * 4


@pytest.mark.filterwarnings("ignore")
def test_files_that_hold_something_else(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("wrong")
    torch.save(torch.nn.Linear(2, 2).state_dict(), folder / "weights.pt2")
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), folder / "script.pt2")
    rl.export(torch.nn.ReLU(), (X,)).save(folder / "program.pte", quiet=True)
    (folder / "text.pt2").write_bytes(b"hello")
    torch.export.save(torch.export.export(torch.nn.ReLU(), (X,)), folder / "good.pt2")
    data = bytearray((folder / "good.pt2").read_bytes())
    at = data.index(b'"graph_module"')
    data[at : at + 6] = b"xxxxxx"
    (folder / "damaged.pt2").write_bytes(data)
    for name, message in (
        ("weights.pt2", "is a file of weights or a pickled module, not an ExportedProgram"),
        ("script.pt2", "is a TorchScript module"),
        ("program.pte", "is a finished program"),
        ("text.pt2", "is a damaged archive, or a file of another kind"),
        ("damaged.pt2", "cannot be read as an ExportedProgram"),
        ("missing.pt2", "cannot read .*missing.pt2.*check the path"),
    ):
        with pytest.raises(rl.ExportError, match=message):
            rl.export(folder / name)
