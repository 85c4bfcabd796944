// Attention as one operator: softmax(query key^T * scale + mask) value, block by block.
//
// For a block of queries, one block of keys is processed after the other. When the maximum grows,
// the sum of the exponentials and the weighted sum of the values are corrected, so that no whole
// row of scores is stored (Dao et al., FlashAttention, 2022, after Milakov and Gimelshein, Online
// normalizer calculation for softmax, 2018).
#include "rushlight/kernels/portable/linalg/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/linalg/gemm.h"
#include "rushlight/kernels/portable/linalg/matmul_any.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/loops/reduction/softmax.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/norm.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kQueries = 64;  // queries of a block
constexpr int64_t kKeys = 256;
constexpr int64_t kProductBytes = 32 << 10;  // memory for panels of a block's products
constexpr int64_t kLeastProductBytes = 3200;
constexpr int64_t kStackFloats = 3072;  // memory on the stack, if there is less scratch

// The offset of the tensor's matrix for a matrix of `out`. Heads are shared, and sizes of 1 repeat.
int64_t matrix_offset(const Tensor& t, const Tensor& out, const int64_t* index) {
  int64_t offset = 0;
  for (size_t k = 3; k <= t.rank; ++k) {
    const int64_t size = t.sizes[t.rank - k];
    const int64_t whole = out.sizes[out.rank - k];
    const int64_t i = index[out.rank - k] * size / whole;
    offset += i * t.strides[t.rank - k];
  }
  return offset;
}

// The stride of one of the last two dimensions; 0 if the tensor repeats along it.
int64_t stride_of(const Tensor& t, size_t from_end) {
  if (t.rank < from_end || t.sizes[t.rank - from_end] == 1) return 0;
  return t.strides[t.rank - from_end];
}

// The number of queries and keys in a block, and the memory that this needs.
struct BlockSizes {
  int64_t queries;
  int64_t keys;
  bool converts;  // keys and values are converted to the computing type

  int64_t elements(const Attention& a) const {
    const int64_t block = queries * (a.width() + a.value_width() + keys);
    return block + (converts ? keys * (a.width() + a.value_width()) : 0);
  }
};

template <typename T>
class Worker {
 public:
  Worker(const Attention& attention, const BlockSizes& sizes, const Workspace& memory)
      : a_(attention),
        sizes_(sizes),
        work_(memory.context(), memory.data() + own_floats(), memory.size() - own_floats()),
        mask_(attention.mask != nullptr ? *attention.mask : *attention.query, kType) {
    query_ = reinterpret_cast<T*>(memory.data());
    sums_ = query_ + sizes.queries * a_.width();
    scores_ = sums_ + sizes.queries * a_.value_width();
    key_ = scores_ + sizes.queries * sizes.keys;
    value_ = key_ + sizes.keys * a_.width();
  }

  // Computes n queries of the matrix that `index` selects.
  void run(const int64_t* index, int64_t first, int64_t n) {
    index_ = index;
    first_ = first;
    n_ = n;
    read_rows(*a_.query, a_.quantized[0], first, n, query_);
    for (int64_t i = 0; i < n * a_.width(); ++i) query_[i] *= static_cast<T>(a_.scale);
    std::fill(sums_, sums_ + n * a_.value_width(), T{0});
    std::fill(max_, max_ + n, -std::numeric_limits<double>::infinity());
    std::fill(total_, total_ + n, 0.0);
    const int64_t end = a_.causal ? std::min(a_.keys(), a_.start + first + n) : a_.keys();
    for (int64_t k = 0; k < end; k += sizes_.keys) block(k, std::min(sizes_.keys, end - k));
    store_results();
  }

 private:
  static constexpr DType kType = sizeof(T) == sizeof(float) ? DType::Float32 : DType::Float64;
  static constexpr size_t kRow = sizeof(T) == sizeof(float) ? 0 : 1;  // row of the loop tables

