// embedding_bag: sums, means or maxima of rows of a table, for each bag of indices.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/index/indexing.h"
#include "rushlight/kernels/portable/loops/index/bag.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

// Indices of the arguments, in schema order. scale_grad_by_freq and sparse only matter for
// training.
enum Argument {
  kWeight,
  kIndices,
  kOffsets,
  kScaleGradByFreq,
  kMode,
  kSparse,
  kPerSampleWeights,
  kIncludeLastOffset,
  kPaddingIdx,
  kOut,
  kOffsetToBag,
  kBagSize,
  kMaxIndices
};

constexpr int64_t kBatch = 64;  // rows that are added at a time

enum Mode { kSum, kMean, kMax };

struct Bags {
  const Tensor* weight = nullptr;
  const Tensor* indices = nullptr;
  const Tensor* offsets = nullptr;
  const Tensor* per_sample = nullptr;
  Tensor* out = nullptr;
  Tensor* max_indices = nullptr;
  int64_t mode = kSum;
  int64_t padding = -1;
  int64_t count = 0;

  int64_t index(int64_t i) const { return index_at(*indices, i); }
  int64_t begin(int64_t bag) const { return index_at(*offsets, bag); }
  int64_t end(int64_t bag) const {
    return bag + 1 < offsets->numel ? begin(bag + 1) : indices->numel;
  }
  // With include_last_offset the last bag ends at the last offset. But for counts and maxima eager
  // reads all remaining indices.
  int64_t counted_end(int64_t bag) const {
    return bag + 1 < count ? begin(bag + 1) : indices->numel;
  }
  // The number of indices of a bag that are not padding.
  int64_t size(int64_t bag) const {
    int64_t n = 0;
    for (int64_t i = begin(bag); i < counted_end(bag); ++i) n += index(i) != padding ? 1 : 0;
    return n;
  }
};

void store_index(const Tensor& tensor, int64_t offset, int64_t value) {
  if (tensor.dtype == DType::Int64) {
    tensor.as<int64_t>()[offset] = value;
  } else {
    tensor.as<int32_t>()[offset] = static_cast<int32_t>(value);
  }
}

BagSumFn sum_loop(DType dtype) {
  const BagLoops& loops = bag_loops();
  switch (dtype) {
    case DType::Float64:
      return loops.sum_double;
    case DType::Float16:
      return loops.sum_half;
    case DType::BFloat16:
      return loops.sum_bfloat;
    default:
      return loops.sum_float;
  }
}

// Computes sums in float or double, one piece of the columns at a time.
template <typename T>
class BagSums {
 public:
  explicit BagSums(const Bags& bags)
      : bags_(bags),
        table_(*bags.weight, compute_dtype(bags.weight->dtype)),
        factors_(bags.per_sample != nullptr ? *bags.per_sample : *bags.weight,
                 compute_dtype(bags.weight->dtype)),
        out_(*bags.out, compute_dtype(bags.weight->dtype)),
        add_(sum_loop(bags.weight->dtype)),
        add_computed_(sum_loop(compute_dtype(bags.weight->dtype))) {}

  void run(int64_t first, int64_t last) {
    const int64_t columns = bags_.weight->sizes[1];
    for (int64_t bag = first; bag < last; ++bag) {
      for (int64_t c = 0; c < columns; c += static_cast<int64_t>(kChunk)) {
        const size_t n = std::min(static_cast<size_t>(columns - c), kChunk);
        const int64_t to = bag * bags_.out->strides[0] + c * bags_.out->strides[1];
        T* acc = static_cast<T*>(out_.target(to, bags_.out->strides[1]));
        std::fill(acc, acc + n, T{0});
        if (bags_.mode == kMax) {
          maximise(bag, c, n, acc);
        } else {
          sum(bag, c, n, acc);
        }
        out_.store(to, bags_.out->strides[1], n);
      }
    }
  }

 private:
  const T* row(int64_t index, int64_t column, size_t n) {
    const Tensor& t = *bags_.weight;
    const int64_t offset = index * t.strides[0] + column * t.strides[1];
    return static_cast<const T*>(table_.read(offset, t.strides[1], n));
  }

