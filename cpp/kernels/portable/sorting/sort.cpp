// Sorting along a dimension. The sort is stable, even where eager's need not be.
//
// Elements of up to 4 bytes are sorted as 64-bit words of key and position; larger elements need
// one word for each of both. Words are sorted by digits (least significant first) if there is
// enough scratch memory, else by comparison. If a row's words do not fit into scratch memory, its
// elements are divided into buckets of neighbouring keys, which fit; without any scratch memory, a
// heap of indices is used.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/reduction/reduce.h"
#include "rushlight/kernels/portable/sorting/order.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kRadixFrom = 256;  // shorter rows are sorted faster by comparison
constexpr size_t kDigits = 256;
constexpr size_t kMaxBuckets = 1 << 16;
constexpr size_t kMinBuckets = 256;  // with fewer buckets, each would be too large

// Sorts all rows along `dim`.
class Sorter {
 public:
  Sorter(KernelContext& ctx, const Tensor& in, size_t dim, bool descending, Tensor& values,
         Tensor& indices)
      : in_(in),
        values_(values),
        indices_(indices),
        n_(in.rank == 0 ? 1 : in.sizes[dim]),
        in_stride_(in.rank == 0 ? 1 : in.strides[dim]),
        out_stride_(in.rank == 0 ? 1 : indices.strides[dim]),
        descending_(descending) {
    for (size_t d = in.rank; d-- > 0;) {
      if (d != dim) rows_.add(in.sizes[d], in.strides[d], indices.strides[d]);
    }
    const size_t item = has_wide_keys(in.dtype) ? sizeof(WideItem) : sizeof(uint64_t);
    const size_t bytes = static_cast<size_t>(n_) * item;
    items_ = ctx.scratch(bytes);
    if (items_ == nullptr) take_buckets(ctx);
    if (n_ < kRadixFrom || items_ == nullptr) return;
    // Two narrow items fit into a wide one.
    other_ = has_wide_keys(in.dtype) ? static_cast<uint64_t*>(items_) + n_
                                     : static_cast<uint64_t*>(ctx.scratch(bytes));
  }

  void run() {
    rows_.rewind();
    do {
      int64_t* row = indices_.as<int64_t>() + rows_.second_offset();
      if (items_ == nullptr) {
        sort_by_buckets(rows_.offset(), row);
      } else if (!has_wide_keys(in_.dtype)) {
        sort_narrow(rows_.offset(), row, 0);
      } else {
        sort_wide(rows_.offset(), row);
      }
      copy_values(rows_.offset(), row, rows_.second_offset());
    } while (rows_.next());
  }

 private:
  // Keys must be from `least` to `least` + UINT32_MAX.
  void sort_narrow(int64_t offset, int64_t* row, uint64_t least) {
    uint64_t* items = static_cast<uint64_t*>(items_);
    const uint64_t flip = descending_ ? UINT32_MAX : 0;
    RowKeys(in_, offset, in_stride_, n_).each([&](int64_t i, uint64_t key) {
      items[i] = ((key - least) ^ flip) << 32 | static_cast<uint64_t>(i);
    });
    if (other_ != nullptr) {
      items = sort_by_digits(items);
    } else {
      std::sort(items, items + n_);
    }
    for (int64_t i = 0; i < n_; ++i) {
      row[i * out_stride_] = static_cast<int64_t>(items[i] & UINT32_MAX);
    }
  }

  // Sorts by the four bytes of the key. A byte that is the same in all keys is skipped.
  uint64_t* sort_by_digits(uint64_t* items) {
    uint32_t counts[4][kDigits] = {};
    for (int64_t i = 0; i < n_; ++i) {
      for (size_t d = 0; d < 4; ++d) ++counts[d][items[i] >> (32 + 8 * d) & 0xff];
    }
    uint64_t* to = other_;
    for (size_t d = 0; d < 4; ++d) {
      const size_t shift = 32 + 8 * d;
      uint32_t* count = counts[d];
      if (count[items[0] >> shift & 0xff] == static_cast<uint32_t>(n_)) continue;
      uint32_t total = 0;
      for (size_t digit = 0; digit < kDigits; ++digit) {
        const uint32_t here = count[digit];
        count[digit] = total;
        total += here;
      }
      for (int64_t i = 0; i < n_; ++i) to[count[items[i] >> shift & 0xff]++] = items[i];
      std::swap(items, to);
    }
    return items;
  }