  // The memory of this object, in floats. The products get the rest.
  int64_t own_floats() const {
    return (sizes_.elements(a_) * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 16;
  }

  // Copies the last two dimensions of a tensor to a row-major matrix.
  static CopyBlock matrix(const Tensor& t, int64_t rows, int64_t cols) {
    CopyBlock block;
    block.push(rows, t.strides[t.rank - size_t{2}], cols);
    block.push(cols, t.strides[t.rank - size_t{1}], 1);
    return block;
  }

  // Rows of keys or values in the computing type.
  struct Rows {
    const T* data;
    int64_t row;
    int64_t col;
  };
  Rows rows_of(const Tensor& t, const RowQuantization& quantized, int64_t first, int64_t n,
               T* buffer) const {
    const int64_t row = t.strides[t.rank - size_t{2}];
    if (!sizes_.converts) {
      const int64_t offset = matrix_offset(t, *a_.out, index_) + first * row;
      return {t.as<const T>() + offset, row, t.strides[t.rank - size_t{1}]};
    }
    read_rows(t, quantized, first, n, buffer);
    return {buffer, t.sizes[t.rank - size_t{1}], 1};
  }

  // Converts rows of a tensor to the computing type, one after the other.
  void read_rows(const Tensor& t, const RowQuantization& quantized, int64_t first, int64_t n,
                 T* to) const {
    const int64_t width = t.sizes[t.rank - size_t{1}];
    const int64_t offset = matrix_offset(t, *a_.out, index_) + first * stride_of(t, 2);
    converting_copy(element_at(t, offset), t.dtype, to, kType, matrix(t, n, width));
    if (quantized.scales == nullptr) return;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t of_row = (offset + i * stride_of(t, 2)) / width;
      const T zero = quantized.zeros[of_row];
      const T scale = quantized.scales[of_row];
      for (int64_t j = 0; j < width; ++j) to[i * width + j] = (to[i * width + j] - zero) * scale;
    }
  }

  // c = a b, or c += a b. Element (k, j) of b is at k * b_row + j * b_col.
  void multiply_into(const T* a, int64_t k, const T* b, int64_t b_row, int64_t b_col, int64_t n,
                     T* c, bool add) const {
    if constexpr (kRow == 0) {
      Product p;
      p.m = n_;
      p.n = n;
      p.k = k;
      p.a = {a, k, 1, nullptr, nullptr};
      p.b = {b, b_col, b_row, nullptr, nullptr};
      p.c = c;
      p.c_row = n;
      if (add) p.add = c;
      p.add_row = n;
      p.add_col = 1;
      multiply(work_, p);
    } else {
      AnyProduct p;
      p.dtype = kType;
      p.m = n_;
      p.n = n;
      p.k = k;
      p.a = {a, k, 1};
      p.b = {b, b_row, b_col};
      p.out = {c, n, 1};
      if (add) p.add = p.out;
      multiply_any(work_, p);
    }
  }

  // Processes the keys first..first + n - 1.
  void block(int64_t first, int64_t n) {
    const Rows key = rows_of(*a_.key, a_.quantized[1], first, n, key_);
    multiply_into(query_, a_.width(), key.data, key.col, key.row, n, scores_, false);
    for (int64_t i = 0; i < n_; ++i) {
      T* row = scores_ + i * n;
      if (a_.causal) {
        const int64_t seen = std::min(std::max<int64_t>(a_.start + first_ + i + 1 - first, 0), n);
        std::fill(row + seen, row + n, -std::numeric_limits<T>::infinity());
      }
      if (a_.mask != nullptr) mask_row(row, first_ + i, first, n);
      weigh(row, i, n);
    }
    const Rows value = rows_of(*a_.value, a_.quantized[2], first, n, value_);
    multiply_into(scores_, n, value.data, value.row, value.col, a_.value_width(), sums_, true);
  }

  void mask_row(T* row, int64_t query, int64_t first, int64_t n) {
    const Tensor& mask = *a_.mask;
    const int64_t offset = matrix_offset(mask, *a_.out, index_) + query * stride_of(mask, 2);
    const int64_t stride = stride_of(mask, 1);
    for (int64_t done = 0; done < n; done += static_cast<int64_t>(kChunk)) {
      const int64_t count = std::min(static_cast<int64_t>(kChunk), n - done);
      const T* m = static_cast<const T*>(
          mask_.read(offset + (first + done) * stride, stride, static_cast<size_t>(count)));
      T* x = row + done;
      if (mask.dtype == DType::Bool) {
        constexpr T kBlocked = -std::numeric_limits<T>::infinity();
        for (int64_t j = 0; j < count; ++j) x[j] = m[j] != T(0) ? x[j] : kBlocked;
      } else {
        for (int64_t j = 0; j < count; ++j) x[j] += m[j];
      }
    }
  }

