"""Replace the operators of `channels_last_ops` by torch's, between permutes."""

from __future__ import annotations

import operator
from typing import Any

from rushlight.edge import ExportPass
from rushlight.edge.export_pass import ProxyValue
from rushlight.edge.operators import ops
from rushlight.exir.transforms.channels_last_ops import TO_CHANNELS_FIRST, TO_CHANNELS_LAST

_aten, _last = ops.edge.aten, ops.edge.channels_last
_PERMUTE = _aten.permute_copy.default
_POOL = _last.max_pool2d_with_indices.default
_TARGETS = {
    _last.convolution.default: _aten.convolution.default,
    _last.avg_pool2d.default: _aten.avg_pool2d.default,
    _last.adaptive_avg_pool2d.default: _aten._adaptive_avg_pool2d.default,
    _last.upsample_bilinear2d.default: _aten.upsample_bilinear2d.vec,
    _last.upsample_nearest2d.default: _aten.upsample_nearest2d.vec,
    _last.grid_sampler_2d.default: _aten.grid_sampler_2d.default,
    _POOL: _aten.max_pool2d_with_indices.default,
}


class DecomposeChannelsLastPass(ExportPass):
    """Lets torch's operators compute on images with the channels first, between two permutes.

    For calls that no backend took: their kernels run everywhere.
    """

    def call_operator(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: Any
    ) -> Any:
        """Emit the permutes and the operator."""
        if op is operator.getitem:
            return self.call_getitem(args[0], args[1], meta)
        if op == _last.permute_copy.default:
            return super().call_operator(_PERMUTE, args, kwargs, meta)
        if op not in _TARGETS:
            return super().call_operator(op, args, kwargs, meta)
        image = super().call_operator(_PERMUTE, (args[0], TO_CHANNELS_FIRST), {}, meta)
        result = super().call_operator(_TARGETS[op], (image, *args[1:]), kwargs, meta)
        if op != _POOL:
            return self._last(result, meta)
        return tuple(self._last(self.call_getitem(result, i, meta), meta) for i in range(2))

    def call_getitem(self, value: Any, key: int, meta: Any) -> Any:
        """One result of a call; of one that this pass replaced, what took its place."""
        if isinstance(value, tuple):
            return value[key]
        return super().call_operator(operator.getitem, (value, key), {}, meta)

    def _last(self, image: ProxyValue, meta: Any) -> ProxyValue:
        return super().call_operator(_PERMUTE, (image, TO_CHANNELS_LAST), {}, meta)
