// What a mask selects: the coordinates of its true elements (nonzero), or the elements of another
// tensor at these positions (masked_select).
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

// A row-major tensor of this shape without data. It sets the order in which a reader reads.
struct RowMajor {
  RowMajor(const Shape& shape, int64_t numel) : sizes(shape) {
    for (size_t d = 0; d < kMaxRank; ++d) dims[d] = static_cast<uint8_t>(d);
    tensor.rank = static_cast<uint8_t>(shape.rank);
    tensor.sizes = sizes.sizes;
    tensor.dim_order = dims;
    tensor.numel = numel;
  }
  RowMajor(const RowMajor&) = delete;
  RowMajor& operator=(const RowMajor&) = delete;

  Shape sizes;
  uint8_t dims[kMaxRank];
  Tensor tensor;
};

// Reads a tensor as bools in row-major order, one chunk at a time.
class TruthReader {
 public:
  explicit TruthReader(const Tensor& tensor)
      : tensor_(&tensor), order_(Shape(tensor.shape()), tensor.numel) {
    reader_.init(broadcast_view(tensor, order_.tensor), order_.tensor);
  }
  // The next n <= kChunk elements, each 0 or 1.
  const uint8_t* next(size_t n) {
    const void* raw = reader_.next(n, raw_);
    convert(raw, tensor_->dtype, truth_, DType::Bool, n);
    return truth_;
  }

 private:
  const Tensor* tensor_;
  RowMajor order_;
  StridedReader reader_;
  alignas(16) uint8_t raw_[kChunk * sizeof(uint64_t)];
  uint8_t truth_[kChunk];
};

// Runs `body(row-major position)` for every nonzero element.
template <typename Body>
void for_each_nonzero(const Tensor& self, Body body) {
  if (self.numel == 0) return;
  TruthReader reader(self);
  for (int64_t done = 0; done < self.numel;) {
    const int64_t n = std::min<int64_t>(kChunk, self.numel - done);
    const uint8_t* truth = reader.next(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      if (truth[i] != 0) body(done + i);
    }
    done += n;
  }
}

}  // namespace

// nonzero(self, *, out): coordinates, [number of true elements, rank of self].
Status nonzero_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[1]->tensor();
  RL_TRY(check_dtype(ctx, "out", out, DType::Int64));
  RL_TRY(check_rank(ctx, "out", out, 2));
  if (!can_convert(self.dtype, DType::Bool) || element_size(self.dtype) > 8) {
    return ctx.fail(Code::NotSupported, "self is %s, which nonzero does not support",
                    dtype_name(self.dtype));
  }
  int64_t count = 0;
  for_each_nonzero(self, [&](int64_t) { ++count; });
  Shape shape;
  if (!shape.push(count) || !shape.push(self.rank)) {
    return ctx.fail(Code::InvalidArgument, "self has too many nonzero elements");
  }
  RL_TRY(ctx.resize(out, shape.span()));
  int64_t row = 0;
  for_each_nonzero(self, [&](int64_t number) {
    for (size_t d = self.rank; d-- > 0;) {
      out.as<int64_t>()[row * out.strides[0] + static_cast<int64_t>(d) * out.strides[1]] =
          number % self.sizes[d];
      number /= self.sizes[d];
    }
    ++row;
  });
  return {};
}

namespace {

// Packs the elements at true positions of the mask one after the other. It writes at most n
// elements, and has no branch on the mask.
template <typename T>
size_t pack(const void* items, const uint8_t* mask, size_t n, void* packed) {
  const T* from = static_cast<const T*>(items);
  T* to = static_cast<T*>(packed);
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    to[count] = from[i];
    count += mask[i] != 0;
  }
  return count;
}

size_t pack_of_size(size_t size, const void* items, const uint8_t* mask, size_t n, void* packed) {
  switch (size) {
    case 1:
      return pack<uint8_t>(items, mask, n, packed);
    case 2:
      return pack<uint16_t>(items, mask, n, packed);
    case 4:
      return pack<uint32_t>(items, mask, n, packed);
    case 8:
      return pack<uint64_t>(items, mask, n, packed);
    default:
      return pack<Bytes16>(items, mask, n, packed);
  }
}

// Reads both in row-major order, broadcast to `common`, which has `total` elements.
void select(const Tensor& self, const Tensor& mask, const Shape& common, int64_t total,
            Tensor& out) {
  RowMajor shaped(common, total);
  StridedReader items;
  StridedReader flags;
  items.init(broadcast_view(self, shaped.tensor), shaped.tensor);
  flags.init(broadcast_view(mask, shaped.tensor), shaped.tensor);
  const size_t size = element_size(self.dtype);
  alignas(16) uint8_t raw[kChunk * sizeof(Bytes16)];
  alignas(16) uint8_t packed[kChunk * sizeof(Bytes16)];
  uint8_t truth[kChunk];
  uint8_t* to = out.as<uint8_t>();
  for (int64_t done = 0; done < total;) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(kChunk, total - done));
    const void* here = items.next(n, raw);
    const uint8_t* places = static_cast<const uint8_t*>(flags.next(n, truth));
    const size_t count = pack_of_size(size, here, places, n, packed);
    std::memcpy(to, packed, count * size);
    to += count * size;
    done += static_cast<int64_t>(n);
  }
}

}  // namespace

// masked_select(self, mask, *, out)
Status masked_select_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& mask = args[1]->tensor();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_dtype(ctx, "mask", mask, DType::Bool));
  RL_TRY(check_same_type(ctx, "self", self, out));
  const Tensor* tensors[] = {&self, &mask};
  Shape common;
  RL_TRY(broadcast_shape(ctx, tensors, 2, &common));
  int64_t total = 0;
  if (!count_elements(common.span(), &total)) {
    return ctx.fail(Code::InvalidArgument, "self and mask broadcast to too great a shape");
  }
  int64_t count = 0;
  for (int64_t i = 0; i < mask.numel; ++i) count += mask.as<uint8_t>()[i] != 0;
  if (mask.numel > 0) count *= total / mask.numel;
  if (count > INT32_MAX) return ctx.fail(Code::InvalidArgument, "mask is true too often");
  const int32_t sizes[] = {static_cast<int32_t>(count)};
  RL_TRY(ctx.resize(out, {sizes, 1}));
  if (count > 0) select(self, mask, common, total, out);
  return {};
}

}  // namespace rushlight::kernels
