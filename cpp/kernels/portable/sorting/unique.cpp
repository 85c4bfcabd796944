// The distinct elements of a tensor, or its distinct slices along a dimension: of all elements, in
// sorted order, or of neighbours only.
//
// Elements are sorted by digits, slices as pairs of their first element's key and their index, in
// scratch memory. If not all of them fit, they are sorted in several parts, the least ones first.
#include <algorithm>
#include <utility>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/sorting/order.h"

namespace rushlight::kernels {
namespace {

// The offset of element `n` in row-major order.
int64_t offset_of(const Tensor& tensor, int64_t n) {
  if (tensor.is_contiguous()) return n;
  int64_t offset = 0;
  for (size_t d = tensor.rank; d-- > 0;) {
    offset += n % tensor.sizes[d] * tensor.strides[d];
    n /= tensor.sizes[d];
  }
  return offset;
}

// The key of one element, equal to that of RowKeys.
uint64_t key_at(const Tensor& tensor, int64_t offset) {
  if (is_floating(tensor.dtype)) {
    const double value = double_at(tensor, offset);
    return has_wide_keys(tensor.dtype) ? key_of(value) : key_of(static_cast<float>(value));
  }
  const int64_t value = tensor.dtype == DType::Bool ? tensor.as<const uint8_t>()[offset] != 0
                                                    : int64_at(tensor, offset);
  return has_wide_keys(tensor.dtype) ? key_of(value) : key_of(static_cast<int32_t>(value));
}

// The items that are compared: elements, or slices along a dimension.
class Slices {
 public:
  Slices(const Tensor& in, bool flat, size_t dim) : in_(in), flat_(flat), dim_(dim) {
    if (is_floating(in.dtype)) nan_ = has_wide_keys(in.dtype) ? UINT64_MAX : UINT32_MAX;
  }

  int64_t count() const { return flat_ ? in_.numel : in_.sizes[dim_]; }
  int64_t start(int64_t i) const { return flat_ ? offset_of(in_, i) : i * in_.strides[dim_]; }
  uint64_t first_key(int64_t i) const { return key_at(in_, start(i)); }

  // Compares slices by their keys: negative if a comes before b, 0 if they are equal, else
  // positive.
  int compare(int64_t a, int64_t b) const {
    int result = 0;
    each_pair(a, b, [&](uint64_t x, uint64_t y) {
      if (x != y) result = x < y ? -1 : 1;
      return x == y;
    });
    return result;
  }
  // True if the slices are equal and have no NaN.
  bool equal(int64_t a, int64_t b) const {
    bool result = true;
    each_pair(a, b, [&](uint64_t x, uint64_t y) {
      result = x == y && !(floating() && x == nan_);
      return result;
    });
    return result;
  }
  // True if the items are single elements, so that equal keys mean equal items.
  bool flat() const { return flat_; }
  bool floating() const { return is_floating(in_.dtype); }
  uint64_t nan() const { return nan_; }  // the key of NaN, for floating elements
  // Calls body(element, key) for all elements, in order. They must be dense and row-major.
  template <typename Body>
  void each_key(Body body) const {
    RowKeys(in_, 0, 1, in_.numel).each(body);
  }
  bool in_a_row() const { return flat_ && in_.is_contiguous(); }

  bool before(int64_t a, int64_t b) const {
    const int order = compare(a, b);
    return order != 0 ? order < 0 : a < b;
  }

 private:
  // Calls body for pairs of elements of both slices until it returns false.
  template <typename Body>
  void each_pair(int64_t a, int64_t b, Body body) const {
    const int64_t from = start(a);
    const int64_t other = start(b);
    int64_t index[kMaxRank] = {};
    int64_t offset = 0;
    for (;;) {
      if (!body(key_at(in_, from + offset), key_at(in_, other + offset)) || flat_) return;
      size_t d = in_.rank;
      for (;;) {
        if (d == 0) return;
        --d;
        if (d == dim_) continue;
        offset += in_.strides[d];
        if (++index[d] < in_.sizes[d]) break;
        offset -= index[d] * in_.strides[d];
        index[d] = 0;
      }
    }
  }