  // Wide elements are often close to each other, such as indices; then narrow keys suffice.
  void sort_wide(int64_t offset, int64_t* row) {
    uint64_t least = UINT64_MAX;
    uint64_t greatest = 0;
    RowKeys(in_, offset, in_stride_, n_).each([&](int64_t, uint64_t key) {
      least = std::min(least, key);
      greatest = std::max(greatest, key);
    });
    if (greatest - least <= UINT32_MAX) return sort_narrow(offset, row, least);
    WideItem* items = static_cast<WideItem*>(items_);
    const uint64_t flip = descending_ ? UINT64_MAX : 0;
    RowKeys(in_, offset, in_stride_, n_).each([&](int64_t i, uint64_t key) {
      items[i] = WideItem(key ^ flip, i);
    });
    std::sort(items, items + n_, [](const WideItem& a, const WideItem& b) { return a.before(b); });
    for (int64_t i = 0; i < n_; ++i) row[i * out_stride_] = items[i].index();
  }

  // Uses a quarter of the remaining scratch memory for the counts of the buckets, and the rest for
  // the items of one bucket.
  void take_buckets(KernelContext& ctx) {
    constexpr size_t kAlignment = KernelContext::kScratchAlignment;
    const size_t bytes = ctx.scratch_left() / kAlignment * kAlignment;
    while (buckets_ > kMinBuckets && buckets_ * sizeof(uint32_t) > bytes / 4) buckets_ /= 2;
    const size_t taken = buckets_ * sizeof(uint32_t);
    uint8_t* memory = taken < bytes ? static_cast<uint8_t*>(ctx.scratch(bytes)) : nullptr;
    counts_ = reinterpret_cast<uint32_t*>(memory);
    if (memory == nullptr) return;
    bucket_ = reinterpret_cast<WideItem*>(memory + taken);
    bucket_room_ = static_cast<int64_t>((bytes - taken) / sizeof(WideItem));
  }

  // The keys are computed again in every pass: for their range, for the count of each bucket, and
  // for assigning elements to buckets in their original order.
  void sort_by_buckets(int64_t offset, int64_t* row) {
    if (counts_ == nullptr) {
      for (int64_t i = 0; i < n_; ++i) row[i * out_stride_] = i;
      return sort_in_place(offset, row, n_);
    }
    const uint64_t all = has_wide_keys(in_.dtype) ? UINT64_MAX : UINT32_MAX;
    const uint64_t flip = descending_ ? all : 0;
    uint64_t least = UINT64_MAX;
    uint64_t greatest = 0;
    RowKeys keys(in_, offset, in_stride_, n_);
    keys.each([&](int64_t, uint64_t key) {
      least = std::min(least, key ^ flip);
      greatest = std::max(greatest, key ^ flip);
    });
    int shift = 0;
    while ((greatest - least) >> shift >= buckets_) ++shift;
    std::fill(counts_, counts_ + buckets_, 0);
    keys.each([&](int64_t, uint64_t key) { ++counts_[((key ^ flip) - least) >> shift]; });
    uint32_t total = 0;
    for (size_t b = 0; b < buckets_; ++b) {
      const uint32_t here = counts_[b];
      counts_[b] = total;
      total += here;
    }
    keys.each([&](int64_t i, uint64_t key) {
      row[counts_[((key ^ flip) - least) >> shift]++ * out_stride_] = i;
    });
    if (shift == 0) return;  // all keys are equal
    int64_t begin = 0;
    for (size_t b = 0; b < buckets_; ++b) {
      sort_bucket(offset, row + begin * out_stride_, counts_[b] - begin);
      begin = counts_[b];
    }
  }

