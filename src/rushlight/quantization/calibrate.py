"""Calibration: checks the data and runs a prepared model on them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import FakeQuantizeBase, ObserverBase

from rushlight.errors import Code, ExportError
from rushlight.quantization.layers import attribute_of, layer_of, unchanged
from rushlight.quantization.ranges import RangeObserver
from rushlight.quantization.shapes import inputs_of

Progress = Callable[[str], None]


class Item(NamedTuple):
    """One call of the model."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def items_of(data: Iterable[Any], argument: str = "calibrate") -> list[Item]:
    """The calls of the model that `data` describes.

    Args:
        data: an iterable of tuples of arguments, single tensors and dicts of keyword arguments.
        argument: the name of the argument for errors.

    Raises:
        ExportError: if `data` is not an iterable of these.
    """
    if isinstance(data, torch.Tensor | Mapping) or not isinstance(data, Iterable):
        raise ExportError(
            f"{argument} is {type(data).__name__}, not an iterable of inputs: pass a list of "
            f"tuples of arguments, {argument}=[(x,), ...]",
            code=Code.INVALID_ARGUMENT,
        )
    return [_item(f"{argument}: item {i}", value) for i, value in enumerate(data)]


def _item(name: str, value: Any) -> Item:
    if isinstance(value, torch.Tensor):
        return Item((value,), {})
    if isinstance(value, Mapping):
        return Item((), dict(value))
    if isinstance(value, tuple | list):
        return Item(tuple(value), {})
    raise ExportError(
        f"{name} is {type(value).__name__}; give a tuple of the model's arguments, one tensor, or "
        f"a dict of keyword arguments",
        code=Code.INVALID_ARGUMENT,
    )


def calibration(
    captured: ExportedProgram, data: Sequence[Item], argument: str = "calibrate"
) -> list[Item]:
    """The items, checked against the inputs that the program takes.

    Args:
        captured: the program.
        data: the result of `items_of`.
        argument: the name of the argument for errors.

    Raises:
        ExportError: names the item and the input with another structure, dtype or shape.
    """
    assert captured.example_inputs is not None
    examples, spec = pytree.tree_flatten_with_path(captured.example_inputs)
    varying = _varying(captured)
    args, kwargs = captured.example_inputs
    names = inputs_of(captured, tuple(args), kwargs)
    items = [_arranged(item, names, len(args)) for item in data]
    for index, item in enumerate(items):
        leaves, own = pytree.tree_flatten((item.args, item.kwargs))
        if own != spec:
            raise ExportError(
                f"{argument}: item {index} has inputs {_names(item)}, the model takes "
                f"{_names(Item(*captured.example_inputs))}; give each item as the example inputs "
                f"are given: a tuple of arguments, or a dict that has all inputs by name",
                code=Code.INVALID_ARGUMENT,
            )
        for (path, example), value, free in zip(examples, leaves, varying, strict=True):
            fault = _fault(example, value, free)
            if fault:
                raise ExportError(
                    f"{argument}: item {index}, input {_path(path)}: {fault}",
                    code=Code.INVALID_ARGUMENT,
                )
    return items


def _arranged(item: Item, names: list[str], positional: int) -> Item:
    """The item with its inputs by position or by name, in the same way as the example inputs."""
    values = {**dict(zip(names, item.args, strict=False)), **item.kwargs}
    if set(values) != set(names) or len(values) != len(item.args) + len(item.kwargs):
        return item
    args, rest = names[:positional], names[positional:]
    return Item(tuple(values[n] for n in args), {n: values[n] for n in rest})


def _varying(captured: ExportedProgram) -> list[set[int]]:
    """The dimensions of each input that may have another size than the example's."""
    names = set(captured.graph_signature.user_inputs)
    varying = []
    for node in captured.graph.nodes:
        if node.op == "placeholder" and node.name in names:
            value = node.meta.get("val")
            sizes = value.shape if isinstance(value, torch.Tensor) else ()
            varying.append({i for i, s in enumerate(sizes) if isinstance(s, torch.SymInt)})
    missing = len(pytree.tree_leaves(captured.example_inputs)) - len(varying)
    return varying + [set()] * missing


def _fault(example: Any, value: Any, free: set[int]) -> str:
    if not isinstance(example, torch.Tensor):
        return ""
    if not isinstance(value, torch.Tensor):
        return f"it is {type(value).__name__}, the model takes a tensor"
    if value.dtype != example.dtype:
        return f"it is {value.dtype}, the model takes {example.dtype}; convert it with .to()"
    sizes = zip(value.shape, example.shape, strict=False)
    same = value.dim() == example.dim() and all(
        a == b or i in free for i, (a, b) in enumerate(sizes)
    )
    if not same:
        return (
            f"its shape is {list(value.shape)}, the model takes {list(example.shape)}; give that "
            f"shape, or let the size vary with dynamic_shapes"
        )
    if value.is_floating_point() and bool(torch.isnan(value).any()):
        return "it holds NaN; leave this item out or clean it"
    return ""


def _names(item: Item) -> str:
    named = [f"{name}={_kind(value)}" for name, value in item.kwargs.items()]
    return f"({', '.join([*map(_kind, item.args), *named])})"


def _kind(value: Any) -> str:
    return f"tensor{list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__


def _path(path: Any) -> str:
    """The text "args[0]" or "kwargs['x']" for a path in (args, kwargs)."""
    return ("args", "kwargs")[path[0].idx] + str(pytree.keystr(path[1:]))