  // Changes the scores of one query to weights, relative to the greatest score so far.
  void weigh(T* row, int64_t i, int64_t n) {
    const double before = max_[i];
    const size_t count = static_cast<size_t>(n);
    reduce_max().row[kRow](row, count, &max_[i], nullptr);
    if (max_[i] == -std::numeric_limits<double>::infinity()) {  // every key so far is masked
      std::fill(row, row + n, T{0});
      return;
    }
    const double sum = softmax_loops().sum_exp[kRow](row, count, max_[i], row);
    const double correction = before == max_[i] ? 1.0 : std::exp(before - max_[i]);
    total_[i] = total_[i] * correction + sum;
    if (correction == 1.0) return;
    const int64_t width = a_.value_width();
    softmax_loops().scale[kRow](sums_ + i * width, static_cast<size_t>(width), correction);
  }

  void store_results() {
    const Tensor& out = *a_.out;
    const int64_t width = a_.value_width();
    for (int64_t i = 0; i < n_; ++i) {
      // A query that sees no key gives zeros.
      const double factor = total_[i] == 0.0 ? 0.0 : 1.0 / total_[i];
      softmax_loops().scale[kRow](sums_ + i * width, static_cast<size_t>(width), factor);
    }
    CopyBlock block;
    block.push(n_, width, stride_of(out, 2));
    block.push(width, 1, stride_of(out, 1));
    const int64_t to = matrix_offset(out, out, index_) + first_ * stride_of(out, 2);
    converting_copy(sums_, kType, element_at(out, to), out.dtype, block);
  }

  const Attention& a_;
  BlockSizes sizes_;
  Workspace work_;
  RowReader mask_;
  T* query_;
  T* sums_;    // weighted sums of values
  T* scores_;  // scores, which become weights
  T* key_;
  T* value_;
  const int64_t* index_ = nullptr;
  int64_t first_ = 0;
  int64_t n_ = 0;
  double max_[kQueries];
  double total_[kQueries];
};

Status check_shapes(KernelContext& ctx, const Attention& a, bool shared_heads, Shape* shape) {
  const Tensor* tensors[] = {a.query, a.key, a.value};
  const char* names[] = {"query", "key", "value"};
  for (int k = 0; k < 3; ++k) {
    RL_TRY(check_floating(ctx, names[k], *tensors[k]));
    RL_TRY(check_same_type(ctx, names[k], *tensors[k], *a.out));
    if (tensors[k]->rank < 2) {
      return ctx.fail(Code::InvalidArgument, "%s has %u dimensions, but must have at least two",
                      names[k], static_cast<unsigned>(tensors[k]->rank));
    }
    shape->rank = std::max<size_t>(shape->rank, tensors[k]->rank);
  }
  bool fits = Attention::size(*a.key, 1) == a.width() && Attention::size(*a.value, 2) == a.keys();
  for (size_t d = 3; d <= shape->rank; ++d) {
    int32_t& size = shape->sizes[shape->rank - d];
    size = a.query->rank < d ? 1 : a.query->sizes[a.query->rank - d];
    const bool heads = d == 3 && shared_heads;
    for (int k = 1; k < 3; ++k) {
      const int32_t own = tensors[k]->rank < d ? 1 : tensors[k]->sizes[tensors[k]->rank - d];
      if (heads) {
        fits = fits && own > 0 && size % own == 0;
      } else {
        fits = fits && (own == size || own == 1 || size == 1);
        if (size == 1) size = own;
      }
    }
  }
  shape->sizes[shape->rank - 2] = static_cast<int32_t>(a.length());
  shape->sizes[shape->rank - 1] = static_cast<int32_t>(a.value_width());
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "query has shape %s, key %s and value %s, which do not fit one another%s",
                  ShapeText(a.query->shape()).text(), ShapeText(a.key->shape()).text(),
                  ShapeText(a.value->shape()).text(),
                  shared_heads ? "" : "; heads are shared only with enable_gqa");
}