  const Tensor& in_;
  bool flat_;
  size_t dim_;
  uint64_t nan_ = 0;
};

// All slices, in order.
class Order {
 public:
  // With `distinct`, one of several equal elements suffices.
  Order(KernelContext& ctx, const Slices& slices, bool sorted, bool distinct)
      : slices_(slices), sorted_(sorted), distinct_(distinct && slices.flat()) {
    const int64_t n = slices.count();
    if (!sorted) return;
    items_ = static_cast<WideItem*>(ctx.scratch(static_cast<size_t>(n) * sizeof(WideItem)));
    if (items_ == nullptr) {
      take_room(ctx);
      return;
    }
    if (slices.in_a_row() && sort_narrow(n)) return;
    for (int64_t i = 0; i < n; ++i) items_[i] = WideItem(slices.first_key(i), i);
    all_ = sort_part(n);
  }

  // Calls body(slice, group) for each slice, where equal slices have the same group. Returns the
  // number of groups.
  template <typename Body>
  int64_t each(Body body) const {
    int64_t group = -1;
    int64_t last = -1;
    uint64_t last_key = 0;
    const bool floating = slices_.floating();
    const uint64_t nan = slices_.nan();
    const auto by_key = [&](int64_t element, uint64_t key) {
      const bool same = key == last_key && !(floating && key == nan) && group >= 0;
      group += same ? 0 : 1;
      last_key = key;
      body(element, group);
    };
    if (slices_.in_a_row() && !sorted_) {
      slices_.each_key(by_key);
      return group + 1;
    }
    if (words_ != nullptr) {
      for (int64_t k = 0; k < slices_.count(); ++k) {
        by_key(words_[k].index(), words_[k].key() + least_);
      }
      return group + 1;
    }
    const auto by_item = [&](const WideItem& item) {
      if (slices_.flat()) return by_key(item.index(), item.key());
      if (last < 0 || !slices_.equal(last, item.index())) ++group;
      last = item.index();
      body(last, group);
    };
    if (!sorted_) {
      for (int64_t k = 0; k < slices_.count(); ++k) by_item(WideItem(slices_.first_key(k), k));
    } else if (all_ < 0) {
      each_by_parts(by_item);
    }
    for (int64_t k = 0; k < all_; ++k) by_item(items_[k]);
    return group + 1;
  }

 private:
  // If the keys span at most 32 bits, as those of close numbers do, key and element share a word,
  // and words are sorted by the digits in which they differ. Otherwise returns false.
  bool sort_narrow(int64_t n) {
    uint64_t least = UINT64_MAX;
    uint64_t greatest = 0;
    slices_.each_key([&](int64_t, uint64_t key) {
      least = std::min(least, key);
      greatest = std::max(greatest, key);
    });
    if (n == 0 || greatest - least > UINT32_MAX) return false;
    // Two words take the space of one item.
    NarrowItem* words = reinterpret_cast<NarrowItem*>(items_);
    NarrowItem* other = words + n;
    slices_.each_key([&](int64_t i, uint64_t key) { words[i] = NarrowItem(key - least, i); });
    for (int shift = 0; shift < 32 && (greatest - least) >> shift != 0; shift += 8) {
      uint32_t counts[256] = {};
      for (int64_t i = 0; i < n; ++i) ++counts[words[i].key() >> shift & 0xff];
      uint32_t total = 0;
      for (uint32_t& count : counts) {
        const uint32_t here = count;
        count = total;
        total += here;
      }
      for (int64_t i = 0; i < n; ++i) other[counts[words[i].key() >> shift & 0xff]++] = words[i];
      std::swap(words, other);
    }
    words_ = words;
    least_ = least;
    return true;
  }

