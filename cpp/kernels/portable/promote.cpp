#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

enum class Kind { Bool, Integral, Floating };

Kind kind_of(DType d) {
  if (is_floating(d)) return Kind::Floating;
  return d == DType::Bool ? Kind::Bool : Kind::Integral;
}

int promote_or(int a, int b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return static_cast<int>(promote(static_cast<DType>(a), static_cast<DType>(b)));
}

// `higher` decides the type, unless `lower` is of a higher kind. Tensors with dimensions rank
// before 0-d tensors, and these before scalars.
int combine(int higher, int lower) {
  if (higher < 0) return lower;
  if (lower < 0) return higher;
  const DType high = static_cast<DType>(higher);
  const DType low = static_cast<DType>(lower);
  if (is_floating(high)) return higher;
  if (high == DType::Bool || is_floating(low)) return promote_or(higher, lower);
  return higher;
}

DType promote_integral(DType a, DType b) {
  const DType wide = element_size(a) >= element_size(b) ? a : b;
  const DType other = wide == a ? b : a;
  // uint8 is the only unsigned type that can be combined with signed types: with int8 it gives
  // int16.
  if (element_size(a) == element_size(b) && wide == DType::UInt8) {
    return other == DType::Int8 ? DType::Int16 : wide;
  }
  if (wide == DType::Int8 && other == DType::UInt8) return DType::Int16;
  return wide;
}

}  // namespace

bool is_real(DType d) {
  switch (d) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Float16:
    case DType::Float32:
    case DType::Float64:
    case DType::Bool:
    case DType::BFloat16:
      return true;
    default:
      return false;
  }
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const Kind kind_a = kind_of(a);
  const Kind kind_b = kind_of(b);
  if (kind_a != kind_b) return kind_a > kind_b ? a : b;
  if (kind_a == Kind::Integral) return promote_integral(a, b);
  if (element_size(a) != element_size(b)) return element_size(a) > element_size(b) ? a : b;
  return DType::Float32;  // float16 combined with bfloat16
}

bool can_cast(DType from, DType to) {
  if (is_floating(from) && !is_floating(to)) return false;
  return from == DType::Bool || to != DType::Bool;
}

DType scalar_dtype(const EValue& value) {
  if (value.tag == Tag::Double) return DType::Float32;
  return value.tag == Tag::Bool ? DType::Bool : DType::Int64;
}

ResultType& ResultType::add(const Tensor& tensor) {
  int& slot = tensor.rank > 0 ? dims_ : zero_dim_;
  slot = promote_or(slot, static_cast<int>(tensor.dtype));
  return *this;
}

ResultType& ResultType::add_scalar(const EValue& value) {
  scalars_ = promote_or(scalars_, static_cast<int>(scalar_dtype(value)));
  return *this;
}

DType ResultType::get() const {
  return static_cast<DType>(combine(dims_, combine(zero_dim_, scalars_)));
}

DType compute_dtype(DType d) {
  switch (d) {
    case DType::Float64:
    case DType::Int64:
      return d;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return DType::Float32;
    default:
      return DType::Int32;
  }
}

ComputeType compute_index(DType compute) {
  switch (compute) {
    case DType::Float32:
      return kF32;
    case DType::Float64:
      return kF64;
    case DType::Int64:
      return kI64;
    case DType::Bool:
      return kBool;
    default:
      return kI32;
  }
}

DType to_floating(DType d) { return is_floating(d) ? d : DType::Float32; }

Status check_real(KernelContext& ctx, const char* name, const Tensor& tensor) {
  if (is_real(tensor.dtype)) return {};
  return ctx.fail(Code::NotSupported,
                  "%s is %s; supported are bool, uint8, int8 to int64, float16, bfloat16, float32 "
                  "and float64",
                  name, dtype_name(tensor.dtype));
}

Status check_floating(KernelContext& ctx, const char* name, const Tensor& tensor) {
  if (is_floating(tensor.dtype)) return {};
  return ctx.fail(Code::NotSupported, "%s is %s, but must be floating", name,
                  dtype_name(tensor.dtype));
}

Status check_castable(KernelContext& ctx, DType result, const Tensor& out) {
  if (is_real(out.dtype) && can_cast(result, out.dtype)) return {};
  return ctx.fail(Code::InvalidArgument, "the result is %s, which an out of type %s cannot hold",
                  dtype_name(result), dtype_name(out.dtype));
}

}  // namespace rushlight::kernels