  void sum(int64_t bag, int64_t column, size_t n, T* acc) {
    const Tensor& t = *bags_.weight;
    const void* rows[kBatch];
    T factors[kBatch];
    const int64_t end = bags_.end(bag);
    for (int64_t first = bags_.begin(bag); first < end; first += kBatch) {
      const int64_t batch = std::min(kBatch, end - first);
      const T* weights = nullptr;
      if (bags_.per_sample != nullptr) {
        weights = static_cast<const T*>(factors_.read(first, 1, static_cast<size_t>(batch)));
      }
      size_t count = 0;
      for (int64_t i = 0; i < batch; ++i) {
        const int64_t index = bags_.index(first + i);
        if (index == bags_.padding) continue;
        if (t.strides[1] != 1) {
          rows[0] = row(index, column, n);
          add_computed_(rows, 1, weights != nullptr ? weights + i : nullptr, n, acc);
          continue;
        }
        if (weights != nullptr) factors[count] = weights[i];
        rows[count++] = table_.at(index * t.strides[0] + column);
      }
      if (count > 0) add_(rows, count, weights != nullptr ? factors : nullptr, n, acc);
    }
    if (bags_.mode != kMean) return;
    const T size = static_cast<T>(std::max<int64_t>(bags_.size(bag), 1));
    for (size_t k = 0; k < n; ++k) acc[k] /= size;
  }

  // As in eager, a NaN stays only if it comes first.
  void maximise(int64_t bag, int64_t column, size_t n, T* best) {
    int64_t indices[kChunk] = {};
    bool empty = true;
    for (int64_t i = bags_.begin(bag); i < bags_.counted_end(bag); ++i) {
      const int64_t index = bags_.index(i);
      if (index == bags_.padding) continue;
      const T* x = row(index, column, n);
      for (size_t k = 0; k < n; ++k) {
        const bool better = empty || x[k] > best[k];
        best[k] = better ? x[k] : best[k];
        indices[k] = better ? index : indices[k];
      }
      empty = false;
    }
    const Tensor& to = *bags_.max_indices;
    for (size_t k = 0; k < n; ++k) {
      const int64_t at = column + static_cast<int64_t>(k);
      store_index(to, bag * to.strides[0] + at * to.strides[1], indices[k]);
    }
  }

  const Bags& bags_;
  RowReader table_;
  RowReader factors_;
  RowWriter out_;
  BagSumFn add_;
  BagSumFn add_computed_;  // for rows of the computing type
};

Status check_indices(KernelContext& ctx, const Bags& bags) {
  const int64_t n = bags.indices->numel;
  const int64_t rows = bags.weight->sizes[0];
  for (int64_t i = 0; i < n; ++i) {
    const int64_t index = bags.index(i);
    if (index < 0 || index >= rows) return index_out_of_range(ctx, index, 0, rows, 0);
  }
  int64_t before = 0;
  for (int64_t i = 0; i < bags.offsets->numel; ++i) {
    const int64_t offset = bags.begin(i);
    if (offset < before || offset > n || (i == 0 && offset != 0)) {
      return ctx.fail(Code::InvalidArgument,
                      "offsets[%lld] is %lld, but offsets must start at 0, not decrease, and be at "
                      "most the number of indices, %lld",
                      static_cast<long long>(i), static_cast<long long>(offset),
                      static_cast<long long>(n));
    }
    before = offset;
  }
  return {};
}

Status check_bags(KernelContext& ctx, EValue* const* args, const Bags& bags) {
  RL_TRY(check_floating(ctx, "weight", *bags.weight));
  RL_TRY(check_rank(ctx, "weight", *bags.weight, 2));
  RL_TRY(check_index_type(ctx, "indices", *bags.indices));
  RL_TRY(check_rank(ctx, "indices", *bags.indices, 1));
  RL_TRY(check_index_type(ctx, "offsets", *bags.offsets));
  RL_TRY(check_rank(ctx, "offsets", *bags.offsets, 1));
  RL_TRY(check_same_type(ctx, "weight", *bags.weight, *bags.out));
  for (size_t k = kOffsetToBag; k <= kMaxIndices; ++k) {
    RL_TRY(check_index_type(ctx, "an out of indices", args[k]->tensor()));
  }
  if (bags.mode < kSum || bags.mode > kMax) {
    return ctx.fail(Code::InvalidArgument, "mode is %lld, but must be 0 (sum), 1 (mean) or 2 (max)",
                    static_cast<long long>(bags.mode));
  }
  if (args[kIncludeLastOffset]->to_bool() && bags.offsets->numel == 0) {
    return ctx.fail(Code::InvalidArgument,
                    "offsets is empty, but with include_last_offset must have an entry");
  }
  if (bags.per_sample != nullptr) {
    if (bags.mode != kSum) {
      return ctx.fail(Code::InvalidArgument,
                      "per_sample_weights are given, but mode is %lld and must be 0 (sum)",
                      static_cast<long long>(bags.mode));
    }
    RL_TRY(check_same_type(ctx, "per_sample_weights", *bags.per_sample, *bags.out));
    if (bags.per_sample->rank != 1 || bags.per_sample->sizes[0] != bags.indices->sizes[0]) {
      return ctx.fail(Code::InvalidArgument, "per_sample_weights has shape %s, but indices has %s",
                      ShapeText(bags.per_sample->shape()).text(),
                      ShapeText(bags.indices->shape()).text());
    }
  }
  return check_indices(ctx, bags);
}

