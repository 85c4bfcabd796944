// The driver of reductions: which input elements go into which output element, for any set of
// reduced dimensions and any orders of dimensions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {

// A nest of loops over some dimensions, innermost first, with up to two offsets that move along.
class Nest {
 public:
  void add(int64_t size, int64_t stride, int64_t second_stride);
  size_t dims() const { return dims_; }
  int64_t size(size_t d) const { return sizes_[d]; }
  int64_t stride(size_t d) const { return strides_[d]; }
  int64_t second_stride(size_t d) const { return second_strides_[d]; }
  // The number of positions; 1 for no dimension.
  int64_t count() const;
  // Takes the innermost dimension out of the nest.
  void drop_inner();

  void rewind() { seek(0); }
  // Goes to a position, counted from the first.
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

// The two nests of a reduction: over what is kept (offsets into the input and into the output) and
// over what is reduced (offsets into the input). If the input's innermost dimension is reduced it
// is the run of a row; else it is the run of columns.
struct ReducePlan {
  Nest kept;
  Nest reduced;
  bool inner_reduced = true;
  int64_t run = 1;         // the input's contiguous innermost elements
  int64_t run_stride = 0;  // columns: the output's stride along the run
  int64_t reduced_count = 1;
};

// The sizes of the output of a reduction.
Shape reduced_shape(const Tensor& in, const bool* reduced, bool keepdim);
// `out` has the shape reduced_shape gives; `in` has elements.
ReducePlan plan_reduction(const Tensor& in, const bool* reduced, bool keepdim, const Tensor& out);

// Shares out the kept positions. In columns, a position is a piece of the run, of kChunk elements;
// `body` gets where it starts in the input and in the output, and its length.
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

// Reads pieces of contiguous elements as another type, through a buffer if need be.
class RunReader {
 public:
  RunReader(const Tensor& tensor, DType as)
      : data_(tensor.as<uint8_t>()),
        size_(element_size(tensor.dtype)),
        from_(tensor.dtype),
        as_(as) {}
  // The most elements that read() takes at once.
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

// The sum over the flagged dimensions, into `out`, which gets its sizes.
Status sum_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                Tensor& out);

}  // namespace rushlight::kernels
