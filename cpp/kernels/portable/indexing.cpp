#include "rushlight/kernels/portable/indexing.h"

#include <cstring>
#include <type_traits>

#include "rushlight/kernels/portable/view.h"

namespace rushlight::kernels {
namespace {

template <typename T>
void add(const void* from, void* to) {
  T a;
  T b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  if constexpr (std::is_integral_v<T>) {
    // Sums wrap around.
    a = static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    a += b;
  }
  std::memcpy(to, &a, sizeof a);
}

void add_bool(const void* from, void* to) {
  uint8_t* target = static_cast<uint8_t*>(to);
  *target = static_cast<uint8_t>(*target != 0 || *static_cast<const uint8_t*>(from) != 0);
}

template <DType kDType>
void add_short_float(const void* from, void* to) {
  float a = 0;
  float b = 0;
  convert(to, kDType, &a, DType::Float32, 1);
  convert(from, kDType, &b, DType::Float32, 1);
  a += b;
  convert(&a, DType::Float32, to, kDType, 1);
}

}  // namespace

Status check_index_type(KernelContext& ctx, const char* name, const Tensor& index) {
  if (index.dtype == DType::Int64 || index.dtype == DType::Int32) return {};
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

AddElementFn add_element(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return add<uint8_t>;
    case DType::Int8:
      return add<int8_t>;
    case DType::Int16:
      return add<int16_t>;
    case DType::Int32:
      return add<int32_t>;
    case DType::Int64:
      return add<int64_t>;
    case DType::Float32:
      return add<float>;
    case DType::Float64:
      return add<double>;
    case DType::Float16:
      return add_short_float<DType::Float16>;
    case DType::BFloat16:
      return add_short_float<DType::BFloat16>;
    case DType::Bool:
      return add_bool;
    default:
      return nullptr;
  }
}

}  // namespace rushlight::kernels