// True if eager sums without storing the bag of each index.
bool sums_directly(const Bags& bags) {
  const Tensor& weight = *bags.weight;
  const bool type = weight.dtype == DType::Float32 || weight.dtype == DType::Float16;
  return bags.mode == kSum && type && weight.strides[1] == 1 && bags.out->strides[1] == 1 &&
         bags.padding < 0;
}

// Resizes the outputs by torch's shape rule, with which programs are planned.
Status resize_outs(KernelContext& ctx, EValue* const* args, const Bags& bags, bool forward_only) {
  Shape out;
  out.push(bags.count);
  out.push(bags.weight->sizes[1]);
  Shape count;
  count.push(bags.count);
  Shape indices;
  RL_TRY(ctx.resize(*bags.out, out.span()));
  indices.push(sums_directly(bags) ? 0 : bags.indices->numel);
  RL_TRY(ctx.resize(args[kOffsetToBag]->tensor(), indices.span()));
  RL_TRY(ctx.resize(args[kBagSize]->tensor(), forward_only ? bags.offsets->shape() : count.span()));
  return ctx.resize(args[kMaxIndices]->tensor(), bags.mode == kMax ? out.span() : count.span());
}

// Writes the bag of each index, and the sizes of the bags. As in eager, sizes are 0 for sums, and
// max_indices gets the sizes as well unless the mode is max.
void fill_bookkeeping(const Bags& bags, const Tensor& offset_to_bag, const Tensor& bag_size,
                      const Tensor& max_indices) {
  for (int64_t bag = 0; bag < bag_size.numel; ++bag) {
    const bool counted = bags.mode != kSum && bag < bags.count;
    const int64_t size = counted ? bags.size(bag) : 0;
    store_index(bag_size, bag, size);
    if (bags.mode != kMax && bag < bags.count) store_index(max_indices, bag, size);
  }
  if (offset_to_bag.numel == 0) return;
  for (int64_t i = 0; i < offset_to_bag.numel; ++i) store_index(offset_to_bag, i, 0);
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    const int64_t end = bags.counted_end(bag);
    for (int64_t i = bags.begin(bag); i < end; ++i) store_index(offset_to_bag, i, bag);
  }
}

template <typename T>
void run_bags(KernelContext& ctx, const Bags& bags) {
  const int64_t per_bag = bags.indices->numel / bags.count + 1;
  const int64_t work = per_bag * std::max<int64_t>(bags.weight->sizes[1], 1);
  ctx.parallel(bags.count, std::max<int64_t>(16 * 1024 / work, 1),
               [&](int64_t begin, int64_t end) { BagSums<T>(bags).run(begin, end); });
}

Status run(KernelContext& ctx, EValue* const* args, bool forward_only) {
  Bags bags;
  bags.weight = &args[kWeight]->tensor();
  bags.indices = &args[kIndices]->tensor();
  bags.offsets = &args[kOffsets]->tensor();
  bags.per_sample = args[kPerSampleWeights]->tensor_or_null();
  bags.out = &args[kOut]->tensor();
  bags.mode = args[kMode]->to_int();
  bags.padding = args[kPaddingIdx]->to_int();
  RL_TRY(check_bags(ctx, args, bags));
  bags.count = bags.offsets->numel - (args[kIncludeLastOffset]->to_bool() ? 1 : 0);
  RL_TRY(resize_outs(ctx, args, bags, forward_only));
  Tensor& max_indices = args[kMaxIndices]->tensor();
  fill_bookkeeping(bags, args[kOffsetToBag]->tensor(), args[kBagSize]->tensor(), max_indices);
  if (bags.out->numel == 0) return {};
  bags.max_indices = &max_indices;
  if (bags.weight->dtype == DType::Float64) {
    run_bags<double>(ctx, bags);
  } else {
    run_bags<float>(ctx, bags);
  }
  return {};
}

}  // namespace

// _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
//                include_last_offset, padding_idx, *, out0, out1, out2, out3):
// the outputs are the result, the bag of each index, the sizes of the bags, and for mode 2 the
// index of each maximum.
Status embedding_bag_out(KernelContext& ctx, EValue* const* args) { return run(ctx, args, false); }

// The same arguments. The sizes of the bags have an entry for the last offset as well.
Status embedding_bag_forward_only_out(KernelContext& ctx, EValue* const* args) {
  return run(ctx, args, true);
}

}  // namespace rushlight::kernels
