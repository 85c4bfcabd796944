"""A method's inputs, read from files or made up, and its results as named arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rushlight.errors import Code, RunError
from rushlight.runtime.arrays import numpy_dtype

if TYPE_CHECKING:
    from rushlight.runtime.contract import Contract, Dim, Value
    from rushlight.runtime.module import Method
    from rushlight.runtime.tree import Tree

Array = NDArray[Any]

# The values that are tried for a dynamic size, the nearest to the preferred one first; conditions
# between sizes ("a multiple of 8") rule some out.
_PREFERRED_SIZE, _SIZES_TRIED = 64, 256


def read_inputs(options: Sequence[str], values: Sequence[Value]) -> dict[int, Any]:
    """Inputs by position, from `--input` options.

    Args:
        options: each is "x.npy" (for the next input without a value), "name=x.npy", or "all.npz"
            (inputs by the names of its arrays).
        values: the method's flattened inputs.

    Raises:
        RunError: a file cannot be read, or a name is not one of an input.
    """
    inputs: dict[int, Any] = {}
    unnamed: list[Any] = []
    for option in options:
        name, equals, path = option.partition("=")
        if not equals:
            name, path = "", option
        content = _read(path)
        if not isinstance(content, dict):
            if name:
                _put(inputs, _position(name, values), content, name)
            else:
                unnamed.append(content)
            continue
        for key, array in content.items():
            _put(inputs, _position(key, values), array, key)
    free = [i for i in range(len(values)) if i not in inputs and values[i].kind != "none"]
    if len(unnamed) > len(free):
        raise RunError(
            f"{len(options)} inputs are given, the method takes {_names(values)}",
            code=Code.INVALID_ARGUMENT,
        )
    inputs.update(zip(free, unnamed, strict=False))
    return inputs


def _read(path: str) -> Array | dict[str, Array]:
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        return {name: content[name] for name in content.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(
            f"cannot read {path!r} as an array: {reason}; give a .npy or .npz file that "
            f"numpy.save or numpy.savez wrote",
            code=Code.ACCESS_FAILED,
        ) from error


def _put(inputs: dict[int, Any], position: int, value: Any, name: str) -> None:
    if position in inputs:
        raise RunError(f"input {name!r} is given twice", code=Code.INVALID_ARGUMENT)
    inputs[position] = value


def _position(name: str, values: Sequence[Value]) -> int:
    """The input called `name`, which may also be its number or numpy's "arr_<number>"."""
    for i, value in enumerate(values):
        if name in (value.name, value.name.replace("input ", "input_")):
            return i
    digits = name.removeprefix("arr_")
    if digits.isdecimal() and int(digits) < len(values):
        return int(digits)
    raise RunError(
        f"no input is called {name!r}; the method takes {_names(values)}", code=Code.NOT_FOUND
    )


def _names(values: Sequence[Value]) -> str:
    return ", ".join(str(value) for value in values) or "no inputs"


def complete(method: Method, inputs: dict[int, Any], *, random: bool, seed: int) -> list[Any]:
    """All flattened inputs of a method.

    Args:
        method: a method of a loaded module.
        given: inputs by position; scalars may be arrays of one element.
        random: make up the missing inputs. Integers are 0 or 1, which are valid indices of every
            embedding; a dynamic size is 64, or the nearest that is allowed.
        seed: the seed of the random numbers.

    Raises:
        RunError: an input is missing, or no allowed sizes were found.
    """
    contract = method.contract
    values = contract.inputs
    inputs = {i: _scalar(values[i], value) for i, value in inputs.items()}
    missing = [i for i in range(len(values)) if i not in inputs and not _has_default(values[i])]
    if missing and not random:
        names = ", ".join(str(values[i]) for i in missing)
        raise RunError(
            f"no --input for {names}: give one for each, or --random",
            code=Code.INVALID_ARGUMENT,
            where=method.name,
        )
    if not missing:
        return [inputs.get(i, values[i].value) for i in range(len(values))]
    return _made_up(method, contract, inputs, np.random.default_rng(seed))


def _has_default(value: Value) -> bool:
    return value.kind == "none" or (value.kind != "tensor" and value.value is not None)