  // Takes the rest of the scratch memory, or this object's small buffer if that is larger.
  void take_room(KernelContext& ctx) {
    constexpr size_t kAlignment = KernelContext::kScratchAlignment;
    const size_t bytes = ctx.scratch_left() / kAlignment * kAlignment;
    items_ = few_;
    if (bytes <= sizeof(few_)) return;
    items_ = static_cast<WideItem*>(ctx.scratch(bytes));
    room_ = static_cast<int64_t>(bytes / sizeof(WideItem));
  }

  bool before(const WideItem& a, const WideItem& b) const {
    if (a.key() != b.key()) return a.key() < b.key();
    if (distinct_) return slices_.floating() && a.key() == slices_.nan() && a.index() < b.index();
    return slices_.flat() ? a.index() < b.index() : slices_.before(a.index(), b.index());
  }

  // Calls body for the items in order: for the least ones that fit into the memory, then for the
  // next ones, and so on.
  template <typename Body>
  void each_by_parts(Body body) const {
    WideItem last(0, -1);
    for (int64_t size = -1; size != 0;) {
      size = least_after(last);
      for (int64_t k = 0; k < size; ++k) body(items_[k]);
      if (size > 0) last = items_[size - 1];
    }
  }

  // Collects the least items after `last`, in order, as many as fit. Returns their number.
  int64_t least_after(const WideItem& last) const {
    int64_t size = 0;
    WideItem end(0, -1);  // the least item that was left out
    const auto add = [&](int64_t i, uint64_t key) {
      const WideItem item(key, i);
      if (last.index() >= 0 && !before(last, item)) return;
      if (end.index() >= 0 && !before(item, end)) return;
      items_[size++] = item;
      if (size < room_) return;
      size = sort_part(size);
      if (size <= room_ / 2) return;
      size = room_ / 2;
      end = items_[size];
    };
    if (slices_.in_a_row()) {
      slices_.each_key(add);
    } else {
      for (int64_t i = 0; i < slices_.count(); ++i) add(i, slices_.first_key(i));
    }
    return sort_part(size);
  }

  // Sorts the items and removes equal ones. Returns the number of items that are left.
  int64_t sort_part(int64_t size) const {
    const auto earlier = [this](const WideItem& a, const WideItem& b) { return before(a, b); };
    const auto same = [this](const WideItem& a, const WideItem& b) { return !before(a, b); };
    std::sort(items_, items_ + size, earlier);
    return std::unique(items_, items_ + size, same) - items_;
  }

