// A value of the engine's graph: which memory, and how its elements lie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"
#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight::engine {

constexpr size_t kMaxViewRank = static_cast<size_t>(fb::cpu_engine::Limit::RANK);
// Sizes, strides and products of sizes stay far below what 64 bits hold, so that whatever is
// computed from a few of them does not overflow.
constexpr int64_t kMaxViewNumel = static_cast<int64_t>(fb::cpu_engine::Limit::ELEMENTS);

struct View {
  DType dtype = DType::Float32;
  uint8_t rank = 0;
  uint32_t base = 0;  // which of the graph's memories
  int64_t sizes[kMaxViewRank] = {};
  int64_t strides[kMaxViewRank] = {};  // in elements
  uint64_t offset = 0;                 // bytes from its start
  int64_t numel = 0;
  uint64_t extent = 0;  // bytes from the memory's start to the end of the last element; 0 if empty

  int64_t size(size_t dim) const { return sizes[dim]; }
};

// The product of sizes; -1 if one is negative or the product is beyond kMaxViewNumel, sizes of 0
// not counted: they must not hide what overflows without them.
int64_t bounded_product(std::initializer_list<int64_t> sizes);

// Sets numel and extent; false if a size or stride is negative or something is too large.
bool measure(View& view);

// Dimensions first..last-1 as one: `stride` from one element to the next; false if there is no such
// stride. No dimension, or a single element, has any stride: the caller's, or 0.
bool merge_dims(const View& view, size_t first, size_t last, int64_t* size, int64_t* stride);

// The view as rows whose elements are neighbours: all dimensions but the last are the rows.
struct Rows {
  int64_t count = 0;
  int64_t width = 0;
  int64_t stride = 0;
};
bool as_rows(const View& view, Rows* rows);

// Elements without gaps in row-major order, or none.
bool is_dense(const View& view);
// True if some elements are the same memory: a dimension is repeated with stride 0, or strides are
// shorter than what lies between them.
bool has_repeats(const View& view);
bool same_sizes(const View& a, const View& b);

}  // namespace rushlight::engine
