// Inner loops of copies: runs of bytes, lines with strides, transpositions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/engine/types/rows.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// For elements of 1, 2, 4 and 8 bytes; strides count elements.
constexpr size_t kCopySizes = 4;
constexpr size_t kConversions = static_cast<size_t>(Conversion::FloatToBFloat) + 1;

struct CopyLoops {
  // `rows` runs of `bytes` bytes; the strides between runs count bytes.
  void (*runs)(const void* in, int64_t in_stride, void* out, int64_t out_stride, int64_t rows,
               int64_t bytes);
  // out[i * out_stride] = in[i * in_stride]
  void (*line[kCopySizes])(const void* in, int64_t in_stride, void* out, int64_t out_stride,
                           int64_t n);
  // out[i * out_stride + j] = in[j * in_stride + i] for i < rows, j < columns
  void (*transpose[kCopySizes])(const void* in, int64_t in_stride, void* out, int64_t out_stride,
                                int64_t rows, int64_t columns);
  // Like `line`, with a conversion; the first entry is nullptr.
  void (*convert[kConversions])(const void* in, int64_t in_stride, void* out, int64_t out_stride,
                                int64_t n);
};

RL_LOOPS(CopyLoops, copy_loops)

}  // namespace rushlight::engine
