#include "rushlight/kernels/portable/indexing.h"

#include <cstring>
#include <type_traits>

#include "rushlight/kernels/portable/view.h"

namespace rushlight::kernels {
namespace {

// Integers are computed with as uint64_t, so that what does not fit wraps around.
template <Fold kFold, typename T>
T folded(T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (kFold) {
    case Fold::Add:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case Fold::Multiply:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case Fold::Max:
      return a != a || a > b ? a : b;
    case Fold::Min:
      return a != a || a < b ? a : b;
  }
  return a;
}

template <Fold kFold, typename T>
void fold(const void* from, void* to) {
  T a;
  T b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  a = folded<kFold>(a, b);
  std::memcpy(to, &a, sizeof a);
}

template <Fold kFold>
void fold_bool(const void* from, void* to) {
  uint8_t* target = static_cast<uint8_t*>(to);
  const bool a = *target != 0;
  const bool b = *static_cast<const uint8_t*>(from) != 0;
  const bool any = kFold == Fold::Add || kFold == Fold::Max;
  *target = static_cast<uint8_t>(any ? a || b : a && b);
}

template <Fold kFold, DType kDType>
void fold_half(const void* from, void* to) {
  float a = 0;
  float b = 0;
  convert(to, kDType, &a, DType::Float32, 1);
  convert(from, kDType, &b, DType::Float32, 1);
  a = folded<kFold>(a, b);
  convert(&a, DType::Float32, to, kDType, 1);
}

template <Fold kFold>
FoldElementFn fold_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return fold<kFold, uint8_t>;
    case DType::Int8:
      return fold<kFold, int8_t>;
    case DType::Int16:
      return fold<kFold, int16_t>;
    case DType::Int32:
      return fold<kFold, int32_t>;
    case DType::Int64:
      return fold<kFold, int64_t>;
    case DType::Float32:
      return fold<kFold, float>;
    case DType::Float64:
      return fold<kFold, double>;
    case DType::Float16:
      return fold_half<kFold, DType::Float16>;
    case DType::BFloat16:
      return fold_half<kFold, DType::BFloat16>;
    case DType::Bool:
      return fold_bool<kFold>;
    default:
      return nullptr;
  }
}

}  // namespace

Status check_index_type(KernelContext& ctx, const char* name, const Tensor& index) {
  if (index.dtype == DType::Int64 || index.dtype == DType::Int32 || index.numel == 0) return {};
  return ctx.fail(Code::InvalidArgument, "%s is %s, but must be int64 or int32", name,
                  dtype_name(index.dtype));
}

Status index_out_of_range(KernelContext& ctx, int64_t index, size_t dim, int64_t size,
                          int64_t lowest) {
  return ctx.fail(Code::InvalidArgument,
                  "index %lld is out of bounds for dimension %zu, which takes %lld to %lld",
                  static_cast<long long>(index), dim, static_cast<long long>(lowest),
                  static_cast<long long>(size - 1));
}

FoldElementFn fold_element(Fold fold, DType dtype) {
  switch (fold) {
    case Fold::Add:
      return fold_of<Fold::Add>(dtype);
    case Fold::Multiply:
      return fold_of<Fold::Multiply>(dtype);
    case Fold::Max:
      return fold_of<Fold::Max>(dtype);
    case Fold::Min:
      return fold_of<Fold::Min>(dtype);
  }
  return nullptr;
}

}  // namespace rushlight::kernels