  void sort_bucket(int64_t offset, int64_t* row, int64_t size) {
    if (size > bucket_room_) return sort_in_place(offset, row, size);
    for (int64_t i = 0; i < size; ++i) bucket_[i] = item(offset, row[i * out_stride_]);
    std::sort(bucket_, bucket_ + size,
              [](const WideItem& a, const WideItem& b) { return a.before(b); });
    for (int64_t i = 0; i < size; ++i) row[i * out_stride_] = bucket_[i].index();
  }

  // A heap sort of indices. Keys are computed again for every comparison.
  void sort_in_place(int64_t offset, int64_t* row, int64_t size) {
    for (int64_t i = size / 2; i-- > 0;) sink(offset, row, i, size);
    for (int64_t end = size - 1; end > 0; --end) {
      std::swap(row[0], row[end * out_stride_]);
      sink(offset, row, 0, end);
    }
  }

  void sink(int64_t offset, int64_t* row, int64_t i, int64_t size) {
    for (;;) {
      int64_t child = 2 * i + 1;
      if (child >= size) return;
      WideItem greater = item(offset, row[child * out_stride_]);
      if (child + 1 < size) {
        const WideItem second = item(offset, row[(child + 1) * out_stride_]);
        if (greater.before(second)) {
          greater = second;
          ++child;
        }
      }
      if (greater.before(item(offset, row[i * out_stride_]))) return;
      std::swap(row[i * out_stride_], row[child * out_stride_]);
      i = child;
    }
  }

  WideItem item(int64_t offset, int64_t index) const {
    const int64_t at = offset + index * in_stride_;
    const uint64_t key =
        is_floating(in_.dtype) ? key_of(double_at(in_, at)) : key_of(int64_at(in_, at));
    return WideItem(descending_ ? ~key : key, index);
  }

  template <typename T>
  void copy_values_as(int64_t offset, const int64_t* row, int64_t out_offset) {
    const T* from = in_.as<const T>() + offset;
    T* to = values_.as<T>() + out_offset;
    for (int64_t i = 0; i < n_; ++i) to[i * out_stride_] = from[row[i * out_stride_] * in_stride_];
  }

  void copy_values(int64_t offset, const int64_t* row, int64_t out_offset) {
    switch (element_size(in_.dtype)) {
      case 1:
        return copy_values_as<uint8_t>(offset, row, out_offset);
      case 2:
        return copy_values_as<uint16_t>(offset, row, out_offset);
      case 4:
        return copy_values_as<uint32_t>(offset, row, out_offset);
      default:
        return copy_values_as<uint64_t>(offset, row, out_offset);
    }
  }

  const Tensor& in_;
  Tensor& values_;
  Tensor& indices_;
  int64_t n_;
  int64_t in_stride_;
  int64_t out_stride_;
  bool descending_;
  Nest rows_;
  void* items_ = nullptr;
  uint64_t* other_ = nullptr;
  // Used if the items of a row do not fit.
  uint32_t* counts_ = nullptr;
  size_t buckets_ = kMaxBuckets;
  WideItem* bucket_ = nullptr;
  int64_t bucket_room_ = 0;
};

Status sort(KernelContext& ctx, const Tensor& in, int64_t dim_argument, bool descending,
            Tensor& values, Tensor& indices) {
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_dtype(ctx, "values", values, in.dtype));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, dim_argument, in.rank, &dim));
  RL_TRY(ctx.resize_like(values, in));
  RL_TRY(ctx.resize_like(indices, in));
  if (in.numel == 0) return {};
  if (!same_layout(values, indices)) {
    return ctx.fail(Code::InvalidArgument, "the two outputs have different orders of dimensions");
  }
  Sorter(ctx, in, dim, descending, values, indices).run();
  return {};
}

}  // namespace

// sort(self, dim, descending, *, values, indices)
Status sort_values(KernelContext& ctx, EValue* const* args) {
  return sort(ctx, args[0]->tensor(), args[1]->to_int(), args[2]->to_bool(), args[3]->tensor(),
              args[4]->tensor());
}

// sort(self, *, stable, dim, descending, values, indices)
Status sort_values_stable(KernelContext& ctx, EValue* const* args) {
  return sort(ctx, args[0]->tensor(), args[2]->to_int(), args[3]->to_bool(), args[4]->tensor(),
              args[5]->tensor());
}

}  // namespace rushlight::kernels