template <typename T>
Status run(KernelContext& ctx, const Attention& a) {
  const Workspace scratch(ctx);
  alignas(64) float stack[kStackFloats];
  const bool little = scratch.size() < kStackFloats;
  const Workspace memory(ctx, little ? stack : scratch.data(),
                         little ? kStackFloats : scratch.size());
  const int shares_count = memory.shares();
  const int64_t bytes = memory.size() / shares_count * static_cast<int64_t>(sizeof(float));
  const bool converts = element_size(a.key->dtype) != sizeof(T);
  BlockSizes sizes{std::min(kQueries, a.length()), std::min(kKeys, std::max<int64_t>(a.keys(), 1)),
                   converts};
  const auto needed = [&](int64_t rest) {
    return sizes.elements(a) * static_cast<int64_t>(sizeof(T)) + 64 + rest;
  };
  while (needed(kProductBytes) > bytes && (sizes.keys > 16 || sizes.queries > 4)) {
    int64_t& greater = sizes.keys > 4 * sizes.queries ? sizes.keys : sizes.queries;
    greater = std::max<int64_t>(greater / 2, 1);
  }
  while (needed(kLeastProductBytes) > bytes && sizes.keys * sizes.queries > 1) {
    int64_t& greater = sizes.keys > sizes.queries ? sizes.keys : sizes.queries;
    greater /= 2;
  }
  if (needed(kLeastProductBytes) > bytes) {
    return ctx.fail(Code::MemoryAllocationFailed,
                    "heads of %lld and %lld elements need %lld bytes of scratch memory",
                    static_cast<long long>(a.width()), static_cast<long long>(a.value_width()),
                    static_cast<long long>(needed(kLeastProductBytes) * shares_count));
  }
  const int64_t blocks = (a.length() + sizes.queries - 1) / sizes.queries;
  const int64_t matrices = a.out->numel / (a.length() * a.value_width());
  const int64_t each = sizes.queries * a.keys() * (a.width() + a.value_width()) + 1;
  Shares shares(shares_count);
  ctx.parallel(matrices * blocks, kProductGrain / each + 1, [&](int64_t begin, int64_t end) {
    const int share = shares.take();
    Worker<T> worker(a, sizes, Workspace(memory, share, shares_count));
    for (int64_t item = begin; item < end; ++item) {
      int64_t index[kMaxRank];
      int64_t rest = item / blocks;
      for (size_t d = a.out->rank - size_t{2}; d-- > 0;) {
        index[d] = rest % a.out->sizes[d];
        rest /= a.out->sizes[d];
      }
      const int64_t first = item % blocks * sizes.queries;
      worker.run(index, first, std::min(sizes.queries, a.length() - first));
    }
    shares.give(share);
  });
  return {};
}

}  // namespace

Status check_attention_mask(KernelContext& ctx, const Attention& a) {
  const Tensor& mask = *a.mask;
  if (a.causal) {
    return ctx.fail(Code::InvalidArgument, "is_causal is true, but there is an attn_mask as well");
  }
  if (mask.dtype != DType::Bool) RL_TRY(check_floating(ctx, "attn_mask", mask));
  bool fits = mask.rank <= a.out->rank;
  for (size_t d = 1; fits && d <= mask.rank; ++d) {
    const int64_t whole = d == 1 ? a.keys() : a.out->sizes[a.out->rank - d];
    const int64_t own = mask.sizes[mask.rank - d];
    fits = own == 1 || own == whole;
  }
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "attn_mask has shape %s, which does not broadcast to the scores of %lld queries "
                  "and %lld keys",
                  ShapeText(mask.shape()).text(), static_cast<long long>(a.length()),
                  static_cast<long long>(a.keys()));
}

Status run_attention(KernelContext& ctx, const Attention& a) {
  if (a.out->numel == 0) return {};
  return a.out->dtype == DType::Float64 ? run<double>(ctx, a) : run<float>(ctx, a);
}

// scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, *, scale,
//                              enable_gqa, out)
Status scaled_dot_product_attention_out(KernelContext& ctx, EValue* const* args) {
  Attention a{};
  a.query = &args[0]->tensor();
  a.key = &args[1]->tensor();
  a.value = &args[2]->tensor();
  a.mask = args[3]->tensor_or_null();
  Tensor& out = args[8]->tensor();
  a.out = &out;
  a.causal = args[5]->to_bool();
  if (args[4]->to_double() != 0.0) {
    return ctx.fail(Code::NotSupported, "dropout_p is %g, but must be 0: no random numbers here",
                    args[4]->to_double());
  }
  Shape shape;
  RL_TRY(check_shapes(ctx, a, args[7]->to_bool(), &shape));
  RL_TRY(ctx.resize(out, shape.span()));
  if (a.mask != nullptr) RL_TRY(check_attention_mask(ctx, a));
  a.scale = double_or(*args[6], 1.0 / std::sqrt(static_cast<double>(a.width())));
  return run_attention(ctx, a);
}

}  // namespace rushlight::kernels
