// The driver of reductions: finds the input elements for each output element, for any set of
// reduced dimensions and any dim orders.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {

// Nested loops over some dimensions, innermost first, with up to two offsets.
class Nest {
 public:
  void add(int64_t size, int64_t stride, int64_t second_stride);
  size_t dims() const { return dims_; }
  int64_t size(size_t d) const { return sizes_[d]; }
  int64_t stride(size_t d) const { return strides_[d]; }
  int64_t second_stride(size_t d) const { return second_strides_[d]; }
  // The number of positions; 1 without dimensions.
  int64_t count() const;
  // Removes the innermost dimension.
  void drop_inner();

  void rewind() { seek(0); }
  // Moves to a position, counted from the first.
  void seek(int64_t position);
  // Moves to the next position; false after the last.
  bool next();
  int64_t offset() const { return offset_; }
  int64_t second_offset() const { return second_offset_; }

 private:
  size_t dims_ = 0;
  int64_t sizes_[kMaxRank];
  int64_t strides_[kMaxRank];
  int64_t second_strides_[kMaxRank];
  int64_t index_[kMaxRank];
  int64_t offset_ = 0;
  int64_t second_offset_ = 0;
};

// The two nests of a reduction: over the kept dimensions (offsets in input and output) and over the
// reduced dimensions (offsets in the input). If the input's innermost dimension is reduced, its run
// is a part of one row; otherwise it is a run of columns.
struct ReducePlan {
  Nest kept;
  Nest reduced;
  bool inner_reduced = true;
  int64_t run = 1;         // contiguous innermost elements of the input
  int64_t run_stride = 0;  // for columns: the output's stride along the run
  int64_t reduced_count = 1;
};

// The sizes of the output of a reduction.
Shape reduced_shape(const Tensor& in, const bool* reduced, bool keepdim);
// `out` must have the shape that reduced_shape returns; `in` must have elements.
ReducePlan plan_reduction(const Tensor& in, const bool* reduced, bool keepdim, const Tensor& out);

// Divides the kept positions among threads. For columns, a position is a piece of the run, at most
// kChunk elements. `body` gets its offsets in input and output, and its length.
template <typename MakeBody>
void for_each_kept(KernelContext& ctx, const ReducePlan& plan, MakeBody make_body) {
  const int64_t chunk = static_cast<int64_t>(kChunk);
  const int64_t pieces = plan.inner_reduced ? 1 : (plan.run + chunk - 1) / chunk;
  const int64_t width = plan.inner_reduced ? 1 : plan.run < chunk ? plan.run : chunk;
  const int64_t grain = kGrain / (plan.reduced_count * width) + 1;
  ctx.parallel(plan.kept.count() * pieces, grain, [&](int64_t begin, int64_t end) {
    auto body = make_body();
    Nest kept = plan.kept;
    kept.seek(begin / pieces);
    for (int64_t item = begin, piece = begin % pieces; item < end; ++item) {
      const int64_t done = piece * chunk;
      const int64_t n = plan.inner_reduced ? 1 : plan.run - done < chunk ? plan.run - done : chunk;
      body(kept.offset() + done, kept.second_offset() + done * plan.run_stride, n);
      if (++piece == pieces) {
        piece = 0;
        kept.next();
      }
    }
  });
}

// Reads pieces of contiguous elements as another type, through a buffer if necessary.
class RunReader {
 public:
  RunReader(const Tensor& tensor, DType as)
      : data_(tensor.as<uint8_t>()),
        size_(element_size(tensor.dtype)),
        from_(tensor.dtype),
        as_(as) {}
  // The maximum number of elements that read() takes at once.
  size_t limit() const { return from_ == as_ ? SIZE_MAX : kChunk; }
  const void* read(int64_t offset, size_t n) {
    const uint8_t* here = data_ + offset * static_cast<int64_t>(size_);
    if (from_ == as_) return here;
    convert(here, from_, buffer_, as_, n);
    return buffer_;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  DType from_;
  DType as_;
  alignas(64) uint64_t buffer_[kChunk];
};

// Writes n elements of type `from` to out at `offset`, `stride` apart.
void write_run(const void* values, DType from, size_t n, Tensor& out, int64_t offset,
               int64_t stride);

// Sums over the flagged dimensions into `out`, which it resizes.
Status sum_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                Tensor& out);

}  // namespace rushlight::kernels
