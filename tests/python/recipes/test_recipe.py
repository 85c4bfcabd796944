"""Recipes as data: equality, pickling, subclasses, the registry, and joining several."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.fx import GraphModule
from torchao.quantization import IntxWeightOnlyConfig

from rushlight.backends.demo import AddMulPartitionerDemo
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig
from rushlight.quantization import CpuQuantizer
from rushlight.recipes import (
    AOQuantizationConfig,
    BackendRecipeProvider,
    ExportRecipe,
    LoweringRecipe,
    Mode,
    QuantizationRecipe,
    RecipeRegistry,
    RecipeType,
    StageType,
    recipe_registry,
)


class Kinds(RecipeType):
    PLAIN = "plain"
    OTHER = "other"
    WRONG = "wrong"

    @classmethod
    def get_backend_name(cls) -> str:
        return "test"


class Nameless(RecipeType):
    ONLY = "only"


class Provider(BackendRecipeProvider):
    backend_name = "test"

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        return [Kinds.PLAIN, Kinds.WRONG]

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        if recipe_type is Kinds.WRONG:
            return "wrong"  # type: ignore[return-value]
        return ExportRecipe(name=str(kwargs)) if recipe_type is Kinds.PLAIN else None


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe_registry, "_providers", {})
    recipe_registry.register_backend_recipe_provider(Provider())


@dataclass
class Named(ExportRecipe):
    """A recipe with a field of its own."""

    owner: str = "me"


def same(module: GraphModule) -> GraphModule:
    return module


def first() -> list[tuple[int]]:
    return [(1,), (2,)]


def second() -> list[tuple[int]]:
    return [(3,)]


@pytest.mark.usefixtures("_registered")
def test_the_registry_gives_recipes_of_registered_backends() -> None:
    assert RecipeRegistry() is recipe_registry
    assert recipe_registry.list_backends() == ["test"]
    assert ExportRecipe.get_recipe(Kinds.PLAIN, group_size=8).name == "{'group_size': 8}"
    assert Provider().supports_recipe(Kinds.PLAIN) and not Provider().supports_recipe(Kinds.OTHER)
    with pytest.raises(ValueError, match=r"'other' not supported by 'test'.*\['plain', 'wrong'\]"):
        ExportRecipe.get_recipe(Kinds.OTHER)
    with pytest.raises(ValueError, match="Invalid recipe type: 'plain' is str"):
        ExportRecipe.get_recipe("plain")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="made str for 'wrong'"):
        ExportRecipe.get_recipe(Kinds.WRONG)
    with pytest.raises(NotImplementedError, match="Nameless"):
        ExportRecipe.get_recipe(Nameless.ONLY)
    for call in (
        lambda: recipe_registry.get_supported_recipes("absent"),
        lambda: recipe_registry.create_recipe(Kinds.PLAIN, "absent"),
    ):
        with pytest.raises(ValueError, match="'absent' not available: registered are test"):
            call()


def test_a_provider_must_be_complete() -> None:
    class Half(BackendRecipeProvider):
        backend_name = "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_recipes_are_equal_and_can_be_pickled() -> None:
    def recipe() -> Named:
        return Named(
            "a",
            QuantizationRecipe(post_convert_passes=[same], calibration_inputs_fn=first),
            lowering_recipe=LoweringRecipe(edge_compile_config=EdgeCompileConfig()),
            executorch_backend_config=ExecutorchBackendConfig(segment_alignment=256),
            pipeline_stages=[StageType.TORCH_EXPORT],
            mode=Mode.DEBUG,
            strict=False,
        )

    assert recipe() == recipe() and recipe() != ExportRecipe("a")
    copied = pickle.loads(pickle.dumps(recipe()))
    assert copied == recipe() and isinstance(copied, Named) and copied.owner == "me"
    assert pickle.loads(pickle.dumps(Kinds.PLAIN)) is Kinds.PLAIN
    assert (StageType("to_edge"), Mode("debug")) == ("to_edge", "debug")
    assert not ExportRecipe().source_transform_in_place


def test_combined_recipes_keep_the_parts_of_all_in_order() -> None:
    quantizers, partitioners = [CpuQuantizer(), CpuQuantizer()], [AddMulPartitionerDemo()] * 2
    config = AOQuantizationConfig(IntxWeightOnlyConfig(weight_dtype=torch.int8))
    passes: list[Any] = [lambda name, program: program, lambda name, program: []]
    backend = ExecutorchBackendConfig(segment_alignment=256)
    recipes = [
        ExportRecipe(
            "a",
            QuantizationRecipe([quantizers[0]], [config], calibration_inputs_fn=first),
            [passes[0]],
            LoweringRecipe([partitioners[0]], [passes[1]]),
        ),
        ExportRecipe(
            "b",
            QuantizationRecipe(
                [quantizers[1]],
                calibration_inputs_fn=second,
                pre_prepare_passes=[same],
                dynamic_batch_size=True,
            ),
            lowering_recipe=LoweringRecipe(
                [partitioners[1]], None, [passes[0]], EdgeCompileConfig(_skip_dim_order=True)
            ),
            executorch_backend_config=backend,
        ),
        ExportRecipe(),
    ]
    made = ExportRecipe.combine(recipes)
    assert made.name == "a_b" and made.aten_transform_passes == [passes[0]]
    assert made.executorch_backend_config == backend
    quantization, lowering = made.quantization_recipe, made.lowering_recipe
    assert quantization is not None and lowering is not None
    assert quantization.get_quantizers() == quantizers
    assert quantization.ao_quantization_configs == [config]
    assert quantization.pre_prepare_passes == [same] and quantization.dynamic_batch_size
    inputs = pickle.loads(pickle.dumps(quantization.calibration_inputs_fn))
    assert list(inputs()) == list(inputs()) == [(1,), (2,), (3,)]
    assert lowering.partitioners == partitioners
    assert lowering.edge_transform_passes == [passes[1]]
    assert lowering.edge_manager_transform_passes == [passes[0]]
    assert lowering.edge_compile_config == EdgeCompileConfig(_skip_dim_order=True)


def test_combining_nothing_and_one() -> None:
    with pytest.raises(ValueError, match="recipes is empty"):
        ExportRecipe.combine([])
    only = ExportRecipe("only")
    assert ExportRecipe.combine([only], "renamed") is only
    both = ExportRecipe.combine([only, ExportRecipe("other")], "renamed")
    assert both == ExportRecipe("renamed")


def _lowered(name: str, **options: Any) -> ExportRecipe:
    return ExportRecipe(name, lowering_recipe=LoweringRecipe(**options))


@pytest.mark.parametrize(
    ("recipes", "told"),
    [
        ([ExportRecipe("a", strict=False), ExportRecipe("b")], "strict .*a=False, b=True"),
        ([ExportRecipe(mode=Mode.DEBUG), ExportRecipe()], r"mode .*recipes\[0\]="),
        (
            [ExportRecipe("a", pipeline_stages=[StageType.TO_EDGE]), ExportRecipe("b")],
            "pipeline_stages",
        ),
        (
            [
                ExportRecipe("a", QuantizationRecipe(is_qat=True)),
                ExportRecipe("b", QuantizationRecipe()),
            ],
            "is_qat .*a=True, b=False",
        ),
        (
            [ExportRecipe(n, QuantizationRecipe(is_qat=True, train_fn=print)) for n in "ab"],
            "train_fn .*a, b",
        ),
        (
            [
                _lowered("a", edge_compile_config=EdgeCompileConfig(_skip_dim_order=True)),
                _lowered("b", edge_compile_config=EdgeCompileConfig()),
            ],
            r"edge_compile_configs .*: _skip_dim_order \(a=True, b=False\); give",
        ),
        (
            [
                _lowered("a", partitioners=[AddMulPartitionerDemo()]),
                _lowered("b", partitioners={"forward": [AddMulPartitionerDemo()]}),
            ],
            "partitioners of a are for all methods, those of b by",
        ),
    ],
)
def test_recipes_that_contradict_each_other(recipes: list[ExportRecipe], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ExportRecipe.combine(recipes)


def test_the_options_of_a_combined_recipe_are_copies() -> None:
    operators = [torch.ops.aten.linear.default, torch.ops.aten.silu.default]
    one = _lowered("a", edge_compile_config=EdgeCompileConfig(preserve_ops=list(operators)))
    other = _lowered("b", edge_compile_config=EdgeCompileConfig(preserve_ops=operators[::-1]))
    made = ExportRecipe.combine([one, other]).lowering_recipe  # the order says nothing
    assert made is not None and made.edge_compile_config is not None
    made.edge_compile_config.preserve_ops.clear()
    assert one.lowering_recipe is not None and one.lowering_recipe.edge_compile_config is not None
    assert one.lowering_recipe.edge_compile_config.preserve_ops == operators


def test_partitioners_by_method_are_joined_by_method() -> None:
    a, b, c = (AddMulPartitionerDemo() for _ in range(3))
    made = ExportRecipe.combine(
        [_lowered("a", partitioners={"x": [a]}), _lowered("b", partitioners={"x": [b], "y": [c]})]
    ).lowering_recipe
    assert made is not None and made.partitioners == {"x": [a, b], "y": [c]}