  const Slices& slices_;
  bool sorted_;
  bool distinct_;
  int64_t all_ = -1;  // number of items if all fit, else -1
  WideItem* items_ = nullptr;
  WideItem few_[128];
  int64_t room_ = 128;
  NarrowItem* words_ = nullptr;  // used instead of the items, in the same memory
  uint64_t least_ = 0;
};

struct Results {
  Tensor& values;
  Tensor& inverse;
  Tensor& counts;
  bool with_inverse;
  bool with_counts;
};

Status check_types(KernelContext& ctx, const Tensor& self, const Results& results) {
  RL_TRY(check_real(ctx, "self", self));
  RL_TRY(check_same_type(ctx, "self", self, results.values));
  RL_TRY(check_dtype(ctx, "the inverse", results.inverse, DType::Int64));
  return check_dtype(ctx, "the counts", results.counts, DType::Int64);
}

// Resizes all outputs for this number of groups.
Status resize_all(KernelContext& ctx, const Tensor& self, bool flat, size_t dim, int64_t groups,
                  const Results& results) {
  const int32_t none[] = {0};
  const int32_t size[] = {static_cast<int32_t>(groups)};
  Shape shape(self.shape());
  if (!flat) shape.sizes[dim] = size[0];
  RL_TRY(ctx.resize(results.values, flat ? Span<const int32_t>(size, 1) : shape.span()));
  RL_TRY(ctx.resize(results.counts, {results.with_counts ? size : none, 1}));
  if (!results.with_inverse) return ctx.resize(results.inverse, {none, 1});
  if (flat) return ctx.resize_like(results.inverse, self);
  return ctx.resize(results.inverse, {&self.sizes[dim], 1});
}

template <typename T>
void copy_first(const Tensor& self, const Order& order, const Tensor& values) {
  const T* from = self.as<const T>();
  T* to = values.as<T>();
  int64_t last = -1;
  order.each([&](int64_t element, int64_t group) {
    if (group != last) to[group] = from[element];
    last = group;
  });
}

// Copies the first element of each group, if elements are dense and no other results are requested.
void copy_first_ones(const Tensor& self, const Order& order, const Tensor& values) {
  switch (element_size(self.dtype)) {
    case 1:
      return copy_first<uint8_t>(self, order, values);
    case 2:
      return copy_first<uint16_t>(self, order, values);
    case 4:
      return copy_first<uint32_t>(self, order, values);
    default:
      return copy_first<uint64_t>(self, order, values);
  }
}

// The first element of each run of equal elements, if elements are dense and no other results are
// requested, which is the usual case. A NaN is not equal to anything.
template <typename T>
Status first_of_runs(KernelContext& ctx, const Tensor& self, const Results& results) {
  const T* from = self.as<const T>();
  const int64_t n = self.numel;
  int64_t runs = n > 0 ? 1 : 0;
  for (int64_t i = 1; i < n; ++i) runs += !(from[i] == from[i - 1]);
  RL_TRY(resize_all(ctx, self, true, 0, runs, results));
  T* to = results.values.as<T>();
  // Without a branch: an element that is not needed is overwritten by the next one.
  int64_t done = 0;
  for (int64_t i = 0; done < runs; ++i) {
    to[done] = from[i];
    done += i == 0 || !(from[i] == from[i - 1]);
  }
  return {};
}

Status first_of_runs(KernelContext& ctx, const Tensor& self, const Results& results) {
  switch (self.dtype) {
    case DType::Float32:
      return first_of_runs<float>(ctx, self, results);
    case DType::Float64:
      return first_of_runs<double>(ctx, self, results);
    default:
      break;
  }
  switch (element_size(self.dtype)) {
    case 1:
      return first_of_runs<uint8_t>(ctx, self, results);
    case 2:
      return first_of_runs<uint16_t>(ctx, self, results);
    case 4:
      return first_of_runs<uint32_t>(ctx, self, results);
    default:
      return first_of_runs<uint64_t>(ctx, self, results);
  }
}

// For dense elements of one byte: counts how often each byte occurs, which gives all results.
Status unique_bytes(KernelContext& ctx, const Tensor& self, const Results& results) {
  const uint8_t* from = self.as<const uint8_t>();
  constexpr int64_t kTables = 4;  // so that equal neighbours do not wait for each other's counts
  uint32_t counts[kTables][256] = {};
  for (int64_t i = 0; i < self.numel; ++i) ++counts[i % kTables][from[i]];
  const bool is_signed = self.dtype == DType::Int8;
  uint8_t bytes[256];
  uint8_t group_of[256] = {};
  int64_t totals[256];
  int64_t groups = 0;
  for (size_t k = 0; k < 256; ++k) {
    const uint8_t byte = static_cast<uint8_t>(is_signed ? k ^ 0x80 : k);
    const int64_t total =
        int64_t{counts[0][byte]} + counts[1][byte] + counts[2][byte] + counts[3][byte];
    if (total == 0) continue;
    group_of[byte] = static_cast<uint8_t>(groups);
    bytes[groups] = byte;
    totals[groups++] = total;
  }
  RL_TRY(resize_all(ctx, self, true, 0, groups, results));
  std::copy_n(bytes, groups, results.values.as<uint8_t>());
  if (results.with_counts) std::copy_n(totals, groups, results.counts.as<int64_t>());
  if (!results.with_inverse) return {};
  int64_t* inverse = results.inverse.as<int64_t>();
  const bool in_a_row = results.inverse.is_contiguous();
  for (int64_t i = 0; i < self.numel; ++i) {
    inverse[in_a_row ? i : offset_of(results.inverse, i)] = group_of[from[i]];
  }
  return {};
}

Status unique(KernelContext& ctx, const Tensor& self, bool flat, size_t dim, bool sorted,
              const Results& results) {
  RL_TRY(check_types(ctx, self, results));
  bool empty_elsewhere = false;
  for (size_t d = 0; d < self.rank && !flat; ++d) empty_elsewhere |= d != dim && self.sizes[d] == 0;
  if (empty_elsewhere && self.sizes[dim] != 0) {
    return ctx.fail(Code::InvalidArgument,
                    "self has shape %s: its slices along dimension %zu have no elements",
                    ShapeText(self.shape()).text(), dim);
  }
  if (self.numel > INT32_MAX) {
    return ctx.fail(Code::NotSupported, "self has %lld elements, more than a size can be",
                    static_cast<long long>(self.numel));
  }
  const Slices slices(self, flat, dim);
  if (slices.in_a_row() && sorted && element_size(self.dtype) == 1) {
    return unique_bytes(ctx, self, results);
  }
  const bool values_only = slices.in_a_row() && !results.with_inverse && !results.with_counts;
  const bool is_half = is_floating(self.dtype) && element_size(self.dtype) == 2;
  if (values_only && !sorted && !is_half) return first_of_runs(ctx, self, results);
  const Order order(ctx, slices, sorted, values_only);
  const int64_t groups = order.each([](int64_t, int64_t) {});
  RL_TRY(resize_all(ctx, self, flat, dim, groups, results));
  CopyBlock block;
  for (size_t d = 0; d < self.rank && !flat; ++d) {
    if (d != dim) block.push(self.sizes[d], self.strides[d], results.values.strides[d]);
  }
  if (values_only) {
    copy_first_ones(self, order, results.values);
    return {};
  }
  const StridedCopy copy(block, element_size(self.dtype));
  const int64_t stride = flat ? 1 : results.values.strides[dim];
  int64_t last = -1;
  order.each([&](int64_t slice, int64_t group) {
    if (group != last) {
      copy.run(element_at(self, slices.start(slice)), element_at(results.values, group * stride));
      if (results.with_counts) results.counts.as<int64_t>()[group] = 0;
    }
    last = group;
    if (results.with_counts) ++results.counts.as<int64_t>()[group];
    if (results.with_inverse) {
      const int64_t place = flat ? offset_of(results.inverse, slice) : slice;
      results.inverse.as<int64_t>()[place] = group;
    }
  });
  return {};
}

}  // namespace

// _unique2(self, sorted, return_inverse, return_counts, *, out0, out1, out2): the result is always
// sorted.
Status unique2_out(KernelContext& ctx, EValue* const* args) {
  const Results results{args[4]->tensor(), args[5]->tensor(), args[6]->tensor(), args[2]->to_bool(),
                        args[3]->to_bool()};
  return unique(ctx, args[0]->tensor(), true, 0, true, results);
}

// unique_dim(self, dim, sorted, return_inverse, return_counts, *, out0, out1, out2): the result is
// always sorted, and all outputs are computed.
Status unique_dim_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Results results{args[5]->tensor(), args[6]->tensor(), args[7]->tensor(), true, true};
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim));
  return unique(ctx, self, self.rank == 0, dim, true, results);
}

// unique_consecutive(self, return_inverse, return_counts, dim, *, out0, out1, out2)
Status unique_consecutive_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const bool flat = args[3]->is_none() || self.rank == 0;
  const bool all = !args[3]->is_none();
  const Results results{args[4]->tensor(), args[5]->tensor(), args[6]->tensor(),
                        all || args[1]->to_bool(), all || args[2]->to_bool()};
  size_t dim = 0;
  if (all) RL_TRY(wrap_dim(ctx, args[3]->to_int(), self.rank, &dim));
  return unique(ctx, self, flat, dim, false, results);
}

}  // namespace rushlight::kernels
