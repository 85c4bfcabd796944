#include "rushlight/kernels/portable/movement/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rushlight/kernels/portable/loops/linalg/gemm.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kTransposeBlock = 32;  // in both dimensions: such a block fits into L1
constexpr size_t kShortRow = 64;         // maximum bytes for which a loop is faster than memcpy

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

template <typename T>
T read(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// to[i] = from[-i]; single bytes are reversed eight at a time.
template <typename T>
void reverse_row(const uint8_t* from, uint8_t* to, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  int64_t i = 0;
  if constexpr (kSize == 1) {
    for (; i + 8 <= n; i += 8) {
      const uint64_t reversed = __builtin_bswap64(read<uint64_t>(from - i - 7));
      std::memcpy(to + i, &reversed, sizeof reversed);
    }
  }
  for (; i < n; ++i) std::memcpy(to + i * kSize, from - i * kSize, kSize);
}

template <typename T>
void copy_row(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  if (from_stride == 0 && to_stride == 1) {
    const T value = read<T>(from);
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * kSize, &value, kSize);
  } else if (from_stride == -1 && to_stride == 1) {
    reverse_row<T>(from, to, n);
  } else if (to_stride == 1) {
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(to + i * kSize, from + i * from_stride * kSize, kSize);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(to + i * to_stride * kSize, from + i * from_stride * kSize, kSize);
    }
  }
}

// to[i * to_stride + j] = from[j * from_stride + i] for i < rows, j < cols.
template <typename T>
void transpose_block(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride,
                     int64_t rows, int64_t cols) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i = 0; i < rows; ++i) {
    copy_row<T>(from + i * kSize, from_stride, to + i * to_stride * kSize, 1, cols);
  }
}

template <>
void transpose_block<uint32_t>(const uint8_t* from, int64_t from_stride, uint8_t* to,
                               int64_t to_stride, int64_t rows, int64_t cols) {
  // Uses the matrix product's packing, which transposes in registers and does not change bits.
  const GemmLoops& loops = gemm_loops();
  const float* lines[kMaxPanelWidth];
  const bool aligned =
      ((reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % sizeof(float)) == 0;
  int64_t j = 0;
  for (; aligned && j + loops.lanes <= cols; j += loops.lanes) {
    for (int64_t k = 0; k < loops.lanes; ++k) {
      lines[k] = reinterpret_cast<const float*>(from + (j + k) * from_stride * 4);
    }
    loops.pack_rows(lines, static_cast<int>(loops.lanes), rows,
                    reinterpret_cast<float*>(to + j * 4), to_stride);
  }
  for (int64_t i = 0; i < rows && j < cols; ++i) {
    copy_row<uint32_t>(from + (j * from_stride + i) * 4, from_stride, to + (i * to_stride + j) * 4,
                       1, cols - j);
  }
}

template <typename T>
void transpose(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride,
               int64_t rows, int64_t cols) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i = 0; i < rows; i += kTransposeBlock) {
    for (int64_t j = 0; j < cols; j += kTransposeBlock) {
      transpose_block<T>(from + (j * from_stride + i) * kSize, from_stride,
                         to + (i * to_stride + j) * kSize, to_stride,
                         std::min(kTransposeBlock, rows - i), std::min(kTransposeBlock, cols - j));
    }
  }
}

// Runs `body(from, to)` at every index of the block's first `rank` dimensions.
template <typename Body>
void for_each_outer(const CopyBlock& block, size_t rank, int64_t element, const uint8_t* from,
                    uint8_t* to, Body body) {
  int64_t index[kMaxCopyRank] = {};
  for (;;) {
    body(from, to);
    size_t d = rank;
    for (;;) {
      if (d == 0) return;
      --d;
      from += block.from[d] * element;
      to += block.to[d] * element;
      if (++index[d] < block.sizes[d]) break;
      from -= block.from[d] * block.sizes[d] * element;
      to -= block.to[d] * block.sizes[d] * element;
      index[d] = 0;
    }
  }
}

// A dimension other than the last along which the source is consecutive, or rank if there is none.
size_t consecutive_dim(const CopyBlock& block) {
  for (size_t d = 0; d + 1 < block.rank; ++d) {
    if (block.from[d] == 1) return d;
  }
  return block.rank;
}

