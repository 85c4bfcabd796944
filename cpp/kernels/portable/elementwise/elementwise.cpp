#include "rushlight/kernels/portable/elementwise/elementwise.h"

#include <algorithm>
#include <atomic>

#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

constexpr size_t kBufferBytes = kChunk * sizeof(uint64_t);

// Converts and broadcasts one operand for the loop.
class Input {
 public:
  void init(const Operand& operand, const Tensor& out);
  // True if the loop can read the whole operand in place.
  bool direct() const { return direct_; }
  const uint8_t* data() const { return static_cast<const uint8_t*>(reader_.data()); }
  void seek(int64_t position) {
    if (!constant_) reader_.seek(position);
  }
  // The next n elements in the type of the loop.
  const void* next(size_t n, void* raw);

 private:
  void fill_constant(const void* value, DType from, DType via);

  StridedReader reader_;
  DType from_ = DType::Float32;
  DType as_ = DType::Float32;
  bool constant_ = false;
  bool direct_ = false;
  alignas(64) uint8_t buffer_[kBufferBytes];
};

template <typename T>
void repeat(void* buffer) {
  T* items = static_cast<T*>(buffer);
  std::fill(items + 1, items + kChunk, items[0]);
}

void repeat_first(void* buffer, size_t size) {
  switch (size) {
    case 1:
      return repeat<uint8_t>(buffer);
    case 2:
      return repeat<uint16_t>(buffer);
    case 4:
      return repeat<uint32_t>(buffer);
    default:
      return repeat<uint64_t>(buffer);
  }
}

void Input::init(const Operand& operand, const Tensor& out) {
  as_ = operand.as;
  if (operand.tensor == nullptr) {
    const EValue& value = *operand.scalar;
    if (value.tag == Tag::Double) return fill_constant(&value.d, DType::Float64, operand.via);
    return fill_constant(&value.i, DType::Int64, operand.via);
  }
  from_ = operand.tensor->dtype;
  reader_.init(broadcast_view(*operand.tensor, out), out);
  if (reader_.constant()) return fill_constant(reader_.data(), from_, operand.via);
  direct_ = reader_.flat() && from_ == as_;
}

void Input::fill_constant(const void* value, DType from, DType via) {
  alignas(8) uint8_t item[16];
  constant_ = true;
  convert(value, from, item, via, 1);
  convert(item, via, buffer_, as_, 1);
  repeat_first(buffer_, element_size(as_));
}

const void* Input::next(size_t n, void* raw) {
  if (constant_) return buffer_;
  if (from_ == as_) return reader_.next(n, buffer_);
  convert(reader_.next(n, raw), from_, buffer_, as_, n);
  return buffer_;
}

// Computes the elements begin..end - 1 of `out`.
void run_chunks(const Tensor& out, int64_t begin, int64_t end, DType result, Input* inputs,
                size_t n, ElementwiseFn fn, LoopArgs& args) {
  alignas(64) uint8_t raw[kBufferBytes];
  alignas(64) uint8_t results[kBufferBytes];
  const bool same = out.dtype == result;
  const size_t total = static_cast<size_t>(end - begin);
  const size_t out_size = element_size(out.dtype);
  const void* in[kMaxOperands] = {};
  uint8_t* dst = out.as<uint8_t>() + static_cast<size_t>(begin) * out_size;
  for (size_t done = 0; done < total;) {
    const size_t count = std::min(kChunk, total - done);
    for (size_t k = 0; k < n; ++k) in[k] = inputs[k].next(count, raw);
    fn(in, same ? dst : results, count, &args);
    if (!same) convert(results, result, dst, out.dtype, count);
    dst += count * out_size;
    done += count;
  }
}

Status check_operands(KernelContext& ctx, const Tensor& out, DType result, const Operand* in,
                      size_t n) {
  for (size_t k = 0; k < n; ++k) {
    if (in[k].tensor == nullptr || can_convert(in[k].tensor->dtype, in[k].as)) continue;
    return ctx.fail(Code::NotSupported, "input %zu is %s, which this operator does not support", k,
                    dtype_name(in[k].tensor->dtype));
  }
  if (can_convert(result, out.dtype)) return {};
  return ctx.fail(Code::NotSupported, "out is %s, which this operator does not support",
                  dtype_name(out.dtype));
}

}  // namespace

Status no_loop(KernelContext& ctx, DType dtype) {
  return ctx.fail(Code::NotSupported, "%s is not supported by this operator", dtype_name(dtype));
}

Status run_elementwise(KernelContext& ctx, Tensor& out, DType result, const Operand* in, size_t n,
                       ElementwiseFn fn, const LoopArgs& args) {
  RL_TRY(check_operands(ctx, out, result, in, n));
  const Tensor* tensors[kMaxOperands];
  size_t n_tensors = 0;
  for (size_t k = 0; k < n; ++k) {
    if (in[k].tensor != nullptr) tensors[n_tensors++] = in[k].tensor;
  }
  Shape shape;
  RL_TRY(broadcast_shape(ctx, tensors, n_tensors, &shape));
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};

  Input inputs[kMaxOperands];
  bool direct = out.dtype == result;
  for (size_t k = 0; k < n; ++k) {
    inputs[k].init(in[k], out);
    direct = direct && inputs[k].direct();
  }
  std::atomic<bool> zero_division{false};
  ctx.parallel(out.numel, kGrain, [&](int64_t begin, int64_t end) {
    LoopArgs own = args;
    if (direct) {
      const void* pointers[kMaxOperands] = {};
      for (size_t k = 0; k < n; ++k) {
        pointers[k] = inputs[k].data() + begin * static_cast<int64_t>(element_size(in[k].as));
      }
      uint8_t* dst = out.as<uint8_t>() + begin * static_cast<int64_t>(element_size(out.dtype));
      fn(pointers, dst, static_cast<size_t>(end - begin), &own);
    } else if (begin == 0 && end == out.numel) {
      run_chunks(out, begin, end, result, inputs, n, fn, own);
    } else {
      Input parts[kMaxOperands];  // each thread has its own buffers
      for (size_t k = 0; k < n; ++k) {
        parts[k].init(in[k], out);
        parts[k].seek(begin);
      }
      run_chunks(out, begin, end, result, parts, n, fn, own);
    }
    if (own.zero_division) zero_division.store(true, std::memory_order_relaxed);
  });
  if (!zero_division.load(std::memory_order_relaxed)) return {};
  return ctx.fail(Code::InvalidArgument, "an integer is divided by zero");
}

}  // namespace rushlight::kernels
