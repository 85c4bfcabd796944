// A value of the engine's graph: which memory, and how its elements lie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "rushlight/core/dtype.h"
#include "rushlight/core/shape_text.h"
#include "rushlight/core/span.h"
#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight::engine {

constexpr size_t kMaxViewRank = static_cast<size_t>(fb::cpu_engine::Limit::RANK);
// Sizes, strides and products of sizes stay far below the limit of 64 bits, so that sums and
// products of a few of them do not overflow.
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

// The product of sizes; -1 if one is negative, or if the product of those that are not 0 is beyond
// kMaxViewNumel: a size of 0 must not hide an overflow.
int64_t bounded_product(std::initializer_list<int64_t> sizes);

// Sets numel and extent; false if a size or stride is negative or something is too large.
bool measure(View& view);

// Dimensions first..last-1 as one dimension, with its size and stride; false if no single stride
// describes them. `stride` becomes 0 if there are no dimensions or a single element: any stride
// fits.
bool merge_dims(const View& view, size_t first, size_t last, int64_t* size, int64_t* stride);

// The view as rows whose elements are neighbours: all dimensions but the last are the rows.
struct Rows {
  int64_t count = 0;
  int64_t width = 0;
  int64_t stride = 0;
};
bool as_rows(const View& view, Rows* rows);

// Whether the elements lie in row-major order without gaps, or there are none.
bool is_dense(const View& view);
// True if elements share memory: a stride is 0, or shorter than what the dimensions inside it span.
bool has_repeats(const View& view);
bool same_sizes(const View& a, const View& b);

// Sizes as messages show them, clamped to 32 bits.
ShapeText text_of(const int64_t* sizes, size_t rank);
inline ShapeText text_of(const View& view) { return text_of(view.sizes, view.rank); }

}  // namespace rushlight::engine