template <typename T>
void copy_elements(const uint8_t* from, uint8_t* to, CopyBlock block) {
  constexpr int64_t kSize = sizeof(T);
  const size_t last = block.rank - 1;
  const size_t d = consecutive_dim(block);
  if (block.to[last] == 1 && block.from[last] > 1 && d < block.rank) {
    // Moves the two dimensions to the end, the transposed one first.
    for (size_t k = d; k + 1 < last; ++k) {
      std::swap(block.sizes[k], block.sizes[k + 1]);
      std::swap(block.from[k], block.from[k + 1]);
      std::swap(block.to[k], block.to[k + 1]);
    }
    return for_each_outer(block, last - 1, kSize, from, to, [&](const uint8_t* f, uint8_t* t) {
      transpose<T>(f, block.from[last], t, block.to[last - 1], block.sizes[last - 1],
                   block.sizes[last]);
    });
  }
  for_each_outer(block, last, kSize, from, to, [&](const uint8_t* f, uint8_t* t) {
    copy_row<T>(f, block.from[last], t, block.to[last], block.sizes[last]);
  });
}

void copy_rows(const uint8_t* from, uint8_t* to, const CopyBlock& block, size_t element) {
  const size_t last = block.rank - 1;
  const size_t bytes = static_cast<size_t>(block.sizes[last]) * element;
  // A program may have overlapping tensors; the result is arbitrary then, but must not be a fault.
  for_each_outer(block, last, static_cast<int64_t>(element), from, to,
                 [&](const uint8_t* f, uint8_t* t) { std::memmove(t, f, bytes); });
}

// Combines pairs of consecutive elements to elements of twice the size, as long as all strides and
// sizes allow it.
size_t widen_elements(CopyBlock* block, size_t element) {
  const size_t last = block->rank - 1;
  const auto even = [&] {
    for (size_t d = 0; d < last; ++d) {
      if (block->from[d] % 2 != 0 || block->to[d] % 2 != 0) return false;
    }
    return block->sizes[last] % 2 == 0;
  };
  while (element < sizeof(Bytes16) && block->rank > 1 && even()) {
    for (size_t d = 0; d < last; ++d) {
      block->from[d] /= 2;
      block->to[d] /= 2;
    }
    block->sizes[last] /= 2;
    element *= 2;
  }
  return element;
}

constexpr size_t kConvertChunk = 256;
constexpr int64_t kShortRun = 8;  // shorter runs are not worth a call

// For blocks whose last dimension is consecutive in the destination, and dimension `d` in the
// source. Elements of four bytes are transposed, which is fast; others are converted in runs.
void converting_transpose(const uint8_t* from, DType from_type, uint8_t* to, DType to_type,
                          const CopyBlock& block, size_t d) {
  constexpr int64_t kBlock = 16;
  const size_t last = block.rank - 1;
  const int64_t from_size = static_cast<int64_t>(element_size(from_type));
  const int64_t to_size = static_cast<int64_t>(element_size(to_type));
  const int64_t from_stride = block.from[last];
  const int64_t to_stride = block.to[d];
  const bool transpose_first = from_size == 4 && block.sizes[last] >= kShortRun;
  alignas(64) uint8_t buffer[kBlock * kBlock * 16];
  for (int64_t i = 0; i < block.sizes[last]; i += kBlock) {
    const int64_t rows = std::min(kBlock, block.sizes[last] - i);
    for (int64_t j = 0; j < block.sizes[d]; j += kBlock) {
      const int64_t cols = std::min(kBlock, block.sizes[d] - j);
      const uint8_t* const f = from + (i * from_stride + j) * from_size;
      uint8_t* const t = to + (i + j * to_stride) * to_size;
      CopyBlock transposition;
      transposition.push(cols, 1, transpose_first ? kBlock : to_stride);
      transposition.push(rows, transpose_first ? from_stride : kBlock, 1);
      if (transpose_first) strided_copy(f, buffer, transposition, element_size(from_type));
      for (int64_t c = 0; transpose_first && c < cols; ++c) {
        convert(buffer + c * kBlock * from_size, from_type, t + c * to_stride * to_size, to_type,
                static_cast<size_t>(rows));
      }
      for (int64_t r = 0; !transpose_first && r < rows; ++r) {
        convert(f + r * from_stride * from_size, from_type, buffer + r * kBlock * to_size, to_type,
                static_cast<size_t>(cols));
      }
      if (!transpose_first) strided_copy(buffer, t, transposition, element_size(to_type));
    }
  }
}

}  // namespace