def _scalar(value: Value, array: Any) -> Any:
    if value.kind in ("int", "float", "bool") and isinstance(array, np.ndarray) and array.size == 1:
        return array.reshape(-1)[0].item()
    return array


def _made_up(
    method: Method, contract: Contract, inputs: dict[int, Any], rng: np.random.Generator
) -> list[Any]:
    """Inputs with the first sizes, near the preferred one, that the method accepts."""
    refused: RunError | None = None
    tried: list[list[Any]] = []
    for size in _sizes():
        symbols = _symbols(contract, inputs, size)
        shapes = [tuple(_size(dim, size, symbols) for dim in v.shape) for v in contract.inputs]
        flat = [
            inputs[i] if i in inputs else _blank(value, shape, size)
            for i, (value, shape) in enumerate(zip(contract.inputs, shapes, strict=True))
        ]
        sizes = [x if isinstance(x, int) else np.shape(x) for x in flat]
        if sizes in tried:
            continue
        tried.append(sizes)
        try:
            args, kwargs = contract.in_spec.unflatten(iter(flat))
            method.flatten(args, kwargs)
        except RunError as error:
            refused = refused or error
            continue
        return [x if i in inputs else _randomised(x, rng) for i, x in enumerate(flat)]
    assert refused is not None  # at least one size was tried
    raise refused


def _sizes() -> Iterator[int]:
    yield _PREFERRED_SIZE
    for distance in range(1, _SIZES_TRIED):
        if distance < _PREFERRED_SIZE:
            yield _PREFERRED_SIZE - distance
        yield _PREFERRED_SIZE + distance


def _symbols(contract: Contract, inputs: dict[int, Any], size: int) -> dict[str, int]:
    """A value for every symbol: its size in `inputs`, else the allowed one nearest to `size`."""
    symbols: dict[str, int] = {}
    for i, value in enumerate(contract.inputs):
        sizes = np.shape(inputs[i]) if i in inputs else ()
        for k, dim in enumerate(value.shape):
            if dim.symbol and k < len(sizes):
                symbols[dim.symbol] = int(sizes[k])
    for value in contract.inputs:
        for dim in value.shape:
            if dim.symbol:
                symbols.setdefault(dim.symbol, min(max(size, dim.min), dim.max))
    return symbols


def _size(dim: Dim, size: int, symbols: dict[str, int]) -> int:
    if dim.symbol:
        return symbols[dim.symbol]
    if dim.expression is not None:
        known = {name: symbols.get(name, size) for name in dim.expression.symbols}
        computed = dim.expression(known)
        return dim.min if computed is None else max(int(computed), 0)
    return min(max(size, dim.min), dim.max)


def _blank(value: Value, shape: tuple[int, ...], size: int) -> Any:
    if value.kind == "tensor":
        return np.empty(shape, numpy_dtype(value.dtype, f"{value.name} takes"))
    return value.value if _has_default(value) else _number(value, size)


def _number(value: Value, size: int) -> Any:
    if value.kind == "int" and value.range is not None:
        return min(max(size, value.range.min), value.range.max)
    return {"int": 1, "float": 1.0, "bool": True}.get(value.kind, "")


def _randomised(value: Any, rng: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == np.bool_ or np.issubdtype(value.dtype, np.integer):
        return rng.integers(0, 2, value.shape).astype(value.dtype)
    return np.asarray(rng.standard_normal(value.shape, np.float32)).astype(value.dtype)


def named_outputs(method: Method, result: Any) -> dict[str, Any]:
    """The flattened results of a call, each under a readable path: "output", "[0]", "logits"."""
    leaves: list[Any] = []
    spec = method.contract.out_spec
    spec.flatten(result, "output", leaves)
    names = list(_paths(spec, ""))
    if len(names) != len(leaves):
        names = [f"[{i}]" for i in range(len(leaves))]
    return dict(zip(names, leaves, strict=True))


def _paths(spec: Tree, path: str) -> Iterator[str]:
    if spec.kind == "leaf":
        yield path or "output"
        return
    keys = spec.keys or range(len(spec.children))
    for key, child in zip(keys, spec.children, strict=True):
        suffix = f"[{key}]" if isinstance(key, int) else f".{key}" if path else str(key)
        yield from _paths(child, path + suffix)
