// Conversions without a loop of their own, in builds that leave dtypes out.
#include <cstring>

#include "rushlight/kernel/loops/half.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

// A number in each form that it may be stored from: each is rounded once.
struct Number {
  double wide = 0;
  float narrow = 0;
  int64_t integer = 0;

  template <typename T>
  void set(T x) {
    wide = static_cast<double>(x);
    narrow = static_cast<float>(x);
    integer = static_cast<int64_t>(x);
  }
};

template <typename T>
T read(const uint8_t* in) {
  T x;
  std::memcpy(&x, in, sizeof x);
  return x;
}

template <typename T>
void write(uint8_t* out, T x) {
  std::memcpy(out, &x, sizeof x);
}

bool load(const uint8_t* in, DType dtype, Number* number) {
  switch (dtype) {
    case DType::Float64:
      number->set(read<double>(in));
      return true;
    case DType::Float32:
      number->set(read<float>(in));
      return true;
    case DType::Float16:
      number->set(plain::widen(read<plain::Half>(in)));
      return true;
    case DType::BFloat16:
      number->set(plain::widen(read<plain::BFloat>(in)));
      return true;
    case DType::Bool:
      number->set(*in != 0);
      return true;
    case DType::UInt64:
      number->set(read<uint64_t>(in));
      return true;
    case DType::UInt8:
      number->set(*in);
      return true;
    case DType::UInt16:
      number->set(read<uint16_t>(in));
      return true;
    case DType::UInt32:
      number->set(read<uint32_t>(in));
      return true;
    case DType::Int8:
      number->set(read<int8_t>(in));
      return true;
    case DType::Int16:
      number->set(read<int16_t>(in));
      return true;
    case DType::Int32:
      number->set(read<int32_t>(in));
      return true;
    case DType::Int64:
      number->set(read<int64_t>(in));
      return true;
    default:
      return false;
  }
}

bool store(const Number& number, DType dtype, uint8_t* out) {
  switch (dtype) {
    case DType::Float64:
      write(out, number.wide);
      return true;
    case DType::Float32:
      write(out, number.narrow);
      return true;
    case DType::Float16:
      write(out, plain::narrow_half(number.narrow));
      return true;
    case DType::BFloat16:
      write(out, plain::narrow_bfloat(number.narrow));
      return true;
    case DType::Bool:
      *out = static_cast<uint8_t>(number.wide != 0);
      return true;
    case DType::UInt8:
    case DType::Int8:
      *out = static_cast<uint8_t>(number.integer);
      return true;
    case DType::UInt16:
    case DType::Int16:
      write(out, static_cast<uint16_t>(number.integer));
      return true;
    case DType::UInt32:
    case DType::Int32:
      write(out, static_cast<uint32_t>(number.integer));
      return true;
    case DType::UInt64:
    case DType::Int64:
      write(out, number.integer);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool can_convert_slowly(DType from, DType to) {
  const uint8_t zero[8] = {};
  uint8_t out[8];
  Number number;
  return load(zero, from, &number) && store(number, to, out);
}

void convert_slowly(const void* in, DType from, void* out, DType to, size_t n) {
  const uint8_t* src = static_cast<const uint8_t*>(in);
  uint8_t* dst = static_cast<uint8_t*>(out);
  const size_t from_size = element_size(from);
  const size_t to_size = element_size(to);
  for (size_t i = 0; i < n; ++i) {
    Number number;
    load(src + i * from_size, from, &number);
    store(number, to, dst + i * to_size);
  }
}

}  // namespace rushlight::kernels