bool CopyBlock::simplify() {
  CopyBlock kept;
  for (size_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] == 1) continue;
    size_t k = kept.rank++;
    for (; k > 0 && magnitude(kept.to[k - 1]) < magnitude(to[d]); --k) {
      kept.sizes[k] = kept.sizes[k - 1];
      kept.from[k] = kept.from[k - 1];
      kept.to[k] = kept.to[k - 1];
    }
    kept.sizes[k] = sizes[d];
    kept.from[k] = from[d];
    kept.to[k] = to[d];
  }
  rank = 0;
  for (size_t d = kept.rank; d-- > 0;) {
    const size_t last = rank - 1;  // inside of d; the order is reversed at this point
    if (rank > 0 && kept.to[d] == to[last] * sizes[last] &&
        kept.from[d] == from[last] * sizes[last]) {
      sizes[last] *= kept.sizes[d];
    } else {
      push(kept.sizes[d], kept.from[d], kept.to[d]);
    }
  }
  std::reverse(sizes, sizes + rank);
  std::reverse(from, from + rank);
  std::reverse(to, to + rank);
  if (rank == 0) push(1, 1, 1);
  return true;
}

StridedCopy::StridedCopy(const CopyBlock& block, size_t element_size)
    : block_(block), element_size_(element_size), empty_(!block_.simplify()) {
  if (empty_) return;
  const size_t last = block_.rank - 1;
  if (block_.from[last] != 1 || block_.to[last] != 1) return;
  const size_t bytes = static_cast<size_t>(block_.sizes[last]) * element_size;
  if (block_.rank == 1) {
    run_bytes_ = bytes;
    return;
  }
  rows_ = bytes > kShortRow;
  if (rows_) return;
  element_size_ = widen_elements(&block_, element_size);
  if (block_.sizes[last] == 1) empty_ = !block_.simplify();
}

void StridedCopy::run_strided(const uint8_t* from, uint8_t* to) const {
  if (rows_) return copy_rows(from, to, block_, element_size_);
  switch (element_size_) {
    case 1:
      return copy_elements<uint8_t>(from, to, block_);
    case 2:
      return copy_elements<uint16_t>(from, to, block_);
    case 4:
      return copy_elements<uint32_t>(from, to, block_);
    case 8:
      return copy_elements<uint64_t>(from, to, block_);
    default:
      return copy_elements<Bytes16>(from, to, block_);
  }
}

void strided_copy(const void* from, void* to, const CopyBlock& block, size_t element_size) {
  StridedCopy(block, element_size).run(from, to);
}

namespace {

bool worth_sharing(const KernelContext& ctx, const CopyBlock& block) {
  int64_t elements = 1;
  for (size_t d = 0; d < block.rank; ++d) elements *= block.sizes[d];
  return ctx.threads() > 1 && elements > kGrain;
}

// Divides a simplified block along its outermost dimension among threads. `copy` gets a part, and
// the offsets of its start in the source and in the destination, in elements.
template <typename Copy>
void share_out(KernelContext& ctx, const CopyBlock& block, Copy copy) {
  int64_t each = 1;
  for (size_t d = 1; d < block.rank; ++d) each *= block.sizes[d];
  // Whole blocks of a transposition, unless one is too much for a share.
  const int64_t grain = kGrain / each / kTransposeBlock * kTransposeBlock;
  ctx.parallel(block.sizes[0], std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) {
    CopyBlock part = block;
    part.sizes[0] = end - begin;
    copy(part, begin * block.from[0], begin * block.to[0]);
  });
}

}  // namespace

void strided_copy(KernelContext& ctx, const void* from, void* to, CopyBlock block,
                  size_t element_size) {
  if (!worth_sharing(ctx, block)) return strided_copy(from, to, block, element_size);
  if (!block.simplify()) return;
  const int64_t size = static_cast<int64_t>(element_size);
  share_out(ctx, block, [&](const CopyBlock& part, int64_t from_begin, int64_t to_begin) {
    strided_copy(static_cast<const uint8_t*>(from) + from_begin * size,
                 static_cast<uint8_t*>(to) + to_begin * size, part, element_size);
  });
}

