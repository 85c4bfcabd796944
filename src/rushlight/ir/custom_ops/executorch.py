"""ExecuTorch's operators that torch does not have: language models, quantized embeddings, tiles.

A model may call them without ExecuTorch's package: `define()` defines the missing ones with torch,
each with an implementation in plain torch for eager mode. Operators that write a cache are
decomposed when a model is captured; the others stay whole, and run here and in ExecuTorch under the
same names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from rushlight.ir.custom_ops import quantized, updates
from rushlight.ir.definitions import Definitions

Tensor = torch.Tensor

_ATTENTION = "Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None"
_EMBEDDING = (
    "Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, "
    "int weight_quant_max, Tensor indices"
)
_PARAMETERS = "float {0}_scale, int {0}_zero_point, int {0}_quant_min, int {0}_quant_max"


def _dequantized(x: Tensor, scales: Tensor, zeros: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Dequantise a matrix with one scale for each row, or for each group of a row's elements."""
    groups = scales.shape[1] if scales.dim() == 2 else 1
    size = -(-x.shape[1] // groups)
    spread = [
        p.float().reshape(x.shape[0], groups).repeat_interleave(size, 1)[:, : x.shape[1]]
        for p in (scales, zeros)
        if p is not None
    ]
    numbers = x.float() - spread[1] if zeros is not None else x.float()
    return (numbers * spread[0]).to(dtype)


def _unpacked(weight: Tensor, bits: int) -> Tensor:
    if bits == 8:
        return weight
    shifts = (4, 0) if bits == 4 else (0, 2, 4, 6)
    parts = [(weight >> shift & ((1 << bits) - 1)).to(torch.int8) for shift in shifts]
    return torch.stack(parts, -1).flatten(1) - (1 << (bits - 1))


def _column(numbers: Tensor | None) -> Tensor | None:
    """One number for each row as a matrix."""
    return numbers.unsqueeze(1) if numbers is not None and numbers.dim() == 1 else numbers


def _embedding(bits: int) -> Callable[..., Tensor]:
    def embedding(
        weight: Tensor,
        weight_scales: Tensor,
        weight_zero_points: Tensor | None,
        weight_quant_min: int,
        weight_quant_max: int,
        indices: Tensor,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        # Of the table only the rows that are asked for become real numbers.
        table, scales, zeros = (
            None if part is None else F.embedding(indices.flatten(), part)
            for part in (weight, _column(weight_scales), _column(weight_zero_points))
        )
        assert table is not None and scales is not None
        dtype = dtype or weight_scales.dtype
        rows = _dequantized(_unpacked(table, bits), scales, zeros, dtype)
        return rows.reshape(*indices.shape, rows.shape[1])

    return embedding


def _mixed_mm(input: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None) -> Tensor:
    return (input.float() @ _dequantized(weight, scales, zeros, torch.float32)).to(input.dtype)


def _mixed_linear(
    input: Tensor,
    weight: Tensor,
    weight_scales: Tensor,
    weight_zero_points: Tensor | None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    real = _dequantized(weight, weight_scales, weight_zero_points, torch.float32)
    return (input.float() @ real.t()).to(dtype or input.dtype)


def _add(a: Tensor, *rest: Any) -> Any:
    a_scale, a_zero, _, _, b, b_scale, b_zero, _, _, scale, zero, low, high = rest
    scales = [torch.tensor(s, dtype=torch.float32) for s in (a_scale, b_scale, scale)]
    total = (a.long() - a_zero).float() * scales[0] + (b.long() - b_zero).float() * scales[1]
    return (zero + (total * (1.0 / scales[2])).round()).clamp(low, high).to(a.dtype)


def _custom_sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_pos: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Attention with tokens before heads in the shape.

    Without a mask it reads the keys up to the last query's position, with one all keys.
    """
    length = query.shape[1]
    if attn_mask is None:
        key, value = (t[:, : start_pos + length] for t in (key, value))
    if is_causal:
        shape = (length, start_pos + length)
        attn_mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril(start_pos)
    elif attn_mask is not None and attn_mask.dtype != torch.bool:
        attn_mask = attn_mask.to(query.dtype)
    q, k, v = (t.transpose(1, 2) for t in (query, key, value))
    result = F.scaled_dot_product_attention(
        q, k, v, attn_mask, drpout_p, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    return result.transpose(1, 2).contiguous()


def _custom_quantized_sdpa(
    query: Tensor, key: Tensor, value: Tensor, start_pos: int, *options: Any
) -> Tensor:
    """`_custom_sdpa` of the dequantised operands.

    `options` are its options, then three pairs of zero points and scales.
    """
    options, parameters = options[:4], options[4:]
    named = dict(zip(("q_zeros", "q", "k_zeros", "k", "v_zeros", "v"), parameters, strict=False))
    heads_first = len(parameters) > len(named) and parameters[len(named)]
    real = [
        (x.float() - named[f"{name}_zeros"].float()) * named[name]
        for x, name in ((query, "q"), (key, "k"), (value, "v"))
    ]
    if heads_first:
        real = [t.transpose(1, 2) for t in real]
    q, k, v = real
    result = _custom_sdpa(q, k, v, start_pos, *options)
    return result.transpose(1, 2).contiguous() if heads_first else result


def _as_in(cache: Tensor, value: Tensor) -> Tensor:
    """Tokens as they stand in a cache: the kernels neither convert nor broadcast."""
    shape = cache.shape[0], value.shape[1], *cache.shape[2:]
    value = value.to(cache.dtype).contiguous()
    return value if tuple(value.shape) == shape else value.expand(shape).contiguous()


def _update_cache(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    if cache.dim() == 4:
        cache.copy_(updates.updated_cache(_as_in(cache, value), cache, start_pos))
    else:  # which the kernel does not take
        cache.narrow(1, start_pos, value.shape[1]).copy_(value)
    return value.new_zeros(1)


def _update_cache_with_indices(
    value: Tensor, cache: Tensor, start_pos: int, indices: Tensor
) -> Tensor:
    indices = indices.to(torch.int64)
    if cache.dim() == 4:
        cache.copy_(updates.updated_cache_at(_as_in(cache, value), cache, start_pos, indices))
    else:  # which the kernel does not take
        batch = torch.arange(value.shape[0], device=value.device).unsqueeze(1)
        cache.index_put_((batch, indices), value)
    return value.new_zeros(1)


def _sdpa_with_kv_cache(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    start_pos: int,
    seq_len: int,
    *options: Any,
) -> Tensor:
    _update_cache(key, key_cache, start_pos)
    _update_cache(value, value_cache, start_pos)
    attention: Any = torch.ops.llama.custom_sdpa.default
    result: Tensor = attention(query, key_cache, value_cache, start_pos, *options)
    return result


# The Hadamard matrix of order 28 that QuaRot and SpinQuant rotate models with; a row in 28 bits.
_HADAMARD_28 = (
    *(0x818694C, 0x41C14A6, 0x20E2A13, 0x1071549, 0x0838AE4, 0x041E532, 0x030D299),
    *(0x3D019D2, 0x1E82CA9, 0x8E43654, 0xC621B2A, 0xE210D95, 0xF00A6CA, 0x7807325),
    *(0x5B3201E, 0xAC9900F, 0x564C847, 0xAB24463, 0xD590271, 0x6AC8178, 0xB4640BC),
    *(0x66B70C0, 0xB35B820, 0xD8ADC10, 0x6D54E08, 0x37A8704, 0x9AD4382, 0xCD6A181),
)


def _fast_hadamard_transform(mat: Tensor) -> Tensor:
    size = mat.shape[-1] if mat.dim() > 0 else 1
    wide = size % 28 == 0
    x = mat.to(torch.promote_types(mat.dtype, torch.float32)).reshape(-1, size)
    half, power = 1, size // 28 if wide else size
    while half < power:
        low, high = x.reshape(-1, 2, half).unbind(1)
        x = torch.stack([low + high, low - high], 1)
        half *= 2
    if wide:
        signs = [[1.0 if row >> (27 - k) & 1 else -1.0 for k in range(28)] for row in _HADAMARD_28]
        x = torch.tensor(signs, dtype=x.dtype) @ x.reshape(-1, 28, power)
    return (x.reshape(mat.shape) / math.sqrt(power)).to(mat.dtype)


def _gated_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor]:
    """The gated delta rule: for each token, the state (keys by values) decays, is corrected towards
    the value at the token's key, and is read with its query."""
    state = initial_state.clone()
    results = []
    for t in range(query.shape[2]):
        state = state * decay[:, :, t, :, None]
        k = key[:, :, t, :, None]
        delta = (value[:, :, t] - (state * k).sum(2)) * beta[:, :, t, None]
        state = state + k * delta.unsqueeze(2)
        results.append((state * query[:, :, t, :, None]).sum(2))
    return torch.stack(results, 2) if results else torch.empty_like(value), state


def _tile_crop(input: Tensor, tile_size: int) -> Tensor:
    channels, height, width = input.shape
    tiles = input.reshape(channels, height // tile_size, tile_size, width // tile_size, tile_size)
    return tiles.permute(1, 3, 0, 2, 4).flatten(0, 1).contiguous()


def _like(argument: int, dtype: torch.dtype | None = None) -> Callable[..., Tensor]:
    return lambda *args, **_: torch.empty_like(args[argument], dtype=dtype)


def _product(input: Tensor, columns: int, dtype: torch.dtype | None = None) -> Tensor:
    return input.new_empty((*input.shape[:-1], columns), dtype=dtype)


def _rows(numbers_in_byte: int) -> Callable[..., Tensor]:
    def rows(
        weight: Tensor, scales: Tensor, *rest: Any, dtype: torch.dtype | None = None
    ) -> Tensor:
        shape = (*rest[-1].shape, weight.shape[1] * numbers_in_byte)
        return scales.new_empty(shape, dtype=dtype)

    return rows


def _tiles(input: Tensor, tile_size: int) -> Tensor:
    down, across = input.shape[1] // tile_size, input.shape[2] // tile_size
    return input.new_empty(down * across, input.shape[0], tile_size, tile_size)


# Functional operators that stay whole: schema without its result, implementation, fake function.
_WHOLE: dict[str, tuple[str, Callable[..., Any], Callable[..., Any] | None]] = {
    "quantized_decomposed::add": (
        ", ".join(["Tensor a", _PARAMETERS.format("a"), "Tensor b", _PARAMETERS.format("b")])
        + ", "
        + _PARAMETERS.format("out"),
        _add,
        _like(0),
    ),
    **{
        f"quantized_decomposed::embedding_{name}{suffix}": (
            _EMBEDDING + more,
            _embedding(bits),
            _rows(8 // bits),
        )
        for name, bits in (("2bit", 2), ("4bit", 4), ("byte", 8))
        for suffix, more in (("", ""), (".dtype", ", *, ScalarType? dtype=None"))
    },
    "quantized_decomposed::mixed_linear": (
        "Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, "
        "ScalarType? dtype=None",
        _mixed_linear,
        lambda input, weight, scales, zeros, dtype=None: _product(input, weight.shape[0], dtype),
    ),
    "quantized_decomposed::mixed_mm": (
        "Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points",
        _mixed_mm,
        lambda input, weight, *_: _product(input, weight.shape[1]),
    ),
    "llama::custom_sdpa": (
        f"Tensor query, Tensor key, Tensor value, SymInt start_pos, {_ATTENTION}",
        _custom_sdpa,
        _like(0),
    ),
    "llama::custom_quantized_sdpa": (
        f"Tensor query, Tensor key, Tensor value, SymInt start_pos, {_ATTENTION}, "
        "Tensor? q_zero_points=None, Tensor? q_scales=None, Tensor? k_zero_points=None, "
        "Tensor? k_scales=None, Tensor? v_zero_points=None, Tensor? v_scales=None, "
        "bool is_seq_at_dim_2=False",
        _custom_quantized_sdpa,
        _like(0, torch.float32),
    ),
    "llama::fallback": ("Tensor input", torch.clone, _like(0)),
    "llama::fast_hadamard_transform": ("Tensor mat", _fast_hadamard_transform, _like(0)),
    "llama::channelwise_gated_delta_rule": (
        "Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor initial_state",
        _gated_delta_rule,
        lambda *args: (torch.empty_like(args[2]), torch.empty_like(args[5])),
    ),
    "preprocess::tile_crop": ("Tensor input, int tile_size", _tile_crop, _tiles),
}
# Operators that write their inputs; they are decomposed to the functional ones of `updates`.
_WRITING: dict[str, tuple[str, Callable[..., Any]]] = {
    "llama::update_cache": ("Tensor value, Tensor(a!) cache, SymInt start_pos", _update_cache),
    "llama::update_cache_with_indices": (
        "Tensor value, Tensor(a!) cache, SymInt start_pos, Tensor indices",
        _update_cache_with_indices,
    ),
    "llama::sdpa_with_kv_cache": (
        "Tensor query, Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, "
        f"SymInt start_pos, SymInt seq_len, {_ATTENTION}",
        _sdpa_with_kv_cache,
    ),
}
# The names of the out arguments, where they are not a single `out`.
_OUTS = {
    "llama::channelwise_gated_delta_rule": ("out", "final_state_out"),
    "llama::fallback": ("output",),
}
_LLM = "executorch.extension.llm.custom_ops"
_FALLBACK = Definitions("llama", [f"{_LLM}.op_fallback"])
_DEFINITIONS = {
    "quantized_decomposed": Definitions(
        "quantized_decomposed", ["executorch.exir.passes._quant_patterns_and_replacements"]
    ),
    # Each of the first two modules loads the C++ library that defines both namespaces.
    "llama": Definitions("llama", [f"{_LLM}.custom_ops", f"{_LLM}.op_tile_crop_aot"]),
    "preprocess": Definitions(
        "preprocess",
        [f"{_LLM}.{name}" for name in ("custom_ops", "op_tile_crop_aot", "preprocess_custom_ops")],
    ),
}


def define() -> None:
    """Define those of ExecuTorch's operators that are not defined in this process.

    If ExecuTorch's package is imported later, its definitions replace these.
    """
    for name, (arguments, rule, shapes) in _WHOLE.items():
        known = _definitions(name)
        own = name.partition("::")[2]
        new = known.define(f"{own}({arguments}) -> {_result(name)}", rule, fake=shapes)
        # The out-variants of quantised operators are defined when they are needed.
        if new and not name.startswith(f"{quantized.NAMESPACE}::"):
            known.define(_out_name(own) + _out_schema(name, arguments))
    for name, (arguments, rule) in _WRITING.items():
        known, own = _definitions(name), name.partition("::")[2]
        if known.define(f"{own}({arguments}) -> Tensor", rule, "CompositeImplicitAutograd"):
            out = f"Tensor({'abc'[arguments.count('!')]}!)"
            known.define(f"{own}.out({arguments}, *, {out} out) -> {out}")


def _definitions(name: str) -> Definitions:
    return _FALLBACK if name == "llama::fallback" else _DEFINITIONS[name.partition("::")[0]]


def _result(name: str) -> str:
    return "Tensor" if len(_OUTS.get(name, ("out",))) == 1 else "(Tensor, Tensor)"


def _out_name(name: str) -> str:
    return f"{name}_out" if "." in name else f"{name}.out"


def _out_schema(name: str, arguments: str) -> str:
    outs = _OUTS.get(name, ("out",))
    star = ", " if "*, " in arguments else ", *, "
    written = [f"Tensor({alias}!)" for alias, _ in zip("ab", outs, strict=False)]
    named = ", ".join(f"{w} {out}" for w, out in zip(written, outs, strict=True))
    result = written[0] if len(written) == 1 else f"({', '.join(written)})"
    return f"({arguments}{star}{named}) -> {result}"