def run_through(prepared: GraphModule, data: Sequence[Item], progress: Progress | None) -> None:
    """Run the model on the data, so that its observers see the values.

    Raises:
        ExportError: if the model fails on an item or computes NaN or infinite values; names the
            first layer that does.
    """
    observers = list(observers_of(prepared))
    ranges = [(node, module) for node, module in observers if isinstance(module, RangeObserver)]
    weights = _of_parameters(prepared, observers)
    handles = [
        (module, module.register_forward_pre_hook(_finite(node)))
        for node, module in observers
        if not isinstance(module, RangeObserver)  # it finds such values by itself
    ]
    observing = {id(b) for _, module in observers for b in module.buffers()}
    own = [buffer for buffer in prepared.buffers() if id(buffer) not in observing]
    try:
        with torch.no_grad(), unchanged(own):
            for index, item in enumerate(_shown(data, progress)):
                _call(prepared, index, item, ranges)
                for module, handle in handles if index == 0 else []:
                    if module in weights:  # they are the same for all items
                        handle.remove()
                        module.forward = _same
    finally:
        for _, handle in handles:
            handle.remove()
        for module in weights:
            vars(module).pop("forward", None)


def _of_parameters(
    prepared: GraphModule, observers: Sequence[tuple[Node, torch.nn.Module]]
) -> set[torch.nn.Module]:
    """The observers that observe only parameters."""
    parameters = {name for name, _ in prepared.named_parameters(remove_duplicate=False)}
    only_parameters: dict[torch.nn.Module, bool] = {}
    for node, module in observers:
        source = node.args[0]
        assert isinstance(source, Node)
        is_parameter = source.op == "get_attr" and str(source.target) in parameters
        is_plain = isinstance(module, ObserverBase) and not isinstance(module, RangeObserver)
        only_parameters[module] = only_parameters.get(module, True) and is_parameter and is_plain
    return {module for module, is_weight in only_parameters.items() if is_weight}


def _same(value: torch.Tensor) -> torch.Tensor:
    return value


def observe_constants(prepared: GraphModule) -> None:
    """Run the observers of a prepared model's weights, for recipes that need no data."""
    for node, module in observers_of(prepared):
        source: Any = node.args[0]
        if source.op == "get_attr":
            value = attribute_of(prepared, str(source.target)).detach()
            _finite(node)(module, (value,))
            module(value)


def check_finite(prepared: GraphModule) -> None:
    """Check that all values that the observers of a prepared model have seen are finite.

    Raises:
        ExportError: names the first layer that has others.
    """
    for node, module in observers_of(prepared):
        low, high = getattr(module, "min_val", None), getattr(module, "max_val", None)
        if not isinstance(low, torch.Tensor) or not isinstance(high, torch.Tensor):
            continue
        # An observer that has seen nothing has the range from inf to -inf.
        is_seen = ~((low == math.inf) & (high == -math.inf))
        if bool((is_seen & ~(low.isfinite() & high.isfinite())).any()):
            raise _not_finite(node)


def is_trained(prepared: GraphModule) -> bool:
    """Whether a model was prepared for training: it has fake quantizers."""
    return any(isinstance(module, FakeQuantizeBase) for _, module in observers_of(prepared))


def needs_ranges(prepared: GraphModule) -> bool:
    """Whether any observer must see values of a run: that of an activation with a static scale."""
    return any(
        isinstance(source := node.args[0], Node)
        and source.op != "get_attr"
        and not getattr(module, "is_dynamic", False)
        for node, module in observers_of(prepared)
    )


def _call(
    prepared: GraphModule,
    index: int,
    item: Item,
    ranges: Sequence[tuple[Node, RangeObserver]],
) -> None:
    try:
        prepared(*item.args, **item.kwargs)
        for node, observer in ranges:
            if observer.has_seen_infinity:
                raise _not_finite(node)
    except ExportError as error:
        raise ExportError(f"calibrate: item {index}: {error}", code=error.code) from None
    except Exception as error:  # the model may raise anything
        raise ExportError(
            f"calibrate: the model fails on item {index}: {type(error).__name__}: {error}",
            code=Code.INVALID_ARGUMENT,
        ) from error


def observers_of(prepared: GraphModule) -> Iterator[tuple[Node, torch.nn.Module]]:
    """Each observer with its first call."""
    seen = set()
    for node in prepared.graph.nodes:
        if node.op != "call_module" or node.target in seen:
            continue
        module = prepared.get_submodule(str(node.target))
        if isinstance(module, ObserverBase | FakeQuantizeBase):
            seen.add(node.target)
            yield node, module


def _finite(node: Node) -> Callable[[torch.nn.Module, tuple[Any, ...]], None]:
    def check(module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        value = args[0]
        # Takes an eighth of the time of isfinite().all().
        if value.numel() and not bool(torch.stack(torch.aminmax(value)).isfinite().all()):
            raise _not_finite(node)

    return check


def _not_finite(node: Node) -> ExportError:
    source = node.args[0]
    assert isinstance(source, Node)
    return ExportError(
        f"{layer_of(source)} has NaN or infinite values, which have no scale; look for what makes "
        f"them, or keep that module as it is with quantizer.set_module_name(name, None)",
        code=Code.INVALID_ARGUMENT,
    )


def _shown(data: Sequence[Item], progress: Progress | None) -> Iterator[Item]:
    """The items, with their progress reported to `progress`, or to a terminal if there is one."""
    if progress is not None:
        for index, item in enumerate(data):
            progress(f"calibrate: {index + 1} of {len(data)}")
            yield item
        return
    if not sys.stderr.isatty():
        yield from data
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(data, "calibrate", console=Console(stderr=True), transient=True)