void converting_copy(const void* from, DType from_type, void* to, DType to_type, CopyBlock block) {
  const size_t from_size = element_size(from_type);
  const size_t to_size = element_size(to_type);
  if (from_type == to_type) return strided_copy(from, to, block, from_size);
  if (!block.simplify()) return;
  const size_t last = block.rank - 1;
  CopyBlock row = block;  // the last dimension alone, piece by piece
  row.rank = 1;
  alignas(16) uint8_t raw[kConvertChunk * 16];
  alignas(16) uint8_t converted[kConvertChunk * 16];
  CopyBlock offsets = block;  // the other dimensions, with strides in bytes for both sides
  for (size_t d = 0; d < last; ++d) {
    offsets.from[d] *= static_cast<int64_t>(from_size);
    offsets.to[d] *= static_cast<int64_t>(to_size);
  }
  const int64_t from_stride = block.from[last];
  const int64_t to_stride = block.to[last];
  const size_t run = consecutive_dim(block);
  if (to_stride == 1 && from_stride > 1 && run < block.rank && block.sizes[run] >= kShortRun) {
    offsets.sizes[run] = 1;
    return for_each_outer(offsets, last, 1, static_cast<const uint8_t*>(from),
                          static_cast<uint8_t*>(to), [&](const uint8_t* f, uint8_t* t) {
                            converting_transpose(f, from_type, t, to_type, block, run);
                          });
  }
  const auto copy_stride = [&](const void* f, int64_t f_stride, void* t, int64_t t_stride,
                               int64_t n, size_t size) {
    row.sizes[0] = n;
    row.from[0] = f_stride;
    row.to[0] = t_stride;
    strided_copy(f, t, row, size);
  };
  for_each_outer(offsets, last, 1, static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to),
                 [&](const uint8_t* f, uint8_t* t) {
                   if (from_stride == 1 && to_stride == 1) {
                     convert(f, from_type, t, to_type, static_cast<size_t>(block.sizes[last]));
                     return;
                   }
                   for (int64_t done = 0; done < block.sizes[last];) {
                     const int64_t n = std::min<int64_t>(kConvertChunk, block.sizes[last] - done);
                     const uint8_t* in = f + done * from_stride * static_cast<int64_t>(from_size);
                     uint8_t* out = t + done * to_stride * static_cast<int64_t>(to_size);
                     if (from_stride != 1) copy_stride(in, from_stride, raw, 1, n, from_size);
                     convert(from_stride != 1 ? raw : in, from_type,
                             to_stride != 1 ? converted : out, to_type, static_cast<size_t>(n));
                     if (to_stride != 1) copy_stride(converted, 1, out, to_stride, n, to_size);
                     done += n;
                   }
                 });
}

void converting_copy(KernelContext& ctx, const void* from, DType from_type, void* to, DType to_type,
                     CopyBlock block) {
  if (!block.simplify()) return;
  const int64_t from_size = static_cast<int64_t>(element_size(from_type));
  const int64_t to_size = static_cast<int64_t>(element_size(to_type));
  share_out(ctx, block, [&](const CopyBlock& part, int64_t from_begin, int64_t to_begin) {
    converting_copy(static_cast<const uint8_t*>(from) + from_begin * from_size, from_type,
                    static_cast<uint8_t*>(to) + to_begin * to_size, to_type, part);
  });
}

void copy_all(const Tensor& from, const Tensor& to) {
  if (to.numel == 0 || from.data == to.data) return;
  if (same_layout(from, to)) {
    std::memmove(to.data, from.data, to.nbytes());
    return;
  }
  CopyBlock block;
  for (size_t d = 0; d < to.rank; ++d) block.push(to.sizes[d], from.strides[d], to.strides[d]);
  strided_copy(from.data, to.data, block, element_size(to.dtype));
}

Status copy_as(KernelContext& ctx, const Tensor& self, int64_t offset, const int64_t* strides,
               const Shape& shape, Tensor& out) {
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  CopyBlock block;
  for (size_t d = 0; d < shape.rank; ++d) block.push(shape.sizes[d], strides[d], out.strides[d]);
  strided_copy(ctx, element_at(self, offset), out.data, block, element_size(self.dtype));
  return {};
}

Status check_same_type(KernelContext& ctx, const char* name, const Tensor& tensor,
                       const Tensor& out) {
  if (tensor.dtype != out.dtype) {
    return ctx.fail(Code::InvalidArgument,
                    "%s is %s, but out is %s; this operator does not convert", name,
                    dtype_name(tensor.dtype), dtype_name(out.dtype));
  }
  if (element_size(out.dtype) != 0) return {};
  return ctx.fail(Code::NotSupported, "%s has an unknown element type", name);
}

}  // namespace rushlight::kernels
