"""How elements lie in memory: sizes and strides as of a tensor; all may be symbolic.

The operators on it have torch's names and give the same strides. Where they cannot show that a view
is right for all sizes they raise `NoViewError`; a copy in row-major order has every view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch

from rushlight.backends.cpu.graph.sizes import (
    Size,
    Sizes,
    all_same,
    greater,
    magnitude,
    product,
    same,
    simple,
    sizes_of,
)


class NoViewError(Exception):
    """The strides allow no such view."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Sizes and strides.

    Attributes:
        shape: elements of each dimension.
        strides: elements from one to the next in each dimension.
        offset: elements before the first.
        dtype: of an element.
    """

    shape: Sizes
    strides: Sizes
    offset: Size
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        """The layout of a tensor."""
        return cls(sizes_of(tensor.shape), sizes_of(tensor.stride()), 0, tensor.dtype)

    @classmethod
    def dense(cls, sizes: Sequence[Size], order: Sequence[int], dtype: torch.dtype) -> Layout:
        """A layout without gaps, with dimensions in this order, the outermost first."""
        strides: list[Size] = [0] * len(sizes)
        stride: Size = 1
        for dim in reversed(order):
            strides[dim] = stride
            size = sizes[dim]  # where a size is 0 at run time, strides do not matter
            stride = product((stride, max(size, 1) if isinstance(size, int) else size))
        return cls(tuple(sizes), tuple(strides), 0, dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> Size:
        """The number of elements."""
        return product(self.shape)

    def order(self) -> list[int]:
        """The dimensions by descending stride, as far as strides are known."""
        return sorted(range(self.dim()), key=lambda d: (-magnitude(self.strides[d]), d))

    def is_contiguous(self) -> bool:
        """Whether elements lie in row-major order without gaps, for all sizes."""
        if any(same(size, 0) for size in self.shape):
            return True
        stride: Size = 1
        for size, own in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if not same(size, 1):
                if not same(own, stride):
                    return False
                stride = product((stride, size))
        return True

    # --- views ----------------------------------------------------------------------------------

    def permute(self, dims: Sequence[int]) -> Layout:
        """Dimensions in another order."""
        return self._with([(self.shape[d], self.strides[d]) for d in dims])

    def transpose(self, one: int, other: int) -> Layout:
        """Two dimensions exchanged."""
        dims = list(range(self.dim()))
        dims[one], dims[other] = dims[other], dims[one]
        return self.permute(dims)

    def unsqueeze(self, dim: int) -> Layout:
        """One more dimension, of one element."""
        dim %= self.dim() + 1
        pairs = list(zip(self.shape, self.strides, strict=True))
        stride = product(pairs[dim]) if dim < len(pairs) else 1
        return self._with([*pairs[:dim], (1, stride), *pairs[dim:]])

    def squeeze(self, dims: Sequence[int]) -> Layout:
        """Drop those of the given dimensions that have one element."""
        left = {d % self.dim() for d in dims} if self.dim() else set()
        return self.permute(
            [d for d in range(self.dim()) if d not in left or not same(self.shape[d], 1)]
        )

    def narrow(self, dim: int, start: Size, size: Size, interval: int = 1) -> Layout:
        """Elements from `start` on in one dimension, every `interval`-th of them."""
        dim %= self.dim()
        pairs = list(zip(self.shape, self.strides, strict=True))
        pairs[dim] = (size, product((self.strides[dim], interval)))
        offset = simple(self.offset + product((start, self.strides[dim])))
        return replace(self._with(pairs), offset=offset)

    def select(self, dim: int, index: Size) -> Layout:
        """One element of a dimension."""
        dim %= self.dim()
        one = self.narrow(dim, self.at(dim, index), 1)
        return one.permute([d for d in range(self.dim()) if d != dim])

    def at(self, dim: int, index: Size) -> Size:
        """A place in a dimension as Python counts it, from the end if it is negative."""
        if not isinstance(index, int) or index >= 0:
            return index
        return greater(simple(self.shape[dim] + index), 0)

    def split(self, sizes: Sequence[Size], dim: int) -> list[Layout]:
        """Pieces of a dimension."""
        starts = [simple(n) for n in accumulate(sizes, initial=0)]
        return [self.narrow(dim, at, size) for at, size in zip(starts, sizes, strict=False)]

    def as_strided(self, sizes: Sizes, strides: Sizes, offset: Size) -> Layout:
        """Any sizes and strides."""
        return Layout(sizes, strides, offset, self.dtype)

    def expand(self, sizes: Sequence[Size]) -> Layout:
        """Dimensions of one element repeated.

        Raises:
            NoViewError: if a dimension of another size would have to be repeated.
        """
        if not self.shape:
            return self._with([(size, 0) for size in sizes])
        pairs: list[tuple[Size, Size]] = []
        first = len(sizes) - self.dim()
        for i in reversed(range(len(sizes))):
            own = self.shape[i - first] if i >= first else 1
            stride = self.strides[i - first] if i >= first else product(pairs[0])
            if not same(own, sizes[i]):
                if not same(own, 1):
                    raise NoViewError(f"{self.shape} does not expand to {tuple(sizes)}")
                stride = 0
            pairs.insert(0, (sizes[i], stride))
        return self._with(pairs)

    def view(self, sizes: Sequence[Size]) -> Layout:
        """Other sizes for as many elements.

        Raises:
            NoViewError: if no strides give these sizes, or none that are known to.
        """
        sizes = tuple(sizes)
        is_same = all_same(sizes, self.shape)
        if same(self.numel(), 0):
            return (
                self
                if is_same
                else replace(Layout.dense(sizes, range(len(sizes)), self.dtype), offset=self.offset)
            )
        strides = self._strides_of(sizes)
        if strides is None:
            if is_same:
                return self
            if not self.is_contiguous():
                raise NoViewError(f"{self.shape} by {self.strides} has no view as {sizes}")
            strides = list(Layout.dense(sizes, range(len(sizes)), self.dtype).strides)
        return replace(self, shape=sizes, strides=tuple(strides))

    def _strides_of(self, sizes: Sizes) -> list[Size] | None:
        """Strides for other sizes, or None; neighbouring dimensions that can be one are resplit."""
        strides: list[Size] = [1] * len(sizes)
        to = len(sizes) - 1
        stride = self.strides[-1] if self.strides else 1
        there: Size = 1  # elements of the piece
        for dim in reversed(range(self.dim())):
            there = product((there, self.shape[dim]))
            if dim > 0 and (
                same(self.shape[dim - 1], 1)
                or same(self.strides[dim - 1], product((there, stride)))
            ):
                continue
            taken: Size = 1
            while to >= 0 and (not same(taken, there) or same(sizes[to], 1)):
                strides[to] = product((taken, stride))
                taken = product((taken, sizes[to]))
                to -= 1
            if not same(taken, there):
                return None
            if dim > 0:
                stride, there = self.strides[dim - 1], 1
        return strides if to < 0 else None

    def _with(self, pairs: Sequence[tuple[Size, Size]]) -> Layout:
        shape, strides = (tuple(p[i] for p in pairs) for i in range(2))
        return replace(self, shape=shape, strides=strides)
